package folderblob

import (
	"context"
	"errors"
	"os"
	"sync"

	"gocloud.dev/blob"
)

// maxLater bounds the files that a Later holds open, and the keys that it makes durable at once.
const maxLater = 64

// Later makes many blobs of a folder durable together, which saves the disk a journal commit for each: they appear at
// once, and are durable when Sync returns. Until then a loss of power can leave them torn, so nothing may refer to
// them yet. Other stores make each blob durable when it is written. Sync must be called, also after an error.
type Later struct {
	mu    sync.Mutex
	files []*os.File
	dirs  map[string]bool
	keys  map[Syncer][]string
}

// A Syncer makes durable the blobs that were written to it as part of a Later. It must be usable as a map key.
type Syncer interface {
	SyncBlobs(ctx context.Context, keys []string) error
}

// Options returns o for a write that is part of l.
func (l *Later) Options(o blob.WriterOptions) *blob.WriterOptions {
	o.BeforeWrite = func(as func(any) bool) error {
		as(l) // other stores need not know it
		return nil
	}
	return &o
}

// Sync makes everything written so far durable.
func (l *Later) Sync(ctx context.Context) error {
	l.mu.Lock()
	files, dirs, keys := l.files, l.dirs, l.keys
	l.files, l.dirs, l.keys = nil, nil, nil
	l.mu.Unlock()
	err := syncAll(files)
	for d := range dirs {
		err = errors.Join(err, syncFolder(d))
	}
	for s, k := range keys {
		err = errors.Join(err, s.SyncBlobs(ctx, k))
	}
	return err
}

// Leave closes the files without waiting for the disk, which has started to write them. The writer makes them durable
// with Folder.Sync.
func (l *Later) Leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.files {
		_ = f.Close() // the content is written; the sync reports disk errors
	}
	l.files, l.dirs = nil, nil
}

// Wrote notes a blob that another store has taken and not yet made durable.
func (l *Later) Wrote(ctx context.Context, s Syncer, key string) error {
	var full []string
	l.mu.Lock()
	if l.keys == nil {
		l.keys = map[Syncer][]string{}
	}
	if l.keys[s] = append(l.keys[s], key); len(l.keys[s]) >= maxLater {
		full = l.keys[s]
		delete(l.keys, s)
	}
	l.mu.Unlock()
	if full == nil {
		return nil
	}
	return s.SyncBlobs(ctx, full)
}

// add takes over a file that appeared in dir.
func (l *Later) add(file *os.File, dir string) error {
	var full []*os.File
	l.mu.Lock()
	if l.dirs == nil {
		l.dirs = map[string]bool{}
	}
	l.dirs[dir] = true
	if l.files = append(l.files, file); len(l.files) >= maxLater {
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
