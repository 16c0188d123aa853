package datacache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
)

// mostFiles bounds the files of an input.
const mostFiles = 1_000_000

// File is a file of an input.
type File struct {
	Name    string // below the input, with slashes
	Bytes   int64
	Version string // differs once the content does
	MD5     []byte // of the content; nil: unknown
}

// Source is where the files of an input lie.
type Source interface {
	// Address identifies the source: a file of the same name, size and version at the same address is the same.
	Address() string
	// List returns the files, at most mostFiles.
	List(ctx context.Context) ([]File, error)
	// Open reads a file from offset on. The reader returns ErrChanged, at the latest at its end, if the file is not the
	// one that was listed.
	Open(ctx context.Context, f File, offset int64) (io.ReadCloser, error)
	// Requests returns how many requests to the store List and Open have made.
	Requests() int64
	Close() error
}

// checkNames sorts the files, and returns an error if they cannot lie in one folder.
func checkNames(files []File) error {
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	if len(files) > mostFiles {
		return fmt.Errorf("%w: it has more than %d files: pack them into shards", ErrInput, mostFiles)
	}
	names := make(map[string]bool, len(files))
	for _, f := range files {
		if !fs.ValidPath(f.Name) || strings.ContainsRune(f.Name, 0) {
			return fmt.Errorf("%w: the name %.80q cannot be that of a file: rename it", ErrInput, f.Name)
		}
		if names[f.Name] {
			return fmt.Errorf("%w: it has two files %q", ErrInput, f.Name)
		}
		names[f.Name] = true
	}
	for _, f := range files {
		for dir := path.Dir(f.Name); dir != "."; dir = path.Dir(dir) {
			if names[dir] {
				return fmt.Errorf("%w: %q is both a file and a folder: rename one", ErrInput, dir)
			}
		}
	}
	return nil
}

// folder is a Source on a file system that the machine has mounted.
type folder struct {
	dir      string
	root     *os.Root
	only     string // the one file; "": all below dir
	requests atomic.Int64
}

// OpenFolder returns the files below a folder, or a single file.
func OpenFolder(name string) (Source, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	f := &folder{dir: filepath.Clean(name)}
	if !info.IsDir() {
		f.dir, f.only = filepath.Split(f.dir)
	}
	f.root, err = os.OpenRoot(f.dir)
	return f, err
}

func (f *folder) Address() string { return "file://" + filepath.Clean(f.dir) }
func (f *folder) Requests() int64 { return f.requests.Load() }
func (f *folder) Close() error    { return f.root.Close() }

func (f *folder) List(ctx context.Context) (list []File, err error) {
	add := func(name string) error {
		info, err := f.root.Stat(name) // follows links that stay within the folder
		if err != nil {
			return f.unread(name, err)
		}
		if info.IsDir() || !info.Mode().IsRegular() {
			return fmt.Errorf("%w: %s is not a regular file: leave out links to folders, pipes and devices", ErrInput, name)
		}
		list = append(list, File{Name: name, Bytes: info.Size(), Version: stampOf(info)})
		return nil
	}
	if f.only != "" {
		return list, errors.Join(add(f.only), ctx.Err())
	}
	err = fs.WalkDir(f.root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case d.IsDir():
			return nil
		case len(list) > mostFiles:
			return checkNames(list)
		}
		return add(name)
	})
	if err == nil && len(list) == 0 { // a file system that is not mounted looks so, too
		err = fmt.Errorf("%w: no file lies there: correct the path, or mount it", ErrInput)
	}
	return list, err
}

// unread explains why a name of the folder cannot be read: err, or a link that leads elsewhere.
func (f *folder) unread(name string, err error) error {
	if info, linkErr := f.root.Lstat(name); linkErr != nil || info.Mode()&fs.ModeSymlink == 0 {
		return err
	}
	to, linkErr := f.root.Readlink(name)
	if linkErr != nil {
		return err
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: the link %.200s leads out of the folder, to %.200s: bring a folder that contains both, or "+
			"copy the file (cp -L)", ErrInput, name, to)
	}
	return fmt.Errorf("%w: the link %.200s leads to %.200s, which does not exist: remove it", ErrInput, name, to)
}

func (f *folder) Open(_ context.Context, file File, offset int64) (io.ReadCloser, error) {
	f.requests.Add(1)
	open, err := f.root.Open(file.Name)
	if err != nil {
		return nil, err
	}
	r := &localReader{open, file.Version}
	if err := r.check(); err != nil {
		return nil, errors.Join(err, open.Close())
	}
	if _, err := open.Seek(offset, io.SeekStart); err != nil {
		return nil, errors.Join(err, open.Close())
	}
	return r, nil
}

// localReader reads a file, and checks at its end that it has not changed since it was listed.
type localReader struct {
	*os.File
	version string
}

func (r *localReader) check() error {
	info, err := r.Stat()
	if err == nil && stampOf(info) != r.version {
		err = ErrChanged
	}
	return err
}

func (r *localReader) Read(b []byte) (int, error) {
	n, err := r.File.Read(b)
	if errors.Is(err, io.EOF) {
		if bad := r.check(); bad != nil {
			err = bad
		}
	}
	return n, err
}
