package data

import (
	"cmp"
	"context"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"scrimp/internal/agent/datadigest"
	"scrimp/internal/cli/show/holdings"
	"scrimp/internal/cli/storage"
	"scrimp/internal/cli/storage/compare"
	stored "scrimp/internal/work/storage"
)

// known is content whose digest is known without reading it.
type known struct {
	Name   string // of its place
	Path   string // below the place; "": the place itself
	Store  string // as stored.Place
	Bytes  int64
	Files  int64  // 1: a file with the digest that format.File.Content returns; more: a folder
	Digest string // of a folder: as datacache.Read has it
	Remove string // the command that removes it; "": none does
}

// find finds equal contents among the files of folders and buckets, and what is known.
func (a *app) find(ctx context.Context, least int64, price string, args []string, known []known) (
	v holdings.Duplicates, err error) {
	prices, err := storage.Prices(price)
	if err != nil {
		return v, err
	}
	places, err := storage.Places(args)
	if err != nil {
		return v, err
	}
	given := len(places)
	d := &finder{candidates: stored.Candidates{Least: least}, dirs: map[place]total{}, sets: map[total]bool{},
		folder: map[string]bool{}, remove: map[place]string{}}
	for _, k := range known {
		if !isScanned(places[:given], k) {
			d.add(&places, k)
		}
	}
	skipped, err := storage.Scan(ctx, a.App, places[:given], d.found)
	if err == nil {
		err = d.folders(ctx, places)
	}
	if err != nil {
		return v, err
	}
	for _, f := range d.files {
		d.candidates.Add(f)
	}
	groups, left, err := compare.Duplicates(ctx, places, &d.candidates, func(int64, int64) {})
	if err != nil {
		return v, err
	}
	v = holdings.DuplicatesOf(places, prices, groups, func(f stored.File) string {
		return d.remove[place{f.Place, f.Path}]
	})
	v.Uncompared, v.Skipped = left+d.candidates.Left, append(v.Skipped, skipped...)
	return v, nil
}

// isScanned reports whether the scan reads the content of an input anyway.
func isScanned(places []stored.Place, k known) bool {
	at, isFile := strings.CutPrefix(k.Name, "file://")
	target, err := filepath.EvalSymlinks(at)
	return isFile && err == nil && k.Path == "" && slices.ContainsFunc(places, func(p stored.Place) bool {
		rel, err := filepath.Rel(p.Name, target)
		return p.Store == stored.Local && err == nil && filepath.IsLocal(rel)
	})
}

// place names a file or a folder of a place.
type place struct {
	at   int
	path string
}

// total is what lies in a folder.
type total struct{ files, bytes int64 }

// finder collects the files whose contents may be equal.
type finder struct {
	candidates stored.Candidates
	files      []stored.File // of folders and buckets, until it is known which folders count as a whole
	dirs       map[place]total
	sets       map[total]bool  // sizes of the known folders
	folder     map[string]bool // their IDs
	remove     map[place]string
}

func (d *finder) add(places *[]stored.Place, k known) {
	at := slices.IndexFunc(*places, func(p stored.Place) bool { return p.Known && p.Name == k.Name })
	if at < 0 {
		at = len(*places)
		*places = append(*places, stored.Place{Name: k.Name, Store: k.Store, Known: true})
	}
	id := k.Digest
	if k.Files > 1 {
		id = compare.FolderID + id
		d.sets[total{k.Files, k.Bytes}], d.folder[id] = true, true
	}
	d.remove[place{at, k.Path}] = k.Remove
	d.candidates.Add(stored.File{Place: at, Path: k.Path, Bytes: k.Bytes, ID: id})
}

// found adds a file of the scan. It leaves out stores of scrimp, whose contents the server lists.
func (d *finder) found(f stored.File) {
	if f.Held == stored.OwnStore || f.Held == stored.ServerData || f.Again {
		return
	}
	if f.Disk() >= d.candidates.Least {
		d.files = append(d.files, f)
	}
	if len(d.sets) == 0 {
		return
	}
	for dir := path.Dir(f.Path); ; dir = path.Dir(dir) {
		k := place{f.Place, dir}
		t := d.dirs[k]
		d.dirs[k] = total{t.files + 1, t.bytes + f.Bytes}
		if dir == "." {
			return
		}
	}
}

// folders compares the folders that have as many files and bytes as a known one. The files of the first of equal
// folders may equal files elsewhere; those of the others are its copies already, and would count twice.
func (d *finder) folders(ctx context.Context, places []stored.Place) error {
	copies := map[place]bool{}
	seen := map[string]bool{} // IDs of the folders so far
	for _, k := range slices.SortedFunc(maps.Keys(d.dirs), func(a, b place) int {
		return cmp.Or(cmp.Compare(a.at, b.at), strings.Compare(a.path, b.path))
	}) {
		t := d.dirs[k]
		if !d.sets[t] || places[k.at].Store != stored.Local {
			continue
		}
		digest, err := datadigest.Folder(ctx, filepath.Join(places[k.at].Name, k.path))
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		id := compare.FolderID + digest
		if err != nil || !d.folder[id] { // a folder that no machine could bring equals none
			continue
		}
		copies[k], seen[id] = seen[id], true
		d.candidates.Add(stored.File{Place: k.at, Path: k.path, Bytes: t.bytes, ID: id})
	}
	d.files = slices.DeleteFunc(d.files, func(f stored.File) bool {
		for dir := path.Dir(f.Path); ; dir = path.Dir(dir) {
			if copies[place{f.Place, dir}] {
				return true
			}
			if dir == "." {
				return false
			}
		}
	})
	return nil
}
