package blob

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

// staleAside is the age at which a file that is being written is taken for the
// rest of a process that was killed. No write of one blob lasts this long.
const staleAside = 24 * time.Hour

// flushEvery is how many bytes are written before the disk is told to begin.
const flushEvery = 4 << 20

type folderWriter struct {
	ctx    context.Context // of the one write that this value is
	folder *Folder
	dir    string // of the blob
	path   string
	absent bool   // create only if absent
	later  *Later // nil where the blob is durable before it appears
	begun  int64  // bytes that are on their way to the disk
	size   int64
	aside  *aside // nil where the blob cannot appear
	err    error  // the first one; the blob will not appear
}

// NewTypedWriter begins to write a blob. It appears when Close returns without error.
func (f *Folder) NewTypedWriter(ctx context.Context, key, _ string, opts *driver.WriterOptions) (driver.Writer, error) {
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
	if w.absent { // spare the upload; link decides
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
		// The disk works while the next bytes come, and the sync has little left to do.
		startWriting(w.aside.file, w.begun, w.size-w.begun)
		w.begun = w.size
	}
	return n, w.err
}

// Close makes the blob appear, or throws it away after any error or when the
// context has ended.
func (w *folderWriter) Close() error {
	if w.err == nil {
		w.err = w.ctx.Err()
	}
	if w.err == nil && w.later == nil {
		w.err = w.aside.file.Sync()
	}
	if w.err == nil {
		w.err = w.ctx.Err() // a sync can last
	}
	if w.err == nil {
		// The folder may have been removed as empty meanwhile, where the file has no name.
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
	// A name that is taken is durable before anybody hears of it, too.
	if w.err == nil || w.absent && errors.Is(w.err, fs.ErrExist) {
		if err := syncFolder(w.dir); err != nil {
			w.err = err
		}
	}
	return w.folder.full(w.dir, w.err)
}

// full says which folder has no room left.
func (f *Folder) full(dir string, err error) error {
	if err == nil || strings.Contains(err.Error(), "free space there") {
		return err
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG) {
		return fmt.Errorf("write in folder %s: %w: free space there, or name another store", dir, err)
	}
	return err
}

// inFolder calls do with dir there and durable. Another process may remove the
// folder as empty between the two, so it tries again.
func (f *Folder) inFolder(dir string, do func() error) error {
	for try := 0; ; try++ {
		err := f.makeFolder(dir)
		if err == nil {
			err = do()
		}
		// EPERM is what ext4 says of a folder that was removed while it was opened.
		if err == nil || try == 100 || !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.EPERM) {
			return err
		}
		f.forget(dir)
	}
}

// makeFolder makes dir and syncs the folders above it, once in this process:
// another one may have made a folder and been killed before its sync.
func (f *Folder) makeFolder(dir string) error {
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

// forget drops what is known of dir and of all that lies below it.
func (f *Folder) forget(dir string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for d := range f.durable {
		if d == dir || strings.HasPrefix(d, dir+string(filepath.Separator)) {
			delete(f.durable, d)
		}
	}
}

// sweep removes what killed processes were writing in dir. Failing is no harm.
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
	// Some file systems cannot sync a folder, and say EINVAL or ENOTSUP.
	if err := d.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, syscall.ENOTSUP) {
		return err
	}
	return nil
}

// aside is a file that is being written. name is empty while it has none, so
// that a process that is killed leaves nothing.
type aside struct {
	file *os.File
	name string
}

// namedAside makes an aside with a name, where the system or the file system
// knows no other.
func namedAside(dir string) (*aside, error) {
	// not os.CreateTemp: others may read it as far as this process' mask lets them
	name := filepath.Join(dir, asidePrefix+rand.Text())
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) // likewise
	if err != nil {
		return nil, err
	}
	return &aside{file, file.Name()}, nil
}

// discard closes the file and removes what name it still has.
func (a *aside) discard() error { return errors.Join(a.file.Close(), a.unname()) }

// unname removes the name under which the file was written, where it still has it.
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
