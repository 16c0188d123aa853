package workdir

import (
	"archive/tar"
	"bytes"
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
	"time"

	"scrimp/internal/lib/confined"
	"scrimp/internal/server/disk"
	"scrimp/internal/server/workdir/pack"
)

// small is the size up to which content is hashed in memory, so that content in the store is not written again.
const small = 1 << 20

// writer stores a folder.
type writer struct {
	s     *Store
	sent  bool // uploaded: no links to paths of the host
	old   bool // from an earlier release: its links stay as they are
	tree  tree
	fresh map[string]time.Time // contents new to the store, with their times
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
	return t.Walk(".", func(rel string, e fs.DirEntry, err error) error {
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
	f, err := t.File(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only read
	if info, err = f.Stat(); err != nil {
		return err
	}
	e.size = info.Size()
	hash := sha256.New()
	n, err := io.Copy(hash, io.LimitReader(f, e.size))
	if err != nil {
		return err
	}
	if e.sum = hex.EncodeToString(hash.Sum(nil)); n == e.size && w.has(e.sum, n) {
		return w.known(e)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return w.file(e, io.LimitReader(f, e.size))
}

// unpack stores the contents of a tar file in gzip.
func (w *writer) unpack(r io.Reader) error {
	zip, err := gzip.NewReader(r)
	if err != nil {
		return err
	}
	w.sent = true
	t := tar.NewReader(&atMost{from: zip, left: maxStream})
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
		text, err := io.ReadAll(from)
		if sum, n = sumOf(text), int64(len(text)); err != nil || w.has(sum, n) {
			return sum, n, err
		}
		from = bytes.NewReader(text)
	}
	f, err := w.s.aside()
	if err != nil {
		return "", 0, err
	}
	hash := sha256.New()
	n, err = io.Copy(io.MultiWriter(f, hash), &roomy{room: w.s.Room, from: from})
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
	if err != nil {
		return err
	}
	if fresh && w.fresh == nil {
		w.fresh = map[string]time.Time{}
	}
	if _, ours := w.fresh[sum]; ours || fresh {
		w.fresh[sum] = at
	}
	return nil
}

// has reports whether the store has the content. Content that is new with this folder stays its own.
func (w *writer) has(sum string, size int64) bool {
	at, there := w.s.has(sum, size)
	if _, ours := w.fresh[sum]; ours && there {
		w.fresh[sum] = at
	}
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
		err = syncAll(w.s.Dir) // once for all, so that a name never refers to data that a power failure has undone
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
var ErrNoRoom = errors.New("the server's disk has no room")

// roomy reads while the disk has room beside what is reserved for the log.
type roomy struct {
	room disk.Room
	from io.Reader
}

func (r *roomy) Read(p []byte) (int, error) {
	if r.room.Full(0) != nil {
		return 0, ErrNoRoom
	}
	return r.from.Read(p)
}

// atMost reads up to left bytes and then fails.
type atMost struct {
	from io.Reader
	left int64
}

func (a *atMost) Read(p []byte) (int, error) {
	if a.left <= 0 {
		return 0, fmt.Errorf("the folder is more than %d GiB as a tar file", int64(maxStream)>>30)
	}
	n, err := a.from.Read(p[:min(int64(len(p)), a.left)])
	a.left -= int64(n)
	return n, err
}
