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
	"strings"
	"time"

	"scrimp/internal/lib/confined"
	"scrimp/internal/server/disk"
)

// small is how many bytes of content are hashed in memory, so that what is there already is not written again.
const small = 1 << 20

// writer keeps a folder in the store.
type writer struct {
	s     *Store
	sent  bool // by somebody else: it may have no link to a place of the machine
	old   bool // it was taken before: its links are as they are
	tree  tree
	fresh map[string]time.Time // contents that were not there before, and when they came
}

// noRule leaves nothing out.
func noRule(string, bool) bool { return false }

// folder keeps what lies in a folder of this machine.
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

// one keeps a file, a folder or a link; what is none of these is left out.
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

// unpack keeps what a tar file in gzip holds.
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
			err = fmt.Errorf("%s is neither a file, a folder nor a link", shown(e.name))
		}
		if err != nil {
			return err
		}
	}
}

// plain is a time that every file system keeps.
func plain(at time.Time) time.Time {
	if at.Year() < 1970 || at.Year() > 2200 {
		return time.Unix(0, 0)
	}
	return at
}

func (w *writer) dir(e entry) error {
	if e.kind, e.size = tar.TypeDir, 0; e.mode == 0 { // nobody said
		e.mode = 0o700
	}
	return w.tree.add(e)
}

func (w *writer) link(e entry) error {
	if path.IsAbs(e.link) && (w.sent || e.name == ignoreName && !w.old) {
		return leadsOut(e.name, e.link)
	}
	e.kind, e.size, e.mode = tar.TypeSymlink, 0, 0o777
	return w.tree.add(e)
}

// known keeps a file whose content is there.
func (w *writer) known(e entry) error {
	if err := checkFile(e.name, e.size); err != nil {
		return err
	}
	e.kind, e.mode = tar.TypeReg, e.mode|0o600
	return w.tree.add(e)
}

// file keeps a file of a content that may be there or not. Its limits are held before it is read.
func (w *writer) file(e entry, from io.Reader) (err error) {
	if err := w.known(e); err != nil {
		return err
	}
	sum, n, err := w.content(from, e.size)
	if err == nil && n != e.size {
		err = fmt.Errorf("%s is shorter than it said: %w", shown(e.name), io.ErrUnexpectedEOF)
	}
	w.tree.entries[e.name].sum = sum
	return err
}

// content keeps what a reader has.
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

// put keeps what was written aside.
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

// has reports whether content of that sum is there. What came with this folder is still its own.
func (w *writer) has(sum string, size int64) bool {
	at, there := w.s.has(sum, size)
	if _, ours := w.fresh[sum]; ours && there {
		w.fresh[sum] = at
	}
	return there
}

// finish keeps the list of the folder.
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
		err = syncAll(w.s.Dir) // once for all: a name never stands for what a loss of power has undone
	}
	return Ref{Tree: sum, Bytes: w.tree.count.bytes, Disk: w.tree.count.disk, Files: w.tree.count.files}, err
}

// takeBack removes the contents that came with a folder which is not kept, but for those that somebody else has
// needed meanwhile: their time is another.
func (w *writer) takeBack() {
	w.s.sweep.Lock()
	defer w.s.sweep.Unlock()
	for sum, at := range w.fresh {
		path := w.s.object(sum)
		if info, err := os.Stat(path); err == nil && info.ModTime().Equal(at.Round(0)) {
			_ = os.Remove(path) // Sweep does else
		}
	}
}

// ErrNoRoom says that what is written would take of the room that is left to the log.
var ErrNoRoom = errors.New("the server's disk has no room")

// roomy reads as long as the server's disk has room beside what the log needs.
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

// atMost reads so many bytes and then fails.
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

// isAside reports whether a name is one of a file that is not whole: such a folder brings nothing.
func isAside(path string) bool {
	return strings.HasPrefix(filepath.Base(path), ".") || strings.HasSuffix(path, ".tmp")
}
