// Package confined reads folders that a program of another user may change at any moment. It follows no link out of a
// folder, reads no file of another user, and never blocks on a pipe.
package confined

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Folder describes what to read, and what may be reached on the way.
type Folder struct {
	Path   string // the folder to read
	Within string // folder that links in Path must not leave; "": Path may be a link to anywhere
	Owner  int    // only this user's files are read; 0: anybody's
}

// ErrOutside reports a path that leads out of the folder that must contain it.
var ErrOutside = errors.New("it leads out of the folder that it must be below")

// Tree is an open folder. Names in it are relative paths with slashes.
type Tree struct {
	root  *os.Root
	owner int
}

// Open opens the folder. The caller must close it.
func (f Folder) Open() (*Tree, error) {
	if f.Within == "" {
		root, err := os.OpenRoot(f.Path)
		return &Tree{root, f.Owner}, err
	}
	name, err := f.name(f.Path)
	if err != nil {
		return nil, err
	}
	top, err := os.OpenRoot(f.Within)
	if err != nil {
		return nil, err
	}
	root, err := top.OpenRoot(name)
	if err := errors.Join(err, top.Close()); err != nil {
		return nil, fmt.Errorf("open %s: %w", f.Path, err)
	}
	return &Tree{root, f.Owner}, nil
}

// Make creates the folder and its missing parents.
func (f Folder) Make() error {
	if f.Within == "" {
		return os.MkdirAll(f.Path, 0o700)
	}
	name, err := f.name(f.Path)
	if err != nil {
		return err
	}
	top, err := os.OpenRoot(f.Within)
	if err != nil {
		return err
	}
	return errors.Join(top.MkdirAll(name, 0o700), top.Close())
}

// File opens a regular file for reading. Its path must be below Within, if that is set.
func (f Folder) File(path string) (*os.File, error) {
	if f.Within == "" {
		file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if err != nil {
			return nil, err
		}
		if err := f.check(file); err != nil {
			return nil, err
		}
		return file, nil
	}
	name, err := f.name(path)
	if err != nil {
		return nil, err
	}
	top, err := os.OpenRoot(f.Within)
	if err != nil {
		return nil, err
	}
	file, err := (&Tree{top, f.Owner}).File(name)
	return file, errors.Join(err, top.Close())
}

// ReadFile reads a regular file of at most the given number of bytes. It never waits for a pipe.
func ReadFile(path string, most int64) ([]byte, error) {
	f, err := Folder{}.File(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if int64(len(b)) > most {
		return nil, fmt.Errorf("read %s: it is longer than %d bytes", path, most)
	}
	return b, err
}

// check returns an error, after it has closed the file, if the file must not be read.
func (f Folder) check(file *os.File) error {
	stat, err := file.Stat()
	s, ok := (*syscall.Stat_t)(nil), false
	if err == nil {
		s, ok = stat.Sys().(*syscall.Stat_t)
	}
	switch {
	case err != nil:
	case !stat.Mode().IsRegular():
		err = fmt.Errorf("read %s: it is not a regular file", file.Name())
	case f.Owner != 0 && (!ok || int(s.Uid) != f.Owner):
		err = fmt.Errorf("read %s: it belongs to another user: %w", file.Name(), fs.ErrPermission)
	}
	if err != nil {
		return errors.Join(err, file.Close())
	}
	return nil
}

// name returns a path relative to Within. Within itself may be reached through links: the owner of the folders above
// made them.
func (f Folder) name(path string) (string, error) {
	whole, err := filepath.EvalSymlinks(f.Within)
	if err != nil {
		return "", err
	}
	for _, top := range []string{f.Within, whole} {
		if name, err := filepath.Rel(top, path); err == nil && filepath.IsLocal(name) {
			return filepath.ToSlash(name), nil
		}
	}
	return "", fmt.Errorf("%s: %w: %s", path, ErrOutside, f.Within)
}

// Close closes the folder.
func (t *Tree) Close() error { return t.root.Close() }

// File opens a regular file for reading. If something else has taken its place, such as a pipe without a writer or
// another user's file, it returns an error at once.
func (t *Tree) File(name string) (*os.File, error) {
	f, err := t.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if err := (Folder{Owner: t.owner}).check(f); err != nil {
		return nil, err
	}
	return f, nil
}

// Lstat describes a file; of a link it describes the link itself.
func (t *Tree) Lstat(name string) (fs.FileInfo, error) { return t.root.Lstat(name) }

// Readlink returns the target of a link.
func (t *Tree) Readlink(name string) (string, error) { return t.root.Readlink(name) }

// A program's tree may have this many entries and this depth: a walk keeps all names of a folder in memory, and opens
// each name through every folder above it. Real trees have thousands of entries and are at most some dozens deep.
const mostDeep = 100

var mostEntries = 1 << 20 // fewer in tests

// ErrBounds says that a tree has too many entries or is too deep to be walked.
var ErrBounds = fmt.Errorf("a folder holds more than %d entries, or more than %d folders within one another",
	mostEntries, mostDeep)

// Walk visits a name and everything below it, like fs.WalkDir. It follows no links.
func (t *Tree) Walk(name string, visit fs.WalkDirFunc) error { return Walk(t.root, name, visit) }

// Walk visits a name of a root and everything below it, like fs.WalkDir. It follows no links. A folder that is too deep
// or has too many entries is visited with ErrBounds, and its contents are not visited.
func Walk(root *os.Root, name string, visit fs.WalkDirFunc) error {
	return fs.WalkDir(&folders{root: root}, name, visit)
}

// folders lets fs.WalkDir list a root, whatever bytes the names consist of.
type folders struct {
	root    *os.Root
	entries int // listed so far
}

func (f *folders) Open(name string) (fs.File, error) { return f.root.Open(name) }

// Stat describes the name at which a walk begins. A link without a target is described as a link.
func (f *folders) Stat(name string) (fs.FileInfo, error) {
	info, err := f.root.Stat(name)
	if err != nil {
		if link, no := f.root.Lstat(name); no == nil {
			return link, nil
		}
	}
	return info, err
}

func (f *folders) ReadDir(name string) (list []fs.DirEntry, err error) {
	if strings.Count(name, "/") >= mostDeep || f.entries > mostEntries {
		return nil, ErrBounds
	}
	dir, err := f.root.OpenFile(name, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	for err == nil {
		var some []fs.DirEntry
		some, err = dir.ReadDir(4096)
		list = append(list, some...)
		if f.entries += len(some); f.entries > mostEntries {
			list, err = nil, ErrBounds
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	return list, errors.Join(err, dir.Close())
}
