package storage

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"path"
	"slices"
	"strings"
	"time"
)

// A Plan lists files to delete, for a later command to check and carry out.
type Plan struct {
	Version int        `json:"version"`
	Made    time.Time  `json:"made"`
	Places  []Place    `json:"places"`
	Keep    []string   `json:"keep"` // paths that the user keeps
	Delete  []Deletion `json:"delete"`
	Folders []Folder   `json:"folders"` // the checkpoint folders that they are part of
	Bytes   int64      `json:"bytes"`   // on disk
	Digest  string     `json:"digest"`  // SHA-256 of the plan with an empty digest
}

// A Deletion is a file of a plan, as the scan found it.
type Deletion struct {
	Place   int       `json:"place"`
	Path    string    `json:"path"`
	Kind    Kind      `json:"kind"`
	Bytes   int64     `json:"bytes"` // its length
	Holes   int64     `json:"holes,omitempty"`
	Changed time.Time `json:"changed"`
	ID      string    `json:"id,omitempty"`
	Rule    string    `json:"rule"`
	Newer   string    `json:"newer,omitempty"` // a newer checkpoint of the run, which must still be there
}

// Disk returns the bytes that the file takes.
func (d Deletion) Disk() int64 { return d.Bytes - d.Holes }

const planVersion = 2

// MaxPlan bounds a plan file, in bytes.
const MaxPlan = 128 << 20

// PlanOf returns the plan to delete the victims of a result.
func PlanOf(now time.Time, places []Place, rules []Rule, keep []string, r Result) Plan {
	p := Plan{Version: planVersion, Made: now.UTC(), Places: places, Keep: append([]string{}, keep...),
		Delete: []Deletion{}, Folders: append([]Folder{}, r.Folders...)}
	for _, v := range r.Victims {
		p.Delete = append(p.Delete, Deletion{v.Place, v.Path, v.Kind, v.Bytes, v.Holes, v.Changed.UTC(), v.ID,
			rules[v.Rule].String(), v.Newer})
		p.Bytes += v.Disk()
	}
	p.Digest = p.digest()
	return p
}

func (p Plan) digest() string {
	p.Digest = ""
	text, _ := json.Marshal(p) // every value has a JSON form
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// ReadPlan reads a plan and checks it.
func ReadPlan(file string, text []byte) (p Plan, err error) {
	wrong := func(field, cause string) (Plan, error) {
		return Plan{}, fmt.Errorf("%s: `%s` %s: write the plan again with scrimp storage PATH --plan %s", path.Base(file),
			field, cause, path.Base(file))
	}
	if len(text) > MaxPlan {
		return wrong("delete", "is longer than 128 MiB")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		return wrong("version", "cannot be read: "+err.Error())
	}
	if p.Version != planVersion {
		return wrong("version", fmt.Sprintf("is %d, and this program reads %d", p.Version, planVersion))
	}
	if p.digest() != p.Digest {
		return wrong("digest", "is not that of the plan, which somebody has changed")
	}
	if field, cause := p.check(); cause != "" {
		return wrong(field, cause)
	}
	return p, nil
}

// check returns the first field of a plan that is wrong, and why.
func (p *Plan) check() (field, cause string) {
	if len(p.Delete) > MaxVictims || len(p.Places) > MaxPlaces || len(p.Keep) > MaxKeep {
		return "delete", fmt.Sprintf("lists more than %d files or %d places", MaxVictims, MaxPlaces)
	}
	for _, at := range p.Places {
		if at.Name == "" || !slices.Contains(Stores, at.Store) {
			return "places", "has one without a name or a store"
		}
	}
	var sum int64
	for i, x := range p.Delete {
		if cause := p.checkFile(&x, sum); cause != "" {
			return fmt.Sprintf("delete[%d]", i), cause
		}
		sum += x.Disk()
	}
	switch {
	case len(p.Folders) > len(p.Delete) || slices.ContainsFunc(p.Folders, p.strange):
		return "folders", "has one that is in none of the plan's places"
	case sum != p.Bytes:
		return "bytes", "is not the sum of the files"
	}
	return "", ""
}

// checkFile returns what is wrong with a file of a plan, after files of so many bytes.
func (p *Plan) checkFile(x *Deletion, sum int64) string {
	switch {
	case x.Place < 0 || x.Place >= len(p.Places):
		return "is in none of the plan's places"
	case !isBelow(x.Path) || x.Newer != "" && !isBelow(x.Newer):
		return "leads out of its place"
	case x.Holes < 0 || x.Bytes < x.Holes || x.Bytes > math.MaxInt64-sum:
		return "has an impossible size"
	}
	return ""
}

// strange reports whether a folder is in none of the places.
func (p Plan) strange(f Folder) bool {
	return f.Place < 0 || f.Place >= len(p.Places) || !isBelow(f.Path)
}

// isBelow reports whether a path leads to something below its place.
func isBelow(p string) bool { return p != "." && fs.ValidPath(p) }

// Limits of a plan.
const (
	MaxPlaces = 64
	MaxKeep   = 10_000
)

// Within reports whether a path is one of the others or below one of them.
func Within(file string, others []string) bool {
	for _, o := range others {
		o = strings.TrimSuffix(o, "/")
		if file == o || strings.HasPrefix(file, o+"/") {
			return true
		}
	}
	return false
}
