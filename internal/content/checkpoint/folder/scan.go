package folder

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"scrimp/internal/content/checkpoint/format"
	"scrimp/internal/lib/confined"
)

// Source is a file to publish.
type Source struct {
	format.File
	from   string         // path to read
	in     *confined.Tree // tree in which to read it by its path; nil: read from
	linked bool           // the program can still write to it
	state  identity       // state at the capture
}

// open opens the file for reading.
func (s *Source) open() (*os.File, error) {
	if s.in == nil {
		return os.Open(s.from)
	}
	return s.in.File(s.Path)
}

// lstat returns the file's current state.
func (s *Source) lstat() (fs.FileInfo, error) {
	if s.in == nil {
		return os.Lstat(s.from)
	}
	return s.in.Lstat(s.Path)
}

// identity distinguishes the states of a file.
type identity struct {
	inode    uint64
	size     int64
	modified int64 // nanoseconds since 1970
}

func stateOf(stat fs.FileInfo) identity {
	return identity{inode(stat), stat.Size(), stat.ModTime().UnixNano()}
}

// Reasons to leave a file out of a copy.
var (
	errOutward    = errors.New("it leads out of the folder: let the program copy what it leads to")
	errName       = errors.New("its name, or where the link leads, is not UTF-8: rename it")
	errUnreadable = errors.New("its mode or owner prevents reading it: let the program change that")
	errLarge      = fmt.Errorf("it has more than %d TiB, most of it holes: let the program write less", MostBytes>>40)
)

// ErrFolder says that what is to be kept cannot be listed; a retry is useless.
var ErrFolder = errors.New("the folder cannot be listed")

// scan lists a folder, sorted by path, without what cannot be copied.
func scan(tree *confined.Tree, dir string, ignore []string) ([]Source, Left, error) {
	s := scanner{tree: tree, base: dir, ignore: ignore}
	if err := s.walk("."); err != nil {
		return nil, nil, err
	}
	slices.SortFunc(s.found, func(a, b Source) int { return cmp.Compare(a.Path, b.Path) })
	return s.found, s.left, fits(s.found)
}

// MostBytes bounds the bytes in a manifest: half a million parts of 8 MiB, in 64 MiB of text. A sparse file can have
// any size at no cost to its owner.
const MostBytes = 4 << 40

// fits returns why files cannot be published as one checkpoint; nil if they can.
func fits(found []Source) error {
	left := int64(MostBytes)
	for _, f := range found {
		if left -= f.Size; left < 0 {
			return fmt.Errorf("it holds more than %d TiB, %s among it with %d bytes: save less, or remove files that are "+
				"mostly holes", MostBytes>>40, f.Path, f.Size)
		}
	}
	return nil
}

// scanner finds files, folders, and links that stay inside base. Checkpoints contain no sockets, pipes or devices.
type scanner struct {
	tree   *confined.Tree
	base   string // the tree's path
	ignore []string
	found  []Source
	left   Left
}

// walk lists everything at the slash path below base, including that path unless it is base.
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

// skip skips an entry and everything in it.
func skip(d fs.DirEntry) error {
	if d.IsDir() {
		return fs.SkipDir
	}
	return nil
}

// unreadable reports whether the agent may not read a file of the program.
func unreadable(err error) bool { return errors.Is(err, fs.ErrPermission) }

func (s *scanner) add(rel string, d fs.DirEntry) error {
	stat, err := d.Info()
	if err != nil {
		return err
	}
	f := Source{
		File: format.File{Path: rel, Mode: stat.Mode() & (fs.ModeType | fs.ModePerm), Modified: stat.ModTime().UTC()},
		from: filepath.Join(s.base, filepath.FromSlash(rel)), in: s.tree,
	}
	switch stat.Mode().Type() {
	case 0:
		if f.state, f.Size = stateOf(stat), stat.Size(); f.Size > MostBytes {
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

// moved marks the disappearance of a file as a change.
func moved(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", ErrChanged, err)
	}
	return err
}

func ignored(rel string, patterns []string) bool {
	name := path.Base(rel)
	if strings.Contains(name, captureMark) || strings.Contains(name, RestoreMark) {
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

// linkTarget reads a link, and makes an absolute link into the folder relative.
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
	case !format.Inside(rel, target):
		return "", errOutward
	case !utf8.ValidString(target):
		return "", errName
	}
	return target, nil
}

// keepable returns the files that can be read and fit into a manifest. They are sorted by path.
func (s *scanner) keepable(all []Source) []Source {
	bytes, text := int64(MostBytes), format.MostBytes-1024
	return slices.DeleteFunc(all, func(f Source) bool {
		if text -= f.text(); text < 0 { // skip all later files, too: a folder must not be missing from its files
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
		return false // reading reports any other error
	})
}

// text returns a lower bound of the bytes that a manifest needs for the file.
func (s *Source) text() int {
	name, _ := json.Marshal(s.Path + s.Target) // marshalling a string never fails
	return 160 + len(name) + int((s.Size+format.PartSize-1)/format.PartSize)*112
}

// ReadAt fills the buffer; a file that has become shorter has changed.
func (s *Source) ReadAt(offset int64, buffer []byte) (err error) {
	f, err := s.open()
	if err != nil {
		return moved(err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	n, err := f.ReadAt(buffer, offset)
	if errors.Is(err, io.EOF) && n == len(buffer) {
		return nil
	}
	if errors.Is(err, io.EOF) {
		return ErrChanged
	}
	return err
}

// errFull says that a manifest has no more room.
var errFull = fmt.Errorf("outputs have room for %d TiB and some 200,000 files: let the program write an archive, "+
	"or fewer", MostBytes>>40)

// Gather lists the named folders and files below a tree at path base, under those names. It leaves out what cannot be
// kept.
func Gather(tree *confined.Tree, base string, folders []string) ([]Source, Left, error) {
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
			s.found = append(s.found, Source{File: format.File{Path: at, Mode: fs.ModeDir | 0o755}})
		}
	}
	slices.SortFunc(s.found, func(a, b Source) int { return strings.Compare(a.Path, b.Path) })
	all := slices.CompactFunc(s.found, func(a, b Source) bool { return a.Path == b.Path })
	return s.keepable(all), s.left, nil
}
