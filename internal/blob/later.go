package blob

import (
	"errors"
	"os"
	"sync"

	"gocloud.dev/blob"
)

// laterMost is how many files a Later holds open.
const laterMost = 64

// Later lets many blobs of a folder become durable together, which spares the
// disk a journal commit for each: they appear at once, and are durable when Sync
// returns. Until then a loss of power can leave them torn, so nothing may refer
// to them yet. Other stores make each blob durable when it is written. Sync must
// be called, also after an error.
type Later struct {
	mu    sync.Mutex
	files []*os.File
	dirs  map[string]bool
}

// Options returns o for a write that is part of l.
func (l *Later) Options(o blob.WriterOptions) *blob.WriterOptions {
	o.BeforeWrite = func(as func(any) bool) error {
		as(l) // a store that does not know it needs none
		return nil
	}
	return &o
}

// Sync makes durable what was written so far.
func (l *Later) Sync() error {
	l.mu.Lock()
	files, dirs := l.files, l.dirs
	l.files, l.dirs = nil, nil
	l.mu.Unlock()
	err := syncAll(files)
	for d := range dirs {
		err = errors.Join(err, syncFolder(d))
	}
	return err
}

// add takes over a file that appeared in dir.
func (l *Later) add(file *os.File, dir string) error {
	var full []*os.File
	l.mu.Lock()
	if l.dirs == nil {
		l.dirs = map[string]bool{}
	}
	l.dirs[dir] = true
	if l.files = append(l.files, file); len(l.files) >= laterMost {
		full, l.files = l.files, nil
	}
	l.mu.Unlock()
	return syncAll(full)
}

func syncAll(files []*os.File) error {
	var err error
	for _, f := range files {
		err = errors.Join(err, f.Sync(), f.Close())
	}
	return err
}
