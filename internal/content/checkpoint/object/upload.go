package object

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	"scrimp/internal/content/blob/folderblob"
	"scrimp/internal/content/checkpoint/folder"
	"scrimp/internal/content/checkpoint/format"
)

// Stats describes what it cost to store files.
type Stats struct {
	Bytes    int64         // of the files
	Uploaded int64         // bytes that were new in the store
	Parts    int           // of all files
	Stored   int           // parts that were new
	Captured time.Duration // taking the copy
	Took     time.Duration // from the copy to the visible manifest
	Left     folder.Left   // what was not kept; for outputs only
}

// upload stores unknown parts of files.
type upload struct {
	store *Store
	home  string

	later  folderblob.Later
	mu     sync.Mutex
	known  map[string]format.Part // by sum; parts are added once they are durable
	stored []format.Part
	stats  Stats
}

// Upload stores the parts of files that known lacks under home, adds them to known, and returns the files with their
// parts. It returns folder.ErrChanged if the program wrote to a file meanwhile. After an error known has the parts
// that are stored, too.
func (s *Store) Upload(ctx context.Context, home string, known map[string]format.Part,
	sources []folder.Source) ([]format.File, Stats, error) {
	u := &upload{store: s, home: home, known: known}
	files, err := u.all(ctx, sources)
	if err == nil {
		err = folder.Unchanged(sources)
	}
	if err != nil {
		return nil, Stats{}, err
	}
	return files, u.stats, nil
}

// span is a part whose content is not known yet.
type span struct {
	file   int
	index  int // of the part in the file
	offset int64
	size   int64
}

func (u *upload) all(ctx context.Context, sources []folder.Source) ([]format.File, error) {
	files := make([]format.File, len(sources))
	var spans []span
	var largest int64
	for i, s := range sources {
		files[i] = s.File
		for at := int64(0); at < s.Size; at += u.store.PartSize {
			n := min(u.store.PartSize, s.Size-at)
			spans = append(spans, span{i, int(at / u.store.PartSize), at, n})
			largest = max(largest, n)
		}
		files[i].Parts = make([]format.Part, (s.Size+u.store.PartSize-1)/u.store.PartSize)
		u.stats.Bytes += s.Size
	}
	u.stats.Parts = len(spans)
	inFlight := map[string]bool{}
	err := u.store.parallel(ctx, len(spans), largest, func(ctx context.Context, buffer []byte, i int) error {
		s := spans[i]
		part, err := u.one(ctx, sources[s.file], s, buffer[:s.size], inFlight)
		if err != nil {
			return err
		}
		files[s.file].Parts[s.index] = part
		return nil
	})
	if late := u.later.Sync(ctx); late != nil {
		return nil, errors.Join(err, fmt.Errorf("store parts: %w", late))
	}
	for _, p := range u.stored { // after an error, too: the next attempt need not store them again
		u.known[p.Sum] = p
	}
	return files, err
}

// one reads a part, and stores it unless it is known. It stores the same bytes that it hashed, whatever the program
// does to the file meanwhile.
func (u *upload) one(ctx context.Context, f folder.Source, s span, buffer []byte,
	inFlight map[string]bool) (format.Part, error) {
	if err := f.ReadAt(s.offset, buffer); err != nil {
		return format.Part{}, fmt.Errorf("read %s: %w", f.Path, err)
	}
	sum := sha256.Sum256(buffer)
	part := format.Part{Sum: hex.EncodeToString(sum[:]), Size: s.size, Home: u.home, Tag: format.TagOf(sum, buffer)}
	u.mu.Lock()
	known, ok := u.known[part.Sum]
	begun := inFlight[part.Sum]
	inFlight[part.Sum] = true
	u.mu.Unlock()
	switch {
	case ok:
		known.Tag = part.Tag // a part from an older release may have none
		return known, nil
	case begun: // if that fails, the whole publish does
		return part, nil
	}
	if err := u.store.bucket.Upload(ctx, u.store.prefix+part.Key(), bytes.NewReader(buffer),
		u.later.Options(*writeOptions(false))); err != nil {
		return format.Part{}, fmt.Errorf("store part of %s: %w", f.Path, err)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.stored = append(u.stored, part)
	u.stats.Uploaded += s.size
	u.stats.Stored++
	return part, nil
}
