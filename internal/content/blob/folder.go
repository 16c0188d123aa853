package blob

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

// Folder keeps each blob in a file of its own below a folder. A blob appears
// whole or not at all, also after kill -9 or a loss of power: it is written
// aside in its own folder, synced, linked or renamed to its name, and the
// folder is synced. Creating a blob only if it is absent is decided by link(2),
// so that among any processes exactly one wins.
//
// It keeps no content type and no metadata; a write that has metadata is
// refused. A key cannot be both a blob and the beginning of another (a and a/b).
type Folder struct {
	root string

	mu      sync.Mutex
	durable map[string]bool // folders whose names are known to be on the disk
}

// NewFolder returns the driver for a folder, which is made where it is missing
// and must take a file.
func NewFolder(root string) (*Folder, error) {
	root = filepath.Clean(root)
	if err := os.MkdirAll(root, 0o755); err != nil { // as far as this process' mask lets others in
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
	return &Folder{root: root, durable: map[string]bool{}}, nil
}

// ErrorCode classifies an error of this driver.
func (*Folder) ErrorCode(err error) gcerrors.ErrorCode { return Code(err) }

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

// As gives the folder's path to a *string.
func (f *Folder) As(i any) bool {
	p, ok := i.(*string)
	if ok {
		*p = f.root
	}
	return ok
}

// ErrorAs gives the *fs.PathError or *os.LinkError within an error.
func (f *Folder) ErrorAs(err error, i any) bool {
	switch i.(type) {
	case **fs.PathError, **os.LinkError:
		return errors.As(err, i)
	}
	return false
}

// Close does nothing: a folder is not held open.
func (f *Folder) Close() error { return nil }

func (f *Folder) path(key string) (string, error) {
	p, err := keyPath(key)
	if err != nil {
		return "", fmt.Errorf("folder %s: %w", f.root, err)
	}
	return filepath.Join(f.root, filepath.FromSlash(p)), nil
}

// open opens a blob for reading.
func (f *Folder) open(key string) (*os.File, fs.FileInfo, error) {
	p, err := f.path(key)
	if err != nil {
		return nil, nil, err
	}
	file, err := os.OpenFile(p, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe is not waited for
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
func (f *Folder) Attributes(_ context.Context, key string) (*driver.Attributes, error) {
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

// contentType is what every blob of a folder is said to be.
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

// NewRangeReader reads length bytes from offset, or to the end where length is negative.
func (f *Folder) NewRangeReader(_ context.Context, key string, offset, length int64,
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
func (f *Folder) Copy(ctx context.Context, to, from string, opts *driver.CopyOptions) (err error) {
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
		cancel() // so that Close throws it away
		_ = w.Close()
		return err
	}
	return w.Close()
}

// Delete removes a blob, and the folders that it leaves empty.
func (f *Folder) Delete(_ context.Context, key string) error {
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
			break // not empty, or somebody else was faster
		}
	}
	if err := syncFolder(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// SignedURL is not possible: a folder serves nobody.
func (f *Folder) SignedURL(context.Context, string, *driver.SignedURLOptions) (string, error) {
	return "", fmt.Errorf("sign an address in folder %s: %w", f.root, errors.ErrUnsupported)
}
