package checkpoint

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"scrimp/internal/lib/confined"
)

// source is a file that is to be published.
type source struct {
	File
	from   string         // path to read
	in     *confined.Tree // where it is read by its path below the folder; nil: at from
	linked bool           // the program can still write to it
	state  identity       // when it was captured
}

// open opens it for reading.
func (s *source) open() (*os.File, error) {
	if s.in == nil {
		return os.Open(s.from)
	}
	return s.in.File(s.Path)
}

// lstat describes it as it is now.
func (s *source) lstat() (fs.FileInfo, error) {
	if s.in == nil {
		return os.Lstat(s.from)
	}
	return s.in.Lstat(s.Path)
}

// identity tells one state of a file from another.
type identity struct {
	inode    uint64
	size     int64
	modified int64 // nanoseconds since 1970
}

func stateOf(stat fs.FileInfo) identity {
	return identity{inode(stat), stat.Size(), stat.ModTime().UnixNano()}
}

// What a copy cannot hold is left out of it, and named.
var (
	errOutward    = errors.New("it leads out of the folder: let the program copy what it leads to")
	errName       = errors.New("its name, or where the link leads, is not UTF-8: rename it")
	errUnreadable = errors.New("its mode or owner lets nobody read it: let the program change that")
	errLarge      = fmt.Errorf("it has more than %d TiB, most of it holes: let the program write less", mostBytes>>40)
)

// scan lists a folder, sorted by path, but for what cannot be copied.
func scan(tree *confined.Tree, dir string, ignore []string) ([]source, Left, error) {
	s := scanner{tree: tree, base: dir, ignore: ignore}
	if err := s.walk("."); err != nil {
		return nil, nil, err
	}
	slices.SortFunc(s.found, func(a, b source) int { return cmp.Compare(a.Path, b.Path) })
	return s.found, s.left, fits(s.found)
}

// mostBytes is how much a manifest says: half a million parts of 8 MiB, in 64 MiB of text. A sparse file is as
// large as its owner likes, and costs them nothing.
const mostBytes = 4 << 40

// fits reports why files cannot be published as one checkpoint.
func fits(found []source) error {
	left := int64(mostBytes)
	for _, f := range found {
		if left -= f.Size; left < 0 {
			return fmt.Errorf("it holds more than %d TiB, %s among it with %d bytes: save less, or remove files that are "+
				"mostly holes", mostBytes>>40, f.Path, f.Size)
		}
	}
	return nil
}

// scanner finds files, folders, and links that stay inside base. Sockets,
// pipes and devices are no part of a checkpoint.
type scanner struct {
	tree   *confined.Tree
	base   string // its path
	ignore []string
	found  []source
	left   Left
}

// walk lists what lies at the slash path below base, and it itself unless it is base.
func (s *scanner) walk(below string) error {
	return s.tree.Walk(below, func(rel string, d fs.DirEntry, err error) error {
		switch {
		case rel == ".":
			return err
		case errors.Is(err, confined.ErrBounds):
			s.left.add(rel, err)
			return fs.SkipDir
		case unreadable(err):
			s.left.add(rel, errUnreadable)
			return skip(d)
		case err != nil:
			return moved(err)
		case !utf8.ValidString(rel):
			s.left.add(rel, errName)
			return skip(d)
		case ignored(rel, s.ignore):
			return skip(d)
		}
		return moved(s.add(rel, d))
	})
}

// skip passes over an entry, and over what lies in it.
func skip(d fs.DirEntry) error {
	if d.IsDir() {
		return fs.SkipDir
	}
	return nil
}

// unreadable reports whether the program has left a file that its agent may not read.
func unreadable(err error) bool { return errors.Is(err, fs.ErrPermission) }

func (s *scanner) add(rel string, d fs.DirEntry) error {
	stat, err := d.Info()
	if err != nil {
		return err
	}
	f := source{
		File: File{Path: rel, Mode: stat.Mode() & (fs.ModeType | fs.ModePerm), Modified: stat.ModTime().UTC()},
		from: filepath.Join(s.base, filepath.FromSlash(rel)), in: s.tree,
	}
	switch stat.Mode().Type() {
	case 0:
		if f.state, f.Size = stateOf(stat), stat.Size(); f.Size > mostBytes {
			s.left.add(rel, errLarge)
			return nil
		}
	case fs.ModeDir:
	case fs.ModeSymlink:
		f.Target, err = s.linkTarget(rel)
		if errors.Is(err, errOutward) || errors.Is(err, errName) {
			s.left.add(rel, err)
			return nil
		}
		if err != nil {
			return err
		}
	default:
		return nil
	}
	s.found = append(s.found, f)
	return nil
}

// moved says that a file which was there a moment ago is being replaced.
func moved(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", ErrChanged, err)
	}
	return err
}

func ignored(rel string, patterns []string) bool {
	name := path.Base(rel)
	if strings.Contains(name, captureMark) || strings.Contains(name, restoreMark) {
		return true
	}
	for _, p := range patterns {
		p = strings.TrimSuffix(p, "/")
		if ok, err := path.Match(p, name); ok && err == nil {
			return true
		}
		if ok, err := path.Match(p, rel); ok && err == nil {
			return true
		}
	}
	return false
}

// linkTarget reads a link, and makes it relative where it leads into the folder by its whole path.
func (s *scanner) linkTarget(rel string) (string, error) {
	target, err := s.tree.Readlink(rel)
	if err != nil {
		return "", err
	}
	if filepath.IsAbs(target) {
		whole, err := filepath.Abs(s.base)
		if err != nil {
			return "", err
		}
		from := filepath.Join(whole, filepath.Dir(filepath.FromSlash(rel)))
		if target, err = filepath.Rel(from, target); err != nil {
			return "", errOutward
		}
	}
	target = filepath.ToSlash(target)
	switch {
	case !inside(rel, target):
		return "", errOutward
	case !utf8.ValidString(target):
		return "", errName
	}
	return target, nil
}
