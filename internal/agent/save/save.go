// Package save decides when a program's checkpoint folder is complete, copies it,
// and uploads the copies in the background.
package save

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"scrimp/internal/agent/wire"
	"scrimp/internal/lib/confined"
	"scrimp/internal/wire/api"
)

// Vault keeps the checkpoints of one attempt.
type Vault interface {
	// Capture takes a consistent copy of a folder while the program may continue to write to it.
	Capture(ctx context.Context, dir confined.Folder) (Capture, error)
	// Publish stores, publishes and verifies a capture. It returns wire.ErrFenced if a newer
	// attempt has the claim, and ErrMoving if the program has overwritten the captured files.
	Publish(ctx context.Context, c Capture, m Meta) (Published, error)
	// Prune deletes the checkpoints that need not stay.
	Prune(ctx context.Context) error
}

// Capture is a copy of the checkpoint folder on the machine's disk.
type Capture interface {
	Size() int64  // bytes
	Left() string // files that the copy lacks, and why; empty: none
	Discard() error
}

// Meta is recorded in the manifest of a checkpoint.
type Meta struct {
	Step     int64
	Captured time.Time // wall time up to which the checkpoint contains work
	Metrics  map[string]float64
}

// Published is the result of publishing a capture.
type Published struct {
	Manifest string
	Bytes    int64
	Uploaded int64
}

// Saver captures the checkpoint folder and uploads the captures in the background, one at a time. A
// newer capture replaces one that still waits for upload.
type Saver struct {
	dir    confined.Folder
	vault  Vault
	log    *slog.Logger
	now    func() time.Time
	saved  func(api.Saved) // called after each published checkpoint
	fenced func(error)     // called if another attempt has the claim
	failed func(error)     // called after each failed publish, before the retry
	copied func(error)     // called after each copy, with its error

	capturing sync.Mutex // one capture at a time
	mu        sync.Mutex
	watch     watch
	told      bool // the program announces complete saves
	whole     bool // the folder's state at the program's end is a checkpoint, with hidden files
	waiting   *save
	uploading bool
	leaving   bool // the machine is about to be terminated: only the newest checkpoint matters
	newest    newest
	fail      error         // error of the last upload, or nil
	changed   chan struct{} // closed and replaced when waiting or uploading changes
}

// save is a capture with its metadata.
type save struct {
	capture Capture
	meta    Meta
	files   uint64
	began   time.Time // start of its upload
	source
}

// newest is the last checkpoint that was published.
type newest struct {
	any  bool
	meta Meta
	source
	files uint64
	bytes int64
	span  time.Duration // duration of its upload and verification
}

// Config configures a Saver.
type Config struct {
	Dir       confined.Folder // folder that the program writes
	Quiet     time.Duration   // how long Dir must stay unchanged before it is captured
	Announces bool            // the program's output announces complete saves
	// Whole means that the folder is saved whole, with hidden files, and that the state in which the program leaves it
	// is always a checkpoint.
	Whole   bool
	Now     func() time.Time
	Log     *slog.Logger
	Saved   func(api.Saved) // called after each published checkpoint
	Fenced  func(error)     // called if another attempt has the claim
	Failing func(error)     // called after each failed publish, before the retry; may be nil
	// Copied is called after each copy of the folder, with an error that names what the copy lacks.
	// It may be nil.
	Copied func(error)
}

// New returns a Saver that stores into v; a nil Vault keeps no checkpoints.
func New(v Vault, c Config) *Saver {
	return &Saver{dir: c.Dir, vault: v, log: c.Log, now: c.Now, saved: c.Saved, fenced: c.Fenced, failed: c.Failing,
		copied: c.Copied,
		told:   c.Announces, whole: c.Whole, watch: watch{quiet: c.Quiet}, changed: make(chan struct{})}
}

// ErrMoving reports that the folder changed during a capture.
var ErrMoving = errors.New("the checkpoint folder changes while it is captured")

// ErrFolder reports that the folder cannot be listed.
var ErrFolder = errors.New("look at checkpoint folder")

// ErrSkipped reports that another machine of the gang has no share of this step, so the step has no checkpoint.
var ErrSkipped = errors.New("another machine of the gang has no share of this step")

// Begin records the content of the folder before the program starts. restored reports that the store has it, as the
// checkpoint of that step. A folder that is saved whole is a checkpoint from the start: unless the store has it, the
// next poll captures it, even if the program never changes it.
func (s *Saver) Begin(restored bool, step int64) error {
	v, err := scan(s.dir, s.whole)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watch.poll(s.now(), v)
	if s.whole && restored {
		s.newest = newest{any: true, meta: Meta{Step: step}, files: v.files}
	}
	if restored || !s.whole {
		s.watch.took(time.Time{}, v.files)
	}
	return nil
}

// Hurry allows the next capture before the spacing has passed.
func (s *Saver) Hurry() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watch.at = time.Time{}
}

// Poll lists the folder, and captures it if an unmodified program has completed a save. It returns the listing's time.
func (s *Saver) Poll(ctx context.Context, step int64, metrics map[string]float64) (time.Duration, error) {
	if s.vault == nil {
		return 0, nil
	}
	start, at := time.Now(), s.now()
	v, err := scan(s.dir, s.whole)
	took := time.Since(start)
	if err != nil {
		return took, err
	}
	s.mu.Lock()
	if v.files != s.watch.now.files {
		s.watch.noticed = at
	}
	take := s.watch.poll(s.now(), v) && !s.told
	upTo, noticed := s.watch.began, s.watch.noticed
	s.mu.Unlock()
	if !take {
		return took, nil
	}
	if upTo.IsZero() {
		upTo = s.now()
	}
	err = s.take(ctx, Meta{Step: step, Captured: upTo, Metrics: metrics}, source{noticed: noticed})
	if errors.Is(err, ErrMoving) {
		return took, nil // the checkpoint was incomplete: capture it at the next quiet moment
	}
	return took, err
}

// Take captures the folder now and queues it for upload. It returns when the program may write
// again. told reports that the program announced the save.
func (s *Saver) Take(ctx context.Context, m Meta, told bool) error {
	return s.take(ctx, m, source{announced: told})
}

func (s *Saver) take(ctx context.Context, m Meta, from source) error {
	if s.vault == nil {
		return nil
	}
	s.capturing.Lock()
	defer s.capturing.Unlock()
	before, err := scan(s.dir, s.whole)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.told = s.told || from.announced
	s.mu.Unlock()
	if !before.any {
		return nil // the program saved nothing
	}
	c, err := s.vault.Capture(ctx, s.dir)
	if err != nil {
		s.tellCopied(ctx, err)
		return fmt.Errorf("capture checkpoint: %w", err)
	}
	after, err := scan(s.dir, s.whole)
	if err == nil && after.files != before.files {
		err = ErrMoving
	}
	if err != nil {
		return errors.Join(err, c.Discard())
	}
	var lacks error
	if left := c.Left(); left != "" {
		lacks = errors.New(left)
	}
	s.tellCopied(ctx, lacks)
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.waiting; old != nil {
		if err := old.capture.Discard(); err != nil {
			s.log.Warn("discard a capture that a newer one replaces", "error", err)
		}
	}
	s.waiting = &save{capture: c, meta: m, files: before.files, source: from}
	s.watch.took(s.now(), before.files)
	s.tell()
	return nil
}

// tellCopied reports the result of a copy, except that the folder changed, because then another
// copy follows soon.
func (s *Saver) tellCopied(ctx context.Context, err error) {
	if s.copied != nil && ctx.Err() == nil && !errors.Is(err, ErrMoving) {
		s.copied(err)
	}
}

// tell wakes goroutines that wait for a change. The caller holds mu.
func (s *Saver) tell() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Upload uploads until ctx is done. Only one goroutine may call it.
func (s *Saver) Upload(ctx context.Context) {
	for {
		s.mu.Lock()
		next, changed := s.waiting, s.changed
		if next != nil {
			s.waiting, s.uploading = nil, true
			s.tell()
		}
		s.mu.Unlock()
		if next == nil {
			select {
			case <-ctx.Done():
				return
			case <-changed:
			}
			continue
		}
		err := s.publish(ctx, next)
		s.mu.Lock()
		prune := err == nil && s.waiting == nil && !s.leaving
		s.mu.Unlock()
		if prune {
			if err := s.vault.Prune(ctx); err != nil {
				s.log.Warn("delete old checkpoints", "error", err)
			}
		}
		s.mu.Lock()
		s.uploading, s.fail = false, err
		if errors.Is(err, ErrMoving) && s.watch.captured == next.files {
			s.watch.captured = 0 // the capture is lost: the next poll takes another one
		}
		s.tell()
		s.mu.Unlock()
		if derr := next.capture.Discard(); derr != nil {
			s.log.Warn("discard a capture", "error", derr)
		}
		if errors.Is(err, wire.ErrFenced) {
			s.fenced(err)
			return
		}
	}
}

// publish retries until it succeeds, a newer capture waits, or ctx is done.
func (s *Saver) publish(ctx context.Context, v *save) error {
	for pause := 200 * time.Millisecond; ; pause = min(2*pause, 10*time.Second) {
		v.began = s.now()
		p, err := s.vault.Publish(ctx, v.capture, v.meta)
		if err == nil {
			s.done(v, p)
			return nil
		}
		if errors.Is(err, wire.ErrFenced) || errors.Is(err, ErrMoving) || errors.Is(err, ErrSkipped) {
			return err
		}
		s.log.Warn("publish checkpoint; retrying", "error", err)
		if s.failed != nil && ctx.Err() == nil {
			s.failed(err)
		}
		s.mu.Lock()
		newer, changed := s.waiting != nil, s.changed
		s.mu.Unlock()
		if newer {
			return err
		}
		t := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			t.Stop()
			return errors.Join(err, context.Cause(ctx))
		case <-changed:
		case <-t.C:
		}
		t.Stop()
	}
}

func (s *Saver) done(v *save, p Published) {
	now := s.now()
	s.mu.Lock()
	span := now.Sub(v.began)
	s.newest = newest{any: true, meta: v.meta, source: v.source, files: v.files, bytes: p.Bytes, span: span}
	s.watch.spacing = 5 * span // unannounced captures may use at most a sixth of the time for uploads
	s.mu.Unlock()
	s.saved(api.Saved{Manifest: p.Manifest, Step: v.meta.Step, Bytes: p.Bytes, Uploaded: p.Uploaded,
		Captured: v.meta.Captured.UTC(), Took: now.Sub(v.meta.Captured),
		Lacks: v.capture.Left()})
}

// Flush waits until every capture is published, and returns the error of the last upload.
func (s *Saver) Flush(ctx context.Context) error {
	for {
		s.mu.Lock()
		busy, changed, err := s.waiting != nil || s.uploading, s.changed, s.fail
		s.mu.Unlock()
		if !busy {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, context.Cause(ctx))
		case <-changed:
		}
	}
}

// Final examines the folder after the program has ended, and captures it if it is a complete
// checkpoint. m describes the capture unless the program announced the save. kept reports that the
// newest capture holds everything in the folder.
func (s *Saver) Final(ctx context.Context, e Ending, m Meta) (kept bool, err error) {
	if s.vault == nil {
		return false, nil
	}
	s.capturing.Lock() // a running capture must finish first
	v, err := scan(s.dir, s.whole)
	s.capturing.Unlock()
	if err != nil {
		return false, err
	}
	s.mu.Lock()
	s.leaving = !e.Asked.IsZero()
	e.changed, e.told, e.last, e.quiet = v.any && v.files != s.watch.captured, s.told, v.last, s.watch.quiet
	s.mu.Unlock()
	if !e.changed {
		return v.any, nil
	}
	if !s.whole && !e.whole() {
		s.log.Info("the last save may be torn; the previous checkpoint counts")
		return false, nil
	}
	s.mu.Lock()
	if began := s.watch.began; (e.failed() || e.before()) && !s.whole && !began.IsZero() {
		m.Captured = began // later work may be missing in this save
	}
	s.mu.Unlock()
	if e.Said != nil {
		m = e.Said.Meta
	}
	return true, s.take(ctx, m,
		source{announced: e.Said != nil, final: true, late: !s.whole && e.late()})
}

// Expected returns the expected duration of an upload, from the last one; before the first, one second.
func (s *Saver) Expected() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Second + s.newest.span*3/2
}
