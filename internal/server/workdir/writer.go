package workdir

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sync"
	"time"

	"scrimp/internal/lib/confined"
	"scrimp/internal/lib/durable"
	"scrimp/internal/server/workdir/flow"
	"scrimp/internal/server/workdir/pack"
	"scrimp/internal/server/workdir/seen"
)

// small is the size up to which content is hashed in memory, so that content in the store is not written again.
const small = 1 << 20

// writer stores a folder.
type writer struct {
	s    *Store
	sent bool // uploaded: no links to paths of the host
	old  bool // from an earlier release: its links stay as they are
	tree tree
	seen *seen.Files // contents of files that have not changed since they were read

	reading flow.Group // of files of this host
	mu      sync.Mutex
	fresh   map[string]time.Time // contents new to the store, with their times
}

// noRule excludes nothing.
func noRule(string, bool) bool { return false }

// folder stores a folder of this host.
func (w *writer) folder(from string, ignored func(rel string, isFolder bool) bool) error {
	t, err := confined.Folder{Path: from}.Open()
	if err != nil {
		return err
	}
	defer func() { _ = t.Close() }() // only read
	err = t.Walk(".", func(rel string, e fs.DirEntry, err error) error {
		if err != nil || rel == "." {
			return err
		}
		if ignored(rel, e.IsDir()) {
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		return w.one(t, filepath.ToSlash(rel))
	})
	return cmp.Or(w.reading.Wait(), err)
}

// one stores a file, a folder or a link, and skips anything else.
func (w *writer) one(t *confined.Tree, name string) error {
	info, err := t.Lstat(name)
	if err != nil {
		return err
	}
	e := entry{mode: info.Mode().Perm(), made: info.ModTime(), name: name}
	switch info.Mode().Type() {
	case fs.ModeDir:
		return w.dir(e)
	case fs.ModeSymlink:
		if e.link, err = t.Readlink(name); err != nil {
			return err
		}
		return w.link(e)
	case 0:
	default:
		return nil
	}
	if sum, known := w.seen.Of(info); known && w.has(sum, info.Size()) { // it is not read
		e.size, e.sum = info.Size(), sum
		return w.known(e)
	}
	f, err := t.File(name)
	if err != nil {
		return err
	}
	if info, err = f.Stat(); err != nil {
		return errors.Join(err, f.Close())
	}
	e.size = info.Size()
	if err := w.known(e); err != nil {
		return errors.Join(err, f.Close())
	}
	at := w.tree.entries[e.name]
	return w.reading.Go(f, func() (err error) {
		at.sum, err = w.read(f, info)
		return err
	})
}

// read stores the content of a file of this host.
func (w *writer) read(f *os.File, info fs.FileInfo) (sum string, err error) {
	size, n := info.Size(), int64(0)
	if size > small {
		hash := sha256.New()
		if n, err = io.Copy(hash, io.LimitReader(f, size)); err == nil {
			_, err = f.Seek(0, io.SeekStart)
		}
		sum = hex.EncodeToString(hash.Sum(nil))
	}
	if err == nil && (size <= small || n != size || !w.has(sum, n)) {
		sum, n, err = w.content(io.LimitReader(f, size), size)
	}
	if err == nil && n != size {
		err = fmt.Errorf("%s is shorter than announced: %w", quote(f.Name()), io.ErrUnexpectedEOF)
	}
	if after, statErr := f.Stat(); err == nil && statErr == nil {
		w.seen.Add(info, after, sum)
	}
	return sum, err
}

// unpack stores the contents of a tar file in gzip.
func (w *writer) unpack(r io.Reader) error {
	zip, err := gzip.NewReader(r)
	if err != nil {
		return err
	}
	w.sent = true
	t := tar.NewReader(&flow.AtMost{From: zip, Left: maxStream, What: "the folder"})
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		e := entry{mode: fs.FileMode(h.Mode).Perm(), size: h.Size, made: plain(h.ModTime), name: entryOf(h)}
		switch {
		case h.Typeflag == tar.TypeDir && e.name == "":
		case h.Typeflag == tar.TypeDir:
			err = w.dir(e)
		case h.Typeflag == tar.TypeSymlink:
			e.link = h.Linkname
			err = w.link(e)
		case h.Typeflag == tar.TypeReg:
			err = w.file(e, t)
		default:
			err = fmt.Errorf("%s is neither a file, a folder nor a link", quote(e.name))
		}
		if err != nil {
			return err
		}
	}
}

// plain returns a time that every file system can store.
func plain(at time.Time) time.Time {
	if at.Year() < 1970 || at.Year() > 2200 {
		return time.Unix(0, 0)
	}
	return at
}

func (w *writer) dir(e entry) error {
	if e.kind, e.size = tar.TypeDir, 0; e.mode == 0 { // the tar file has no mode
		e.mode = 0o700
	}
	return w.tree.add(e)
}

func (w *writer) link(e entry) error {
	if path.IsAbs(e.link) && (w.sent || e.name == pack.IgnoreName && !w.old) {
		return errLeadsOut(e.name, e.link)
	}
	e.kind, e.size, e.mode = tar.TypeSymlink, 0, 0o777
	return w.tree.add(e)
}

// known adds a file whose content is in the store.
func (w *writer) known(e entry) error {
	if err := pack.CheckFile(e.name, e.size); err != nil {
		return err
	}
	e.kind, e.mode = tar.TypeReg, e.mode|0o600
	return w.tree.add(e)
}

// file stores a file whose content may be in the store already. It checks the limits before it reads.
func (w *writer) file(e entry, from io.Reader) (err error) {
	if err := w.known(e); err != nil {
		return err
	}
	sum, n, err := w.content(from, e.size)
	if err == nil && n != e.size {
		err = fmt.Errorf("%s is shorter than announced: %w", quote(e.name), io.ErrUnexpectedEOF)
	}
	w.tree.entries[e.name].sum = sum
	return err
}

// content stores the content of a reader.
func (w *writer) content(from io.Reader, size int64) (sum string, n int64, err error) {
	if size <= small {
		text, err := flow.ReadAll(from, size)
		if sum, n = sumOf(text), int64(len(text)); err != nil || w.has(sum, n) {
			return sum, n, err
		}
		at, err := w.s.place(sum, text)
		w.note(sum, at, err == nil)
		return sum, n, err
	}
	f, err := w.s.aside()
	if err != nil {
		return "", 0, err
	}
	hash := sha256.New()
	n, err = io.Copy(io.MultiWriter(f, hash), &flow.Roomy{Room: w.s.Room, From: from})
	if err = errors.Join(err, f.Close()); err == nil {
		sum = hex.EncodeToString(hash.Sum(nil))
		err = w.put(f.Name(), sum, n)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return sum, n, err
}

// put moves a temporary file into the store.
func (w *writer) put(aside, sum string, size int64) error {
	at, fresh, err := w.s.put(aside, sum, size)
	w.note(sum, at, fresh && err == nil)
	return err
}

// note sets the time of a content that is new with this folder: now, or since before.
func (w *writer) note(sum string, at time.Time, fresh bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if fresh && w.fresh == nil {
		w.fresh = map[string]time.Time{}
	}
	if _, ours := w.fresh[sum]; ours || fresh {
		w.fresh[sum] = at
	}
}

// has reports whether the store has the content. Content that is new with this folder stays its own.
func (w *writer) has(sum string, size int64) bool {
	at, there := w.s.has(sum, size)
	w.note(sum, at, false) // a content that is gone is put again
	return there
}

// finish stores the list of the folder.
func (w *writer) finish() (Ref, error) {
	if !w.old {
		if err := w.tree.checkLinks(); err != nil {
			return Ref{}, err
		}
	}
	var list bytes.Buffer
	if err := w.tree.write(&list); err != nil {
		return Ref{}, err
	}
	sum, _, err := w.content(&list, int64(list.Len()))
	if err == nil && len(w.fresh) > 0 {
		err = durable.SyncAll(w.s.Dir) // once for all, so that a name never refers to data that a power failure has undone
	}
	return Ref{Tree: sum, Bytes: w.tree.count.bytes, Disk: w.tree.count.disk, Files: w.tree.count.files}, err
}

// removeNew removes the contents that are new with a folder that failed, except those that another folder needed
// meanwhile, which have a later time.
func (w *writer) removeNew() {
	w.s.sweep.Lock()
	defer w.s.sweep.Unlock()
	for sum, at := range w.fresh {
		path := w.s.object(sum)
		if info, err := os.Stat(path); err == nil && info.ModTime().Equal(at.Round(0)) {
			_ = os.Remove(path) // on an error, Sweep removes it
		}
	}
}

// ErrNoRoom means that a write would use space reserved for the log.
var ErrNoRoom = flow.ErrNoRoom
