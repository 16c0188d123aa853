package storage

import (
	"crypto/sha256"
	"encoding/binary"
)

// A Census says which files lie in a checkpoint folder, in constant memory and whatever their order.
type Census struct {
	Files int64  `json:"files"`
	Names uint64 `json:"names,string"` // sum of the first eight bytes of the SHA-256 of each path
}

// With returns the census with one more file.
func (c Census) With(path string) Census {
	sum := sha256.Sum256([]byte(path))
	return Census{c.Files + 1, c.Names + binary.BigEndian.Uint64(sum[:8])}
}

// A Folder is a checkpoint folder of a plan. A file that somebody adds to it changes the checkpoint.
type Folder struct {
	Place int    `json:"place"`
	Path  string `json:"path"`
	Census
}

// Has reports whether a file belongs to the folder, and to no checkpoint folder within it.
func (f Folder) Has(path string) bool {
	unit, _ := unitOf(path)
	return unit == f.Path && unit != path
}

// folders returns the checkpoint folders of the victims.
func (p *Planner) folders() (list []Folder) {
	had := map[string]bool{}
	for _, v := range p.victims {
		unit, _ := unitOf(v.Path)
		k := key(v.Place, unit)
		if v.Kind != Checkpoints || unit == v.Path || had[k] {
			continue
		}
		had[k] = true
		list = append(list, Folder{v.Place, unit, p.census[k]})
	}
	return list
}
