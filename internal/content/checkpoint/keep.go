package checkpoint

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"scrimp/internal/lib/confined"
)

// kept is the home of the parts of outputs, which no prune touches.
const kept = "kept"

// Keep stores the named folders and files below a folder as outputs called name,
// in place of outputs that were kept under that name before. Folders that are
// missing are left out, and so is what cannot be kept, which Stats names. Nothing should write to them meanwhile;
// ErrChanged says that something did.
func (s *Store) Keep(ctx context.Context, base confined.Folder, folders []string, name string) (Manifest, Stats,
	error) {
	begin := time.Now()
	m, stats, err := s.keep(ctx, base, folders, name)
	if err != nil {
		return Manifest{}, Stats{}, fmt.Errorf("keep outputs %s: %w", name, err)
	}
	stats.Took = time.Since(begin)
	return m, stats, nil
}

func (s *Store) keep(ctx context.Context, base confined.Folder, folders []string, name string) (_ Manifest, _ Stats,
	err error) {
	if err := checkName(name); err != nil {
		return Manifest{}, Stats{}, err
	}
	tree, err := base.Open()
	if err != nil {
		return Manifest{}, Stats{}, err
	}
	defer func() { err = errors.Join(err, tree.Close()) }()
	sources, left, err := gather(tree, base.Path, folders)
	if err != nil {
		return Manifest{}, Stats{}, err
	}
	versions, err := s.versions(ctx, name)
	if err != nil {
		return Manifest{}, Stats{}, err
	}
	known, err := s.keptParts(ctx, name, versions)
	if err != nil {
		return Manifest{}, Stats{}, err
	}
	up := &upload{store: s, home: kept, known: known}
	files, err := up.all(ctx, sources)
	if err == nil {
		err = unchanged(sources)
	}
	if err != nil {
		return Manifest{}, Stats{}, err
	}
	m := Manifest{Form: form, Writer: rand.Text(), Published: time.Now().UTC(), Bytes: up.stats.Bytes,
		Files: untagged(files)}
	seq := 1
	if len(versions) > 0 {
		seq = versions[0] + 1
	}
	for ; ; seq++ {
		m.Name = outputName(name, seq)
		data, err := seal(m)
		if err != nil {
			return Manifest{}, Stats{}, err
		}
		err = s.putOnce(ctx, "outputs/"+m.Name, data)
		if err == nil {
			up.stats.Left = left
			return m, up.stats, nil
		}
		if !errors.Is(err, errTaken) {
			return Manifest{}, Stats{}, err
		}
	}
}

// keptParts are the parts of the newest version that can be read, and of those newer ones
// that cannot. Parts of outputs are never dropped, so what is there can be referred to.
func (s *Store) keptParts(ctx context.Context, name string, versions []int) (map[string]Part, error) {
	known := map[string]Part{}
	for _, v := range versions {
		m, err := s.output(ctx, name, v)
		if err != nil && !errors.Is(err, ErrDamaged) {
			return nil, err
		}
		for _, p := range m.parts() {
			if a, err := s.bucket.Attributes(ctx, s.prefix+p.key()); err == nil && a.Size == p.Size {
				known[p.Sum] = p
			}
		}
		if err == nil {
			break
		}
	}
	return known, nil
}

// Fetch writes the outputs called name to folder dir, which must be empty or
// missing. ErrNone: nothing was kept under that name.
func (s *Store) Fetch(ctx context.Context, name, dir string) (Manifest, error) {
	m, err := s.fetchOutput(ctx, name, dir)
	if err != nil {
		return Manifest{}, fmt.Errorf("fetch outputs %s to %s: %w", name, dir, err)
	}
	return m, nil
}

// OutputNames lists the names under which something was kept.
func (s *Store) OutputNames(ctx context.Context) ([]string, error) {
	all, err := s.list(ctx, "outputs")
	for i, at := range all {
		all[i] = path.Dir(at)
	}
	return slices.Compact(all), err
}

// Outputs is the newest manifest of what was kept under a name that can be read. ErrNone:
// nothing was kept.
func (s *Store) Outputs(ctx context.Context, name string) (m Manifest, err error) {
	if err := checkName(name); err != nil {
		return m, err
	}
	versions, err := s.versions(ctx, name)
	if err == nil && len(versions) == 0 {
		err = ErrNone
	}
	for _, v := range versions {
		if m, err = s.output(ctx, name, v); err == nil || !errors.Is(err, ErrDamaged) {
			break
		}
	}
	if err != nil {
		return Manifest{}, fmt.Errorf("look at outputs %s: %w", name, err)
	}
	return m, nil
}

func (s *Store) fetchOutput(ctx context.Context, name, dir string) (Manifest, error) {
	if err := checkName(name); err != nil {
		return Manifest{}, err
	}
	held, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Manifest{}, err
	}
	if len(held) > 0 {
		return Manifest{}, errors.New("the folder is not empty: name one that is, or that is not there yet")
	}
	versions, err := s.versions(ctx, name)
	if err != nil {
		return Manifest{}, err
	}
	if len(versions) == 0 {
		return Manifest{}, ErrNone
	}
	for _, v := range versions {
		var m Manifest
		m, err = s.output(ctx, name, v)
		if err == nil {
			err = s.fetch(ctx, m, filepath.Clean(dir))
		}
		if err == nil {
			return m, nil
		}
		if !errors.Is(err, ErrDamaged) {
			break
		}
	}
	return Manifest{}, err
}

func outputName(name string, seq int) string { return fmt.Sprintf("%s/%06d", name, seq) }

func (s *Store) output(ctx context.Context, name string, seq int) (Manifest, error) {
	at := outputName(name, seq)
	data, err := s.read(ctx, "outputs/"+at)
	if err != nil {
		return Manifest{}, err
	}
	return decode(at, data)
}

// versions returns the sequence numbers of what was kept under name, newest first.
func (s *Store) versions(ctx context.Context, name string) ([]int, error) {
	names, err := s.list(ctx, "outputs/"+name)
	var all []int
	for _, n := range slices.Backward(names) {
		if seq, err := strconv.Atoi(n); err == nil {
			all = append(all, seq)
		}
	}
	return all, err
}

func checkName(name string) error {
	if name == "" || strings.ContainsAny(name, "/\\") || !filepath.IsLocal(name) || name == "." {
		return fmt.Errorf("%q is not a name", name)
	}
	return nil
}

// ErrFolder says that what is to be kept cannot be listed, which no new try changes.
var ErrFolder = errors.New("the folder cannot be listed")

// errFull says that a manifest has no more room.
var errFull = fmt.Errorf("outputs have room for %d TiB and some 200,000 files: let the program write an archive, "+
	"or fewer", mostBytes>>40)

// gather lists the named folders and files below a tree, whose path base is, as they are called there. What cannot be
// kept is left out of the list.
func gather(tree *confined.Tree, base string, folders []string) ([]source, Left, error) {
	s := scanner{tree: tree, base: base}
	for _, f := range folders {
		rel := path.Clean(filepath.ToSlash(f))
		if !filepath.IsLocal(rel) {
			return nil, nil, fmt.Errorf("output %q is not below the work folder: %w", f, ErrFolder)
		}
		if _, err := tree.Lstat(rel); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		found := len(s.found)
		if err := s.walk(rel); err != nil {
			if !errors.Is(err, ErrChanged) {
				err = fmt.Errorf("%w: %w", ErrFolder, err)
			}
			return nil, nil, err
		}
		if len(s.found) == found {
			continue
		}
		for at := path.Dir(rel); at != "."; at = path.Dir(at) {
			s.found = append(s.found, source{File: File{Path: at, Mode: fs.ModeDir | 0o755}})
		}
	}
	slices.SortFunc(s.found, func(a, b source) int { return strings.Compare(a.Path, b.Path) })
	all := slices.CompactFunc(s.found, func(a, b source) bool { return a.Path == b.Path })
	return s.keepable(all), s.left, nil
}

// keepable are those of the files that can be read and that a manifest has room for. They are sorted by their paths.
func (s *scanner) keepable(all []source) []source {
	bytes, text := int64(mostBytes), mostManifest-1024
	return slices.DeleteFunc(all, func(f source) bool {
		if text -= f.text(); text < 0 { // nothing after it either: it may be a folder, which those in it need
			text = 0
			s.left.add(f.Path, errFull)
			return true
		}
		if !f.Mode.IsRegular() {
			return false
		}
		if f.Size > bytes {
			s.left.add(f.Path, errFull)
			return true
		}
		in, err := f.open()
		if err == nil {
			err = in.Close()
		}
		if err != nil && unreadable(err) {
			s.left.add(f.Path, errUnreadable)
			return true
		}
		bytes -= f.Size
		return false // another error is one of reading it
	})
}

// text is at least how many bytes a manifest takes for the file.
func (s *source) text() int {
	name, _ := json.Marshal(s.Path + s.Target) // a string
	return 160 + len(name) + int((s.Size+partSize-1)/partSize)*112
}
