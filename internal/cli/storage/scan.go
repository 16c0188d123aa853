package storage

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"scrimp/internal/cli/command"
	"scrimp/internal/cli/show"
	"scrimp/internal/cli/show/holdings"
	"scrimp/internal/lib/inode"
	"scrimp/internal/work/storage"
)

// maxNamed bounds the names of skipped entries that are kept for the output.
const maxNamed = 20

// Skipped counts what a scan could not read or does not count, and names some of it.
type skipped struct {
	count map[string]int64
	names map[string][]string
}

// list returns what was skipped, by reason.
func (s *skipped) list() (list []holdings.Skipped) {
	for _, why := range sorted(s.count) {
		list = append(list, holdings.Skipped{Why: why, Count: s.count[why], Names: s.names[why]})
	}
	return list
}

// The reasons to skip an entry.
const (
	unreadable = "unreadable"
	symlink    = "symbolic link"
	special    = "no regular file"
)

func (s *skipped) add(why, name string) {
	s.count[why]++
	if len(s.names[why]) < maxNamed {
		s.names[why] = append(s.names[why], name)
	}
}

// A scanner reads places and hands each file on.
type scanner struct {
	guard   *guard
	add     func(storage.File)
	tick    func(files, bytes int64) // called often
	skipped skipped
	links   map[[2]uint64]bool // files with several names that were seen
	files   int64
	bytes   int64
}

func newScanner(g *guard, add func(storage.File), tick func(files, bytes int64)) *scanner {
	return &scanner{guard: g, add: add, tick: tick, links: map[[2]uint64]bool{},
		skipped: skipped{map[string]int64{}, map[string][]string{}}}
}

func (s *scanner) found(f storage.File) {
	s.files++
	if !f.Again {
		s.bytes += f.Disk()
	}
	s.add(f)
	s.tick(s.files, s.bytes)
}

// batch is how many entries of a folder are read at once.
const batch = 1024

// A folder waits to be read.
type folder struct {
	name string // below the place
	held storage.Reason
	only bool // held forbids deletion only
}

// local reads a folder of this machine. It follows no symbolic link, so no cycle can arise.
func (s *scanner) local(ctx context.Context, place int, top string) error {
	root, err := os.OpenRoot(top)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	if f, err := root.Open("."); err != nil {
		return err
	} else if err := f.Close(); err != nil {
		return err
	}
	held, only := s.guard.above(top)
	for stack := []folder{{".", held, only}}; len(stack) > 0; {
		at := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if at.held == "" || at.only {
			if held, only := s.guard.folder(root, top, at.name); held != "" {
				at.held, at.only = held, only
			}
		}
		below, err := s.folder(ctx, root, place, top, at)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			s.skipped.add(unreadable, path.Join(top, at.name))
		}
		stack = append(stack, below...)
	}
	return nil
}

// folder reads one folder and returns the folders in it.
func (s *scanner) folder(ctx context.Context, root *os.Root, place int, top string, at folder) ([]folder, error) {
	dir, err := root.Open(at.name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	var below []folder
	for ctx.Err() == nil {
		entries, err := dir.ReadDir(batch)
		for _, e := range entries {
			name := path.Join(at.name, e.Name())
			if e.IsDir() {
				below = append(below, folder{name, at.held, at.only})
				continue
			}
			s.entry(place, top, name, at, e)
		}
		if errors.Is(err, io.EOF) {
			return below, nil
		}
		if err != nil {
			return below, err
		}
	}
	return nil, context.Cause(ctx)
}

func (s *scanner) entry(place int, top, name string, at folder, e fs.DirEntry) {
	switch {
	case e.Type()&fs.ModeSymlink != 0:
		s.skipped.add(symlink, path.Join(top, name))
		return
	case !e.Type().IsRegular():
		s.skipped.add(special, path.Join(top, name))
		return
	}
	info, err := e.Info()
	if errors.Is(err, fs.ErrNotExist) { // it was deleted meanwhile
		return
	}
	if err != nil {
		s.skipped.add(unreadable, path.Join(top, name))
		return
	}
	id := inode.Of(info)
	f := storage.File{Place: place, Path: name, Bytes: info.Size(), Holes: max(0, info.Size()-id.Disk),
		Used: id.Used, Changed: info.ModTime(),
		ID: id.String(), Held: at.held, HeldOnly: at.only, Linked: id.Links > 1}
	if f.Linked {
		k := [2]uint64{id.Dev, id.Ino}
		f.Again = s.links[k]
		s.links[k] = true
	}
	if f.Held == "" || f.HeldOnly {
		if s.guard.needed(filepath.Join(top, name)) {
			f.Held, f.HeldOnly = storage.Needed, false
		}
	}
	s.found(f)
}

// progress returns a tick that shows the progress on a terminal.
func (a *app) progress(verb string) func(files, bytes int64) {
	line := a.Line()
	last := time.Time{}
	n := 0
	return func(files, bytes int64) {
		if n++; line.Width == 0 || n%256 != 0 {
			return
		}
		if now := a.Now(); now.Sub(last) > 500*time.Millisecond {
			last, a.Counting = now, true
			a.Notef("\r\x1b[K%s: %d files, %s", verb, files, show.Bytes(bytes))
		}
	}
}

// done removes the progress line.
func (a *app) done() {
	if a.Counting {
		a.Counting = false
		a.Notef("\r\x1b[K")
	}
}

// inside reports whether a path is a folder or lies in it.
func inside(name, dir string) bool {
	rel, err := filepath.Rel(dir, name)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// Scan reads folders and buckets, hands each file to add, and returns what it skipped.
func Scan(ctx context.Context, shared *command.App, places []storage.Place, add func(storage.File)) (
	[]holdings.Skipped, error) {
	a := &app{shared}
	s := newScanner(newGuard(a.Data), add, a.progress("read"))
	err := a.scanPlaces(ctx, s, places)
	return s.skipped.list(), err
}
