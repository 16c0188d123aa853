// Package flow bounds what is in flow while a folder is stored: the bytes of a stream, the disk that a write takes, and
// the files that are read at once.
package flow

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"scrimp/internal/server/disk"
)

// ErrNoRoom means that a write would use space reserved for the log.
var ErrNoRoom = errors.New("the server's disk has no room")

// Roomy reads while the disk has room beside what is reserved for the log.
type Roomy struct {
	Room disk.Room
	From io.Reader
}

func (r *Roomy) Read(p []byte) (int, error) {
	if r.Room.Full(0) != nil {
		return 0, ErrNoRoom
	}
	return r.From.Read(p)
}

// AtMost reads up to Left bytes and then fails.
type AtMost struct {
	From io.Reader
	Left int64
	What string // names the stream in the error
	read int64
}

func (a *AtMost) Read(p []byte) (int, error) {
	if a.Left <= 0 {
		return 0, fmt.Errorf("%s is more than %d GiB as a tar file", a.What, a.read>>30)
	}
	n, err := a.From.Read(p[:min(int64(len(p)), a.Left)])
	a.Left, a.read = a.Left-int64(n), a.read+int64(n)
	return n, err
}

// ReadAll reads up to size bytes.
func ReadAll(from io.Reader, size int64) ([]byte, error) {
	text := make([]byte, size)
	n, err := io.ReadFull(from, text)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return text[:n], err
}

// Place writes a file of the store in one call, and returns its time. A file that a crash has left incomplete has
// another size, so that nobody takes it for whole, and Place replaces it.
func Place(path string, text []byte, room disk.Room) (is time.Time, err error) {
	if room.Full(0) != nil {
		return is, ErrNoRoom
	}
	create := func() (*os.File, error) { return os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) }
	f, err := create()
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(filepath.Dir(path), 0o700); err == nil {
			f, err = create()
		}
	}
	if errors.Is(err, fs.ErrExist) {
		f, err = os.CreateTemp(filepath.Dir(path), "new-*")
	}
	if err != nil {
		return is, err
	}
	_, err = f.Write(text)
	info, statErr := f.Stat()
	if err = errors.Join(err, statErr, f.Close()); err == nil && f.Name() != path {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return is, errors.Join(err, os.Remove(f.Name()))
	}
	return info.ModTime(), nil
}

// atOnce is how many files are read at once: opening a small one takes longer than hashing it.
const atOnce = 8

// Group runs functions, some at once. The zero Group is ready for use.
type Group struct {
	wg   sync.WaitGroup
	once sync.Once
	room chan struct{}
	mu   sync.Mutex
	err  error
}

// Go runs do in a goroutine of its own, once fewer than atOnce others run, and closes what do reads. After an error it
// runs nothing more, and returns the error.
func (g *Group) Go(from io.Closer, do func() error) error {
	g.once.Do(func() { g.room = make(chan struct{}, atOnce) })
	g.room <- struct{}{}
	g.mu.Lock()
	failed := g.err
	g.mu.Unlock()
	if failed != nil {
		<-g.room
		return errors.Join(failed, from.Close())
	}
	g.wg.Go(func() {
		defer func() { <-g.room }()
		defer func() { _ = from.Close() }() // only read
		if err := do(); err != nil {
			g.mu.Lock()
			defer g.mu.Unlock()
			if g.err == nil {
				g.err = err
			}
		}
	})
	return nil
}

// Wait waits for all of them and returns the first error.
func (g *Group) Wait() error {
	g.wg.Wait()
	return g.err
}
