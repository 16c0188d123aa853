package checkpoint

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
	"scrimp/internal/lib/confined"
)

// Stats describes the cost of a publish.
type Stats struct {
	Bytes    int64         // of the files
	Uploaded int64         // bytes that were new in the store
	Parts    int           // of all files
	Stored   int           // parts that were new
	Captured time.Duration // taking the copy
	Took     time.Duration // from the copy to the visible manifest
	Left     folder.Left   // what was not kept; for outputs only
}

// Publish captures folder dir and publishes the capture; it captures again if the program writes meanwhile. See
// PublishCapture.
func (w *Writer) Publish(ctx context.Context, dir string, meta format.Meta, ignore ...string) (format.Manifest, Stats,
	error) {
	capturer := &folder.Capturer{Folder: confined.Folder{Path: dir}, Ignore: ignore}
	for try := 0; ; try++ {
		m, stats, err := w.captureAndPublish(ctx, capturer, meta)
		if !errors.Is(err, ErrChanged) || try == folder.Tries {
			return m, stats, err
		}
		capturer.Copy = true
	}
}

func (w *Writer) captureAndPublish(ctx context.Context, capturer *folder.Capturer, meta format.Meta) (_ format.Manifest,
	_ Stats,
	err error) {
	c, err := capturer.Capture(ctx)
	if err != nil {
		return format.Manifest{}, Stats{}, err
	}
	defer func() { err = errors.Join(err, c.Discard()) }()
	return w.PublishCapture(ctx, c, meta)
}

// PublishCapture stores the parts that the store lacks, and then creates the manifest; before that, nothing of it
// counts. When it returns without error, the checkpoint is durable, and later attempts restore it until a newer one
// exists. ErrFenced: a newer attempt has the claim. ErrChanged: the program overwrote a file in place; capture again.
// After any other error the checkpoint may or may not count; publish again.
func (w *Writer) PublishCapture(ctx context.Context, c *folder.Capture, meta format.Meta) (format.Manifest, Stats,
	error) {
	return w.timed(c, meta, func() (format.Manifest, Stats, error) { return w.publish(ctx, c, meta) })
}

// timed publishes one capture at a time and measures it.
func (w *Writer) timed(c *folder.Capture, meta format.Meta, publish func() (format.Manifest, Stats,
	error)) (format.Manifest, Stats, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	begin := time.Now()
	m, stats, err := publish()
	if err != nil {
		return format.Manifest{}, Stats{}, fmt.Errorf("publish step %d of %s: %w", meta.Step, w.attempt, err)
	}
	stats.Captured, stats.Took = c.Took, time.Since(begin)
	return m, stats, nil
}

func (w *Writer) publish(ctx context.Context, c *folder.Capture, meta format.Meta) (format.Manifest, Stats, error) {
	if err := w.unfenced(ctx); err != nil {
		return format.Manifest{}, Stats{}, err
	}
	up := &upload{store: w.store, home: w.token.String(), known: w.known}
	files, err := up.all(ctx, c.Files)
	if err == nil {
		err = folder.Unchanged(c.Files)
	}
	if err != nil {
		return format.Manifest{}, Stats{}, err
	}
	meta.Epoch, meta.Captured, meta.Metrics = w.token.epoch, meta.Captured.UTC(), format.Finite(meta.Metrics)
	m := format.Manifest{
		Form: format.Version, Meta: meta, Session: w.token.session, Writer: w.name,
		Published: time.Now().UTC(), Bytes: c.Bytes, Files: files,
	}
	if err := w.create(ctx, &m); err != nil {
		return format.Manifest{}, Stats{}, err
	}
	return m, up.stats, nil
}

// create gives the manifest the next name and makes it visible.
func (w *Writer) create(ctx context.Context, m *format.Manifest) error {
	m.Files = format.Untagged(m.Files)
	for {
		if err := w.unfenced(ctx); err != nil {
			return err
		}
		m.Name = format.NameOf(w.token.epoch, w.seq+1)
		data, err := format.Seal(m)
		if err != nil {
			return err
		}
		err = w.store.putOnce(ctx, "manifests/"+m.Name, data)
		if errors.Is(err, errTaken) {
			// The name was taken by an apparently failed publish of ours, or by an earlier session of this attempt.
			w.seq++
			continue
		}
		if err != nil {
			return err
		}
		w.seq++
		// A claim made before the manifest may not have seen it.
		return w.unfenced(ctx)
	}
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
		for at := int64(0); at < s.Size; at += u.store.part {
			n := min(u.store.part, s.Size-at)
			spans = append(spans, span{i, int(at / u.store.part), at, n})
			largest = max(largest, n)
		}
		files[i].Parts = make([]format.Part, (s.Size+u.store.part-1)/u.store.part)
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
