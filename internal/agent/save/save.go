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
	// Capture takes a consistent copy of a folder, which the program may go on writing to.
	Capture(ctx context.Context, dir confined.Folder) (Capture, error)
	// Publish stores, publishes and verifies it. It returns wire.ErrFenced where a newer attempt
	// has the claim, and ErrMoving where the program has overwritten what was captured.
	Publish(ctx context.Context, c Capture, m Meta) (Published, error)
	// Prune drops the checkpoints that need not stay.
	Prune(ctx context.Context) error
}

// Capture is a copy of the checkpoint folder on the machine's disk.
type Capture interface {
	Size() int64  // bytes
	Left() string // what the folder holds and the copy lacks, and why; "": nothing
	Discard() error
}

// Meta is said about a checkpoint in its manifest.
type Meta struct {
	Step     int64
	Captured time.Time // wall time up to which work is in it
	Metrics  map[string]float64
}

// Published says what became of a capture.
type Published struct {
	Manifest string
	Bytes    int64
	Uploaded int64
}

// Saver captures the checkpoint folder and uploads in the background, one at a
// time. A capture that waits is replaced by a newer one.
type Saver struct {
	dir    confined.Folder
	vault  Vault
	log    *slog.Logger
	now    func() time.Time
	saved  func(api.Saved) // a checkpoint is published
	fenced func(error)     // another attempt has the claim
	failed func(error)     // a publish failed and is tried again
	copied func(error)     // a copy was tried

	capturing sync.Mutex // one capture at a time
	mu        sync.Mutex
	watch     watch
	told      bool // the program says when the folder is complete
	waiting   *save
	uploading bool
	leaving   bool // the machine goes: nothing but the newest checkpoint matters
	newest    newest
	fail      error         // of the last upload; nil when it went well
	changed   chan struct{} // closed and replaced when waiting or uploading changes
}

// save is a capture and what is said about it.
type save struct {
	capture Capture
	meta    Meta
	files   uint64
	began   time.Time // of its upload
	source
}

// newest is the last checkpoint that was published.
type newest struct {
	any  bool
	meta Meta
	source
	files uint64
	bytes int64
	span  time.Duration // of its upload and verification
}

// Config says what a Saver needs.
type Config struct {
	Dir       confined.Folder // that the program writes
	Quiet     time.Duration   // how long it must rest before it is captured
	Announces bool            // the program's output says when it is complete
	Now       func() time.Time
	Log       *slog.Logger
	Saved     func(api.Saved) // is called when a checkpoint is published
	Fenced    func(error)     // is called when another attempt has the claim
	Failing   func(error)     // is called when a checkpoint could not be published; it is tried again. nil: nobody is told
	// Copied is called after each copy of the folder, with an error that names what the copy lacks; nil: it is not called.
	Copied func(error)
}

// New returns a Saver into v; nil is a job that keeps no checkpoints.
func New(v Vault, c Config) *Saver {
	return &Saver{dir: c.Dir, vault: v, log: c.Log, now: c.Now, saved: c.Saved, fenced: c.Fenced, failed: c.Failing,
		copied: c.Copied,
		told:   c.Announces, watch: watch{quiet: c.Quiet}, changed: make(chan struct{})}
}

// ErrMoving says that the folder changed while it was captured.
var ErrMoving = errors.New("the checkpoint folder changes while it is captured")

// ErrFolder says that the folder cannot be listed.
var ErrFolder = errors.New("look at checkpoint folder")

// ErrSkipped says that another machine of the gang has no part of a step, so that it makes no checkpoint.
var ErrSkipped = errors.New("another machine of the gang has no part of this step")

// Begin notes what the folder holds before the program starts: it is in the store already.
func (s *Saver) Begin() error {
	v, err := scan(s.dir)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watch.poll(s.now(), v)
	s.watch.took(time.Time{}, v.files)
	return nil
}

// Hurry lets the next complete checkpoint be captured without waiting for the spacing.
func (s *Saver) Hurry() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watch.at = time.Time{}
}

// Poll looks at the folder, and captures it where an unmodified program has
// completed a checkpoint. It returns how long that took.
func (s *Saver) Poll(ctx context.Context, step int64, metrics map[string]float64) (time.Duration, error) {
	if s.vault == nil {
		return 0, nil
	}
	start := time.Now()
	v, err := scan(s.dir)
	took := time.Since(start)
	if err != nil {
		return took, err
	}
	s.mu.Lock()
	take := s.watch.poll(s.now(), v) && !s.told
	upTo := s.watch.began
	s.mu.Unlock()
	if !take {
		return took, nil
	}
	if upTo.IsZero() {
		upTo = s.now()
	}
	err = s.Take(ctx, Meta{Step: step, Captured: upTo, Metrics: metrics}, false)
	if errors.Is(err, ErrMoving) {
		return took, nil // it was not complete; the next quiet moment is
	}
	return took, err
}

// Take captures the folder now and queues it for upload. It returns when the
// program may write again. told says that the program announced it.
func (s *Saver) Take(ctx context.Context, m Meta, told bool) error {
	return s.take(ctx, m, source{announced: told})
}

func (s *Saver) take(ctx context.Context, m Meta, from source) error {
	if s.vault == nil {
		return nil
	}
	s.capturing.Lock()
	defer s.capturing.Unlock()
	before, err := scan(s.dir)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.told = s.told || from.announced
	s.mu.Unlock()
	if !before.any {
		return nil // nothing was saved: there is nothing to keep
	}
	c, err := s.vault.Capture(ctx, s.dir)
	if err != nil {
		s.tellCopied(ctx, err)
		return fmt.Errorf("capture checkpoint: %w", err)
	}
	after, err := scan(s.dir)
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
			s.log.Warn("drop a capture that a newer one replaces", "error", err)
		}
	}
	s.waiting = &save{capture: c, meta: m, files: before.files, source: from}
	s.watch.took(s.now(), before.files)
	s.tell()
	return nil
}

// tellCopied says how the copying of the folder goes. One that changes is copied soon again.
func (s *Saver) tellCopied(ctx context.Context, err error) {
	if s.copied != nil && ctx.Err() == nil && !errors.Is(err, ErrMoving) {
		s.copied(err)
	}
}

// tell wakes those who wait for a change. The lock is held.
func (s *Saver) tell() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Upload uploads until ctx is done. It is the saver's only uploader.
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
				s.log.Warn("drop old checkpoints", "error", err)
			}
		}
		s.mu.Lock()
		s.uploading, s.fail = false, err
		if errors.Is(err, ErrMoving) && s.watch.captured == next.files {
			s.watch.captured = 0 // it is not kept: the next poll captures anew
		}
		s.tell()
		s.mu.Unlock()
		if derr := next.capture.Discard(); derr != nil {
			s.log.Warn("drop a capture", "error", derr)
		}
		if errors.Is(err, wire.ErrFenced) {
			s.fenced(err)
			return
		}
	}
}

// publish tries until it succeeds, a newer capture waits, or ctx is done.
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
		s.log.Warn("publish checkpoint; it is tried again", "error", err)
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
	s.watch.spacing = 5 * span // a sixth of the time at most goes into uploads of what nobody announced
	s.mu.Unlock()
	s.saved(api.Saved{Manifest: p.Manifest, Step: v.meta.Step, Bytes: p.Bytes, Uploaded: p.Uploaded,
		Captured: v.meta.Captured.UTC(), Took: now.Sub(v.meta.Captured),
		Lacks: v.capture.Left()})
}

// Flush waits until everything that was captured is Published, and returns why it is not.
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

// Final looks at what the ended program left, and captures it where it is a
// whole checkpoint; m is said about it unless the program announced it. kept says that
// the newest capture holds all that it left.
func (s *Saver) Final(ctx context.Context, e Ending, m Meta) (kept bool, err error) {
	if s.vault == nil {
		return false, nil
	}
	s.capturing.Lock() // a capture that is being made belongs before the end
	v, err := scan(s.dir)
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
	if !e.whole() {
		s.log.Info("what the program left may be torn; the checkpoint before it counts")
		return false, nil
	}
	s.mu.Lock()
	if began := s.watch.began; e.failed() && !began.IsZero() { // what was done since is not in it
		m.Captured = began
	}
	s.mu.Unlock()
	if e.Said != nil {
		m = e.Said.Meta
	}
	return true, s.take(ctx, m,
		source{announced: e.Said != nil, final: true, late: e.failed() && e.Ended.Sub(e.last) > e.quiet})
}

// Expected is how long an upload is expected to take, as the last one was
// measured; before the first, a second.
func (s *Saver) Expected() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Second + s.newest.span*3/2
}
