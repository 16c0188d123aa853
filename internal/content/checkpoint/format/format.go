// Package format defines how checkpoints are stored: a manifest with a checksum lists files and the parts of their
// content, each with its hash and tag.
package format

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// form is the version of the format; formRanks is that of a checkpoint of all ranks, which no single machine restores
// as a whole.
const (
	Version      = 1
	VersionRanks = 2
)

// ErrDamaged says that what is stored differs from what was published.
var ErrDamaged = errors.New("damaged")

// Meta is the publisher's description of a checkpoint.
type Meta struct {
	Job      string             `json:"job,omitempty"`
	Attempt  string             `json:"attempt,omitempty"`
	Epoch    int                `json:"epoch"` // of the claim; Publish sets it
	Step     int64              `json:"step"`
	Captured time.Time          `json:"captured"` // wall time up to which the checkpoint contains work
	Metrics  map[string]float64 `json:"metrics,omitempty"`
}

// Manifest lists the contents of one checkpoint and where their parts are.
type Manifest struct {
	Form int    `json:"form"`
	Name string `json:"name"` // <epoch>-<seq>
	Meta
	Session   int       `json:"session"` // of the claim
	Writer    string    `json:"writer"`  // random, so that no two manifests are equal
	Published time.Time `json:"published"`
	Bytes     int64     `json:"bytes"` // sum of the file sizes
	Files     []File    `json:"files"` // sorted by path
	// Ranks is the number of machines of a gang that each have their own part, in the folders 0, 1, and so on. 0: all
	// machines restore the same.
	Ranks int `json:"ranks,omitempty"`
}

// File is a file, a folder (the mode's directory bit) or a link (Target).
type File struct {
	Path     string      `json:"path"` // with slashes, below the folder
	Mode     fs.FileMode `json:"mode"` // type and permissions
	Modified time.Time   `json:"modified"`
	Size     int64       `json:"size,omitempty"`
	Target   string      `json:"target,omitempty"`
	Parts    []Part      `json:"parts,omitempty"` // in order
}

// Content identifies the content of a file: its SHA-256 if it has one part, else the SHA-256 of the list of its parts.
func (f File) Content() string {
	if len(f.Parts) == 1 {
		return f.Parts[0].Sum
	}
	sum := sha256.New()
	for _, p := range f.Parts {
		fmt.Fprintf(sum, "%s %d\n", p.Sum, p.Size)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// Digest identifies what the manifest's files hold: paths, types, contents, targets of links, and whether a file can be
// run. Times and other permissions do not count, nor does how a content is divided into stored objects.
func (m Manifest) Digest() string {
	sum := sha256.New()
	for _, f := range m.Files {
		fmt.Fprintf(sum, "%v %t %q %q %s %d\n", f.Mode.Type(), f.Mode&0o100 != 0, f.Path, f.Target, f.Content(), f.Size)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// Part is a piece of a file's content.
type Part struct {
	Sum  string `json:"sum"` // SHA-256, hexadecimal
	Size int64  `json:"size"`
	Home string `json:"home"` // the claim that stored it, or "kept"
	// Tag is the content's tag under Sum, which a restore checks faster than SHA-256; empty: none.
	Tag string `json:"tag,omitempty"`
}

// Key returns the part's key in its store.
func (p Part) Key() string { return "objects/" + p.Home + "/" + p.Sum }

// Parts returns every part of m once, by its key.
func (m Manifest) Parts() []Part {
	seen := map[string]bool{}
	var all []Part
	for _, f := range m.Files {
		for _, p := range f.Parts {
			if !seen[p.Key()] {
				seen[p.Key()] = true
				all = append(all, p)
			}
		}
	}
	return all
}

// Finite returns the metrics that JSON can represent.
func Finite(metrics map[string]float64) map[string]float64 {
	kept := map[string]float64{}
	for name, v := range metrics {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			kept[name] = v
		}
	}
	return kept
}

// Seal writes v as one line of JSON and a line with its checksum.
func Seal(v any) ([]byte, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	body = append(body, '\n')
	sum := sha256.Sum256(body)
	return fmt.Appendf(body, "sha256 %x\n", sum), nil
}

// Unseal reads what Seal wrote, and refuses anything that differs in one bit.
func Unseal(data []byte, v any) error {
	i := bytes.IndexByte(data, '\n') + 1
	sum := sha256.Sum256(data[:i])
	if i == 0 || string(data[i:]) != fmt.Sprintf("sha256 %x\n", sum) {
		return fmt.Errorf("%w: its checksum does not fit", ErrDamaged)
	}
	if err := json.Unmarshal(data[:i], v); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return nil
}

// Decode reads a manifest that was published as name.
func Decode(name string, data []byte) (Manifest, error) {
	var m Manifest
	if err := Unseal(data, &m); err != nil {
		return Manifest{}, err
	}
	if err := m.check(name); err != nil {
		return Manifest{}, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return m, nil
}

// check validates what restore relies on: nothing in a manifest leads out of the folder.
func (m Manifest) check(name string) error {
	epoch, _, ok := ParseName(name)
	switch {
	case m.Form != Version && m.Form != VersionRanks || (m.Form == VersionRanks) != (m.Ranks > 0):
		return fmt.Errorf("form %d is not known: use a newer scrimp", m.Form)
	case m.Name != name:
		return fmt.Errorf("it says that its name is %q", m.Name)
	case ok && epoch != m.Epoch:
		return fmt.Errorf("it says that its epoch is %d", m.Epoch)
	}
	return m.checkFiles()
}

// checkFiles checks that the files are sorted, unique, and preceded by their folders.
func (m Manifest) checkFiles() error {
	if !slices.IsSortedFunc(m.Files, func(a, b File) int { return cmp.Compare(a.Path, b.Path) }) {
		return fmt.Errorf("its files are not sorted")
	}
	folders := map[string]bool{".": true}
	var total int64
	for i, f := range m.Files {
		if !filepath.IsLocal(f.Path) || path.Clean(f.Path) != f.Path || f.Path == "." ||
			i > 0 && m.Files[i-1].Path == f.Path {
			return fmt.Errorf("file path %q", f.Path)
		}
		if !folders[path.Dir(f.Path)] {
			return fmt.Errorf("file %s is in no folder", f.Path)
		}
		if err := f.check(); err != nil {
			return fmt.Errorf("file %s: %w", f.Path, err)
		}
		if f.Mode.IsDir() {
			folders[f.Path] = true
		}
		total += f.Size
	}
	if total != m.Bytes {
		return fmt.Errorf("files of %d bytes, not %d", total, m.Bytes)
	}
	for rank := range m.Ranks {
		if !folders[strconv.Itoa(rank)] {
			return fmt.Errorf("the part of rank %d is missing", rank)
		}
	}
	return nil
}

// valid reports whether Publish can have written the part.
func (p Part) valid() bool {
	sum, err := hex.DecodeString(p.Sum)
	return err == nil && len(sum) == sha256.Size && p.Size > 0 && p.Size <= PartSize &&
		p.Home != "" && !strings.ContainsAny(p.Home, "/.") && (p.Tag == "" || len(p.Tag) == tagLength)
}

func (f File) check() error {
	var size int64
	for _, p := range f.Parts {
		if !p.valid() {
			return fmt.Errorf("part %+v", p)
		}
		size += p.Size
	}
	if size != f.Size {
		return fmt.Errorf("parts of %d bytes, not %d", size, f.Size)
	}
	switch f.Mode.Type() {
	case 0:
		return nil
	case fs.ModeDir:
		if f.Size != 0 {
			return fmt.Errorf("a folder with content")
		}
		return nil
	case fs.ModeSymlink:
		if f.Size != 0 || !Inside(f.Path, f.Target) {
			return fmt.Errorf("link to %q", f.Target)
		}
		return nil
	}
	return fmt.Errorf("mode %v", f.Mode)
}

// Inside reports whether a link at slash path at stays in the folder.
func Inside(at, target string) bool {
	return target != "" && !path.IsAbs(target) && filepath.IsLocal(path.Join(path.Dir(at), target))
}

// ParseName returns the two counts of a name from NameOf.
func ParseName(name string) (a, b int, ok bool) {
	left, right, _ := strings.Cut(name, "-")
	a, errA := strconv.Atoi(left)
	b, errB := strconv.Atoi(right)
	return a, b, errA == nil && errB == nil && a >= 0 && b >= 0 && NameOf(a, b) == name
}

// PartSize is in bytes; files are cut at its multiples. Smaller parts find more unchanged content, and cost more
// requests.
const PartSize = 8 << 20

// Holds reports whether content is the part's published content, by the tag if the part has one.
func (p Part) Holds(content []byte) bool {
	if p.Tag != "" {
		var sum [sha256.Size]byte
		n, err := hex.Decode(sum[:], []byte(p.Sum))
		return err == nil && n == len(sum) && TagOf(sum, content) == p.Tag
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:]) == p.Sum
}

// NameOf makes a name of two counts that sorts: 000003-000017.
func NameOf(a, b int) string { return fmt.Sprintf("%06d-%06d", a, b) }

// CompareNames orders names by their counts, also beyond six digits.
func CompareNames(x, y string) int {
	a, b, _ := ParseName(x)
	c, d, _ := ParseName(y)
	return cmp.Or(cmp.Compare(a, c), cmp.Compare(b, d))
}

// MostBytes bounds the bytes of a manifest: 200,000 files. Whoever has a task's token can write anything in its
// place, and its readers hold it in memory.
const MostBytes = 64 << 20
