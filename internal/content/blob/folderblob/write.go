package folderblob

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"gocloud.dev/blob/driver"
)

// staleAside is the age at which a temporary file counts as left by a killed process. No write of one blob takes this
// long.
const staleAside = 24 * time.Hour

// flushEvery is the number of written bytes after which the writer starts a flush to the disk.
const flushEvery = 4 << 20

type folderWriter struct {
	ctx    context.Context // of this one write
	folder *Store
	dir    string // of the blob
	path   string
	absent bool   // create only if absent
	later  *Later // nil: the blob is durable before it appears
	begun  int64  // bytes on their way to the disk
	size   int64
	aside  *aside // nil: the blob cannot appear
	err    error  // the first error, after which the blob does not appear
}

// NewTypedWriter starts to write a blob, which appears when Close returns without error.
func (f *Store) NewTypedWriter(ctx context.Context, key, _ string, opts *driver.WriterOptions) (driver.Writer, error) {
	if len(opts.Metadata) > 0 {
		return nil, fmt.Errorf("write %s with metadata in folder %s: %w", key, f.root, errors.ErrUnsupported)
	}
	path, err := f.path(key)
	if err != nil {
		return nil, err
	}
	w := &folderWriter{ctx: ctx, folder: f, dir: filepath.Dir(path), path: path, absent: opts.IfNotExist}
	if opts.BeforeWrite != nil {
		as := func(i any) (ok bool) { w.later, ok = i.(*Later); return ok }
		if err := opts.BeforeWrite(as); err != nil {
			return nil, err
		}
	}
	if w.absent { // saves the upload; link decides
		if _, err := os.Lstat(path); err == nil {
			w.err = &fs.PathError{Op: "create", Path: path, Err: fs.ErrExist}
			return w, nil
		}
	}
	if err := f.inFolder(w.dir, func() (err error) { w.aside, err = newAside(w.dir); return err }); err != nil {
		return nil, f.full(w.dir, err)
	}
	return w, nil
}

func (w *folderWriter) Write(p []byte) (int, error) {
	if w.err == nil {
		w.err = w.ctx.Err()
	}
	if w.err != nil {
		return 0, w.err
	}
	n, err := w.aside.file.Write(p)
	w.err = w.folder.full(w.dir, err)
	if w.size += int64(n); w.size-w.begun >= flushEvery {
		// The disk works while the next bytes come, so the sync has little left to do.
		startWriting(w.aside.file, w.begun, w.size-w.begun)
		w.begun = w.size
	}
	return n, w.err
}

// Close makes the blob appear, or discards it after any error or when the context has ended.
func (w *folderWriter) Close() error {
	if w.err == nil {
		w.err = w.ctx.Err()
	}
	if w.err == nil && w.later == nil {
		w.err = w.aside.file.Sync()
	}
	if w.err == nil {
		w.err = w.ctx.Err() // a sync may take long
	}
	if w.err == nil {
		// The folder may have been removed as empty meanwhile if the file has no name in it.
		w.err = w.folder.inFolder(w.dir, func() error { return w.aside.appear(w.path, w.absent) })
	}
	if w.err == nil && w.later != nil {
		startWriting(w.aside.file, w.begun, 0)
		w.err = w.aside.unname()
	}
	if w.err == nil && w.later != nil {
		return w.folder.full(w.dir, w.later.add(w.aside.file, w.dir))
	}
	if w.aside != nil {
		if err := w.aside.discard(); w.err == nil {
			w.err = err
		}
	}
	// A name that is already taken must also be durable before the caller hears of it.
	if w.err == nil || w.absent && errors.Is(w.err, fs.ErrExist) {
		if err := syncFolder(w.dir); err != nil {
			w.err = err
		}
	}
	return w.folder.full(w.dir, w.err)
}

// full adds which folder is full.
func (f *Store) full(dir string, err error) error {
	if err == nil || strings.Contains(err.Error(), "free space there") {
		return err
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG) {
		return fmt.Errorf("write in folder %s: %w: free space there, or name another store", dir, err)
	}
	return err
}

// inFolder calls do while dir exists and is durable. Another process may remove the folder as empty in between, so
// inFolder retries.
func (f *Store) inFolder(dir string, do func() error) error {
	for try := 0; ; try++ {
		err := f.makeFolder(dir)
		if err == nil {
			err = do()
		}
		// ext4 returns EPERM for a folder that was removed while it was being opened.
		if err == nil || try == 100 || !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.EPERM) {
			return err
		}
		f.forget(dir)
	}
}

// makeFolder creates dir and syncs the folders above it, once per process: another process may have created a folder
// and been killed before its sync.
func (f *Store) makeFolder(dir string) error {
	f.mu.Lock()
	known := f.durable[dir]
	f.mu.Unlock()
	if known {
		return nil
	}
	if dir != f.root {
		parent := filepath.Dir(dir)
		if err := f.makeFolder(parent); err != nil {
			return err
		}
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			f.forget(parent)
			return err
		}
		if err := syncFolder(parent); err != nil {
			f.forget(parent)
			return err
		}
	}
	sweep(dir)
	f.mu.Lock()
	f.durable[dir] = true
	f.mu.Unlock()
	return nil
}

// forget drops what is known of dir and everything below it.
func (f *Store) forget(dir string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for d := range f.durable {
		if d == dir || strings.HasPrefix(d, dir+string(filepath.Separator)) {
			delete(f.durable, d)
		}
	}
}

// sweep removes the temporary files of killed processes in dir. It ignores errors, which are harmless.
func sweep(dir string) {
	names, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, n := range names {
		if !strings.HasPrefix(n.Name(), asidePrefix) {
			continue
		}
		if stat, err := n.Info(); err == nil && time.Since(stat.ModTime()) > staleAside {
			_ = os.Remove(filepath.Join(dir, n.Name()))
		}
	}
}

// syncFolder makes the names in a folder durable.
func syncFolder(dir string) (err error) {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	// Some file systems cannot sync a folder, and return EINVAL or ENOTSUP.
	if err := d.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, syscall.ENOTSUP) {
		return err
	}
	return nil
}

// aside is a temporary file. name is empty while it has no name, so that a killed process leaves nothing.
type aside struct {
	file *os.File
	name string
}

// namedAside creates a temporary file with a name, if the system or the file system supports no other.
func namedAside(dir string) (*aside, error) {
	// os.CreateTemp would ignore the umask and let nobody else read it.
	name := filepath.Join(dir, asidePrefix+rand.Text())
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) // 0o644 minus the umask
	if err != nil {
		return nil, err
	}
	return &aside{file, file.Name()}, nil
}

// discard closes the file and removes its remaining name.
func (a *aside) discard() error { return errors.Join(a.file.Close(), a.unname()) }

// unname removes the temporary name if the file still has it.
func (a *aside) unname() error {
	if a.name == "" {
		return nil
	}
	if err := os.Remove(a.name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	a.name = ""
	return nil
}
