// Package folderblob stores blobs as the files of a folder. A blob appears whole or not at all.
package folderblob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"gocloud.dev/blob/driver"
	"gocloud.dev/gcerrors"
)

// Store stores each blob in its own file below a folder. A blob appears whole or not at all, even after kill -9 or a
// loss of power: Store writes it to a temporary file in the same folder, syncs it, links or renames it to its name,
// and syncs the folder. link(2) decides who creates a blob only if absent, so that exactly one of any processes wins.
//
// Store keeps no content type and no metadata, and refuses a write with metadata. A key cannot be both a blob and a
// prefix of another (a and a/b).
type Store struct {
	root string

	mu      sync.Mutex
	durable map[string]bool // folders whose names are known to be on disk
}

// New returns the driver for a folder, which it creates if missing and which must be writable.
func New(root string) (*Store, error) {
	root = filepath.Clean(root)
	if err := os.MkdirAll(root, 0o755); err != nil { // the umask limits who else may enter
		return nil, fmt.Errorf("make folder %s: %w", root, err)
	}
	probe, err := os.CreateTemp(root, asidePrefix)
	if err != nil {
		return nil, fmt.Errorf("write in folder %s: %w: name a folder that this user may write to", root, err)
	}
	err = errors.Join(probe.Close(), os.Remove(probe.Name()))
	if err != nil {
		return nil, fmt.Errorf("write in folder %s: %w", root, err)
	}
	return &Store{root: root, durable: map[string]bool{}}, nil
}

// ErrorCode classifies an error of this driver.
func (*Store) ErrorCode(err error) gcerrors.ErrorCode { return Code(err) }

// Code classifies an error of a folder.
func Code(err error) gcerrors.ErrorCode {
	switch {
	case errors.Is(err, context.Canceled):
		return gcerrors.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		return gcerrors.DeadlineExceeded
	case errors.Is(err, errKey):
		return gcerrors.InvalidArgument
	case errors.Is(err, errors.ErrUnsupported):
		return gcerrors.Unimplemented
	case errors.Is(err, fs.ErrExist):
		return gcerrors.FailedPrecondition
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EISDIR):
		return gcerrors.NotFound
	case errors.Is(err, fs.ErrPermission):
		return gcerrors.PermissionDenied
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, syscall.EFBIG):
		return gcerrors.ResourceExhausted
	}
	return gcerrors.Unknown
}

// As sets a *string to the folder's path.
func (f *Store) As(i any) bool {
	p, ok := i.(*string)
	if ok {
		*p = f.root
	}
	return ok
}

// ErrorAs returns the *fs.PathError or *os.LinkError in an error.
func (f *Store) ErrorAs(err error, i any) bool {
	switch i.(type) {
	case **fs.PathError, **os.LinkError:
		return errors.As(err, i)
	}
	return false
}

// Close does nothing: a Folder holds no file open.
func (f *Store) Close() error { return nil }

func (f *Store) path(key string) (string, error) {
	p, err := keyPath(key)
	if err != nil {
		return "", fmt.Errorf("folder %s: %w", f.root, err)
	}
	return filepath.Join(f.root, filepath.FromSlash(p)), nil
}

// open opens a blob for reading.
func (f *Store) open(key string) (*os.File, fs.FileInfo, error) {
	p, err := f.path(key)
	if err != nil {
		return nil, nil, err
	}
	file, err := os.OpenFile(p, os.O_RDONLY|syscall.O_NONBLOCK, 0) // does not wait for a pipe
	if err != nil {
		return nil, nil, err
	}
	stat, err := file.Stat()
	if err == nil && !stat.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: p, Err: fs.ErrNotExist}
	}
	if err != nil {
		_ = file.Close() // only read
		return nil, nil, err
	}
	return file, stat, nil
}

// Attributes describes a blob. The ETag changes whenever the blob is replaced.
func (f *Store) Attributes(_ context.Context, key string) (*driver.Attributes, error) {
	p, err := f.path(key)
	if err != nil {
		return nil, err
	}
	stat, err := os.Lstat(p)
	if err == nil && !stat.Mode().IsRegular() {
		err = &fs.PathError{Op: "stat", Path: p, Err: fs.ErrNotExist}
	}
	if err != nil {
		return nil, err
	}
	return &driver.Attributes{
		ContentType: contentType,
		ModTime:     stat.ModTime(),
		Size:        stat.Size(),
		ETag:        tag(stat),
	}, nil
}

func tag(stat fs.FileInfo) string {
	return fmt.Sprintf(`"%x-%x-%x"`, inode(stat), stat.ModTime().UnixNano(), stat.Size())
}

// contentType is the type that every blob of a folder reports.
const contentType = "application/octet-stream"

type folderReader struct {
	io.Reader
	file  *os.File
	attrs driver.ReaderAttributes
}

func (r *folderReader) Close() error                         { return r.file.Close() }
func (r *folderReader) Attributes() *driver.ReaderAttributes { return &r.attrs }

func (r *folderReader) As(i any) bool {
	p, ok := i.(**os.File)
	if ok {
		*p = r.file
	}
	return ok
}

// NewRangeReader reads length bytes from offset, or to the end if length is negative.
func (f *Store) NewRangeReader(_ context.Context, key string, offset, length int64,
	opts *driver.ReaderOptions) (driver.Reader, error) {
	file, stat, err := f.open(key)
	if err != nil {
		return nil, err
	}
	r := &folderReader{
		Reader: file,
		file:   file,
		attrs:  driver.ReaderAttributes{ContentType: contentType, ModTime: stat.ModTime(), Size: stat.Size()},
	}
	if offset > 0 {
		_, err = file.Seek(offset, io.SeekStart)
	}
	if err == nil && opts.BeforeRead != nil {
		err = opts.BeforeRead(func(i any) bool { return r.As(i) })
	}
	if err != nil {
		_ = file.Close() // only read
		return nil, err
	}
	if length >= 0 {
		r.Reader = io.LimitReader(file, length)
	}
	return r, nil
}

// Copy copies a blob; the copy appears whole or not at all.
func (f *Store) Copy(ctx context.Context, to, from string, opts *driver.CopyOptions) (err error) {
	if opts.BeforeCopy != nil {
		if err := opts.BeforeCopy(func(any) bool { return false }); err != nil {
			return err
		}
	}
	file, _, err := f.open(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := f.NewTypedWriter(ctx, to, "", &driver.WriterOptions{})
	if err != nil {
		return err
	}
	if _, err = io.Copy(w, file); err != nil {
		cancel() // makes Close discard the copy
		_ = w.Close()
		return err
	}
	return w.Close()
}

// Delete removes a blob and the folders that become empty.
func (f *Store) Delete(_ context.Context, key string) error {
	p, err := f.path(key)
	if err != nil {
		return err
	}
	stat, err := os.Lstat(p)
	if err == nil && !stat.Mode().IsRegular() {
		err = &fs.PathError{Op: "delete", Path: p, Err: fs.ErrNotExist}
	}
	if err == nil {
		err = os.Remove(p)
	}
	if err != nil {
		return err
	}
	dir := filepath.Dir(p)
	for ; dir != f.root && strings.HasPrefix(dir, f.root); dir = filepath.Dir(dir) {
		f.forget(dir)
		if os.Remove(dir) != nil {
			break // not empty, or another process was faster
		}
	}
	if err := syncFolder(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// SignedURL fails: a folder has no server.
func (f *Store) SignedURL(context.Context, string, *driver.SignedURLOptions) (string, error) {
	return "", fmt.Errorf("sign an address in folder %s: %w", f.root, errors.ErrUnsupported)
}
