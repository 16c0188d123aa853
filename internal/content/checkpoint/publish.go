package checkpoint

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"scrimp/internal/content/blob"
	"scrimp/internal/lib/confined"
)

// Stats says what publishing cost.
type Stats struct {
	Bytes    int64         // of the files
	Uploaded int64         // bytes that were new in the store
	Parts    int           // of all files
	Stored   int           // parts that were new
	Captured time.Duration // taking the copy
	Took     time.Duration // from the copy to the visible manifest
	Left     Left          // what is not kept; of outputs only
}

// Publish captures folder dir and publishes the capture; it captures again
// where the program writes meanwhile. See PublishCapture.
func (w *Writer) Publish(ctx context.Context, dir string, meta Meta, ignore ...string) (Manifest, Stats, error) {
	capturer := &Capturer{Folder: confined.Folder{Path: dir}, Ignore: ignore}
	for try := 0; ; try++ {
		m, stats, err := w.captureAndPublish(ctx, capturer, meta)
		if !errors.Is(err, ErrChanged) || try == captureTries {
			return m, stats, err
		}
		capturer.Copy = true
	}
}

func (w *Writer) captureAndPublish(ctx context.Context, capturer *Capturer, meta Meta) (_ Manifest, _ Stats,
	err error) {
	c, err := capturer.Capture(ctx)
	if err != nil {
		return Manifest{}, Stats{}, err
	}
	defer func() { err = errors.Join(err, c.Discard()) }()
	return w.PublishCapture(ctx, c, meta)
}

// PublishCapture stores the parts that the store does not have yet, and then
// creates the manifest, before which nothing of it counts. When it returns
// without error the checkpoint is durable, and is restored by later attempts
// until a newer one is. ErrFenced: a newer attempt has the claim. ErrChanged:
// the program overwrote a file in place, capture again. After any other error
// the checkpoint may count or not; publish again.
func (w *Writer) PublishCapture(ctx context.Context, c *Capture, meta Meta) (Manifest, Stats, error) {
	return w.timed(c, meta, func() (Manifest, Stats, error) { return w.publish(ctx, c, meta) })
}

// timed publishes one capture at a time, and says what that took.
func (w *Writer) timed(c *Capture, meta Meta, publish func() (Manifest, Stats, error)) (Manifest, Stats, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	begin := time.Now()
	m, stats, err := publish()
	if err != nil {
		return Manifest{}, Stats{}, fmt.Errorf("publish step %d of %s: %w", meta.Step, w.attempt, err)
	}
	stats.Captured, stats.Took = c.Took, time.Since(begin)
	return m, stats, nil
}

func (w *Writer) publish(ctx context.Context, c *Capture, meta Meta) (Manifest, Stats, error) {
	if err := w.unfenced(ctx); err != nil {
		return Manifest{}, Stats{}, err
	}
	up := &upload{store: w.store, home: w.token.String(), known: w.known}
	files, err := up.all(ctx, c.files)
	if err == nil {
		err = unchanged(c.files)
	}
	if err != nil {
		return Manifest{}, Stats{}, err
	}
	meta.Epoch, meta.Captured, meta.Metrics = w.token.epoch, meta.Captured.UTC(), finite(meta.Metrics)
	m := Manifest{
		Form: form, Meta: meta, Session: w.token.session, Writer: w.name,
		Published: time.Now().UTC(), Bytes: c.Bytes, Files: files,
	}
	if err := w.create(ctx, &m); err != nil {
		return Manifest{}, Stats{}, err
	}
	return m, up.stats, nil
}

// create gives the manifest the next name and makes it visible.
func (w *Writer) create(ctx context.Context, m *Manifest) error {
	m.Files = untagged(m.Files)
	for {
		if err := w.unfenced(ctx); err != nil {
			return err
		}
		m.Name = pair(w.token.epoch, w.seq+1)
		data, err := seal(m)
		if err != nil {
			return err
		}
		err = w.store.putOnce(ctx, "manifests/"+m.Name, data)
		if errors.Is(err, errTaken) {
			// By a publish of ours that seemed to fail, or by an earlier session of this attempt.
			w.seq++
			continue
		}
		if err != nil {
			return err
		}
		w.seq++
		// A claim that came before the manifest may not have seen it.
		return w.unfenced(ctx)
	}
}

// upload stores the parts of files that are not known.
type upload struct {
	store *Store
	home  string

	later  blob.Later
	mu     sync.Mutex
	known  map[string]Part // by sum; parts are added once they are durable
	stored []Part
	stats  Stats
}

// span is a part before its content is known.
type span struct {
	file   int
	index  int // of the part within the file
	offset int64
	size   int64
}

func (u *upload) all(ctx context.Context, sources []source) ([]File, error) {
	files := make([]File, len(sources))
	var spans []span
	var largest int64
	for i, s := range sources {
		files[i] = s.File
		for at := int64(0); at < s.Size; at += u.store.part {
			n := min(u.store.part, s.Size-at)
			spans = append(spans, span{i, int(at / u.store.part), at, n})
			largest = max(largest, n)
		}
		files[i].Parts = make([]Part, (s.Size+u.store.part-1)/u.store.part)
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
	for _, p := range u.stored { // after an error too: the next try need not store them again
		u.known[p.Sum] = p
	}
	return files, err
}

// one reads a part, and stores it unless it is known. What is hashed is what
// is stored, whatever the program does to the file meanwhile.
func (u *upload) one(ctx context.Context, f source, s span, buffer []byte, inFlight map[string]bool) (Part, error) {
	if err := f.readAt(s.offset, buffer); err != nil {
		return Part{}, fmt.Errorf("read %s: %w", f.Path, err)
	}
	sum := sha256.Sum256(buffer)
	part := Part{Sum: hex.EncodeToString(sum[:]), Size: s.size, Home: u.home, Tag: tagOf(sum, buffer)}
	u.mu.Lock()
	known, ok := u.known[part.Sum]
	begun := inFlight[part.Sum]
	inFlight[part.Sum] = true
	u.mu.Unlock()
	switch {
	case ok:
		known.Tag = part.Tag // it may be of a time before there were any
		return known, nil
	case begun: // if that fails, the whole publish does
		return part, nil
	}
	if err := u.store.bucket.Upload(ctx, u.store.prefix+part.key(), bytes.NewReader(buffer),
		u.later.Options(*writeOptions(false))); err != nil {
		return Part{}, fmt.Errorf("store part of %s: %w", f.Path, err)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.stored = append(u.stored, part)
	u.stats.Uploaded += s.size
	u.stats.Stored++
	return part, nil
}

// readAt fills the buffer; a file that has become shorter has changed.
func (s *source) readAt(offset int64, buffer []byte) (err error) {
	f, err := s.open()
	if err != nil {
		return moved(err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	n, err := f.ReadAt(buffer, offset)
	if errors.Is(err, io.EOF) && n == len(buffer) {
		return nil
	}
	if errors.Is(err, io.EOF) {
		return ErrChanged
	}
	return err
}
