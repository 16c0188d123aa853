package disk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
)

// ReserveName is a file in the data folder that the server deletes when the disk is full.
const ReserveName = "reserve"

// reserveSize is its size in bytes: enough for the ends of a thousand jobs.
const reserveSize = 16 << 20

// Reserve holds disk space, so that on a full disk the server can still answer, log and stop.
type Reserve struct {
	Dir  string // the data folder
	Room Room

	mu sync.Mutex
}

// Take creates the reserve if there is none. If the disk has no space to spare, it creates none.
func (r *Reserve) Take() (held bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	path := filepath.Join(r.Dir, ReserveName)
	if info, err := os.Stat(path); err == nil && info.Size() == reserveSize {
		return true, nil
	}
	if left, known := r.Room(); known && left.Bytes < EndReserve+2*reserveSize {
		return false, nil
	}
	// Random bytes, since some file systems store zeros without blocks.
	if err := fill(path, io.LimitReader(rand.NewChaCha8([32]byte{1}), reserveSize)); err != nil {
		return false, fmt.Errorf("reserve space for the log: %w", errors.Join(err, os.Remove(path)))
	}
	return true, nil
}

func fill(path string, from io.Reader) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	return errors.Join(err, f.Sync(), f.Close())
}

// Give deletes the reserve, and reports whether there was one.
func (r *Reserve) Give() (gave bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	err = os.Remove(filepath.Join(r.Dir, ReserveName))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
