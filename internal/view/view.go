// Package view follows the log and indexes it by job: the events with decisions about a job, and those with reports
// of its programs. A reader of one job reads these events instead of the whole log. The view follows from the log
// alone, is stored beside it, and is rebuilt in the background if it is lost.
package view

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"scrimp/internal/lib/isolate"
	"scrimp/internal/lib/wait"
	"scrimp/internal/store"
)

// Log is the log with the storage of its view.
type Log interface {
	store.ViewStore
	Records(ctx context.Context, after uint64, limit int) ([]store.Record, error)
}

// Source reports how much of the log is durable.
type Source interface {
	Durable() uint64
	Changed() <-chan struct{} // closed when there is more
}

const (
	// piece is the number of events read and indexed at once.
	piece = 1000
	// lag is how long the view waits for more events while nobody reads, so that many share a transaction.
	lag = 100 * time.Millisecond
	// patience is how long a reader waits for a view that is behind: longer than needed except during a rebuild.
	// Readers do not wait for a view that is far behind.
	patience     = 10 * time.Second
	tooFarBehind = 100_000 // events: some seconds of reading
)

// View is an index of a log by job. Follow keeps it near the log's end.
type View struct {
	log    Log
	source Source
	errors *slog.Logger
	asked  chan struct{} // signals that a reader waits
	begun  atomic.Bool   // the stored mark belongs to the log
	from   uint64        // the log's end when the server started; readers see everything up to it

	mu   sync.Mutex
	mark store.ViewMark
	more chan struct{} // closed when the mark advances; nil: nobody waits
}

// New returns a view that has read nothing yet.
func New(log Log, errors *slog.Logger) *View {
	return &View{log: log, errors: errors, asked: make(chan struct{}, 1)}
}

// On sets the source of the log's position, before anything is read. Readers see everything that is durable by then.
func (v *View) On(source Source) { v.source, v.from = source, source.Durable() }

// BehindError means that the view is being rebuilt, with its progress.
type BehindError struct{ At, Of uint64 }

func (e *BehindError) Error() string {
	return fmt.Sprintf("the log is being put in order by job: %d of %d events are", e.At, e.Of)
}

// Follow keeps the view near the end of the log until ctx ends.
func (v *View) Follow(ctx context.Context) {
	for failing := false; ctx.Err() == nil; {
		changed := v.source.Changed()
		var err error
		if !v.begun.Load() {
			err = isolate.Do(func() error { return v.begin(ctx) })
		}
		if err == nil {
			v.begun.Store(true)
			err = isolate.Do(func() error { return v.catchUp(ctx) })
		}
		switch {
		case err == nil:
			failing = false
			v.rest(ctx, changed)
		case ctx.Err() == nil:
			v.begun.Store(false) // another server may have moved it
			if !errors.Is(err, store.ErrConflict) && !failing {
				v.errors.Error("cannot index the log by job; retrying", "error", err, isolate.Stack(err))
				failing = true
			}
			_ = wait.For(ctx, time.Second)
		}
	}
}

// rest waits until the log grows, and then a while longer unless somebody reads.
func (v *View) rest(ctx context.Context, changed <-chan struct{}) {
	select {
	case <-ctx.Done():
		return
	case <-changed:
	}
	select {
	case <-ctx.Done():
	case <-v.asked:
	case <-time.After(lag):
	}
}

// begin reads how far the view has come. It rebuilds a view of another log.
func (v *View) begin(ctx context.Context) error {
	mark, err := v.log.ViewMark(ctx)
	if err != nil {
		return err
	}
	same, err := v.same(ctx, mark)
	if err != nil {
		return err
	}
	if !same {
		v.errors.Warn("the index beside the log belongs to another log; rebuilding it")
		if err := v.log.ClearView(ctx); err != nil {
			return err
		}
		mark = store.ViewMark{}
	}
	v.rise(mark)
	return nil
}

// same reports whether the mark belongs to this log.
func (v *View) same(ctx context.Context, mark store.ViewMark) (bool, error) {
	if mark.Seq > v.source.Durable() {
		return false, nil
	}
	if mark.Kept == 0 {
		return true, nil
	}
	records, err := v.log.RecordsAt(ctx, []uint64{mark.Kept})
	if err != nil {
		return false, err
	}
	return len(records) == 1 && sumOf(records[0]) == mark.Sum, nil
}

// sumOf distinguishes an event from one of the same number in another log.
func sumOf(r store.Record) string {
	sum := sha256.Sum256(r.Event)
	return fmt.Sprintf("%x", sum[:8])
}

// catchUp reads the log up to its durable end.
func (v *View) catchUp(ctx context.Context) error {
	for {
		end, from := v.source.Durable(), v.at()
		if from.Seq >= end {
			return nil
		}
		records, err := v.log.Records(ctx, from.Seq, piece)
		if err != nil {
			return err
		}
		to := from
		rows := newGathering()
		for _, r := range records {
			if r.Seq > end {
				break
			}
			if err := rows.take(r); err != nil {
				return err
			}
			if to.Seq = r.Seq; !r.Sample {
				to.Kept, to.Sum = r.Seq, sumOf(r)
			}
		}
		if to.Seq == from.Seq {
			return fmt.Errorf("events after %d are missing, and the log ends at %d", from.Seq, end)
		}
		if err := v.log.MoveView(ctx, from, to, rows.ViewRows); err != nil {
			return err
		}
		v.rise(to)
	}
}

func (v *View) at() store.ViewMark {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.mark
}

func (v *View) rise(mark store.ViewMark) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.mark = mark
	if v.more != nil {
		close(v.more)
		v.more = nil
	}
}

// next returns the mark, and a channel that closes when it advances.
func (v *View) next() (store.ViewMark, <-chan struct{}) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.more == nil {
		v.more = make(chan struct{})
	}
	return v.mark, v.more
}

// Wait returns once the view has read the log up to a durable event, and up to the log's end at the start of the
// server. If that takes too long, it returns a *BehindError.
func (v *View) Wait(ctx context.Context, seq uint64) error {
	seq = max(seq, v.from)
	patient := time.NewTimer(patience)
	defer patient.Stop()
	for {
		mark, more := v.next()
		switch {
		case mark.Seq >= seq:
			return nil
		case v.begun.Load() && seq-mark.Seq > tooFarBehind:
			return &BehindError{At: mark.Seq, Of: seq}
		}
		select {
		case v.asked <- struct{}{}:
		default: // a signal is pending
		}
		select {
		case <-more:
		case <-patient.C:
			return &BehindError{At: mark.Seq, Of: seq}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
