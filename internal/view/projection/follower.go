package projection

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"scrimp/internal/lib/isolate"
	"scrimp/internal/lib/wait"
	"scrimp/internal/store"
)

// Log is the log with the storage of its projections.
type Log interface {
	store.ProjectionStore
	WholeRecords(ctx context.Context, after uint64, limit int) ([]store.Record, error)
}

// Source reports how much of the log is durable.
type Source interface {
	Durable() uint64
	Changed() <-chan struct{} // closed when there is more
}

const (
	// piece is the number of events read at once. A turn of a projection that is behind has several, unless a reader
	// waits: one large transaction writes less than many small ones.
	piece  = 1000
	pieces = 10
	// lag is how long the follower waits for more events while nobody reads, so that many share a transaction.
	lag = 100 * time.Millisecond
	// patience is how long a reader waits for a projection that is behind: longer than needed except during a rebuild.
	// Readers do not wait for a projection that is far behind.
	patience     = 10 * time.Second
	tooFarBehind = 100_000 // events: some seconds of reading
)

// Follower reads the log for its projections. Follow keeps them near the log's end.
type Follower struct {
	log         Log
	source      Source
	errors      *slog.Logger
	projections map[string]Projection // by stored name
	asked       chan struct{}         // signals that a reader waits
	begun       atomic.Bool           // the marks belong to the log
	from        uint64                // the log's end when the server started; readers see everything up to it

	mu    sync.Mutex
	marks map[string]store.Mark // by stored name
	more  chan struct{}         // closed when a mark advances; nil: nobody waits
}

// New returns a follower that has read nothing yet. The names of the projections differ.
func New(log Log, errors *slog.Logger, list ...Projection) *Follower {
	f := &Follower{log: log, errors: errors, asked: make(chan struct{}, 1), projections: map[string]Projection{},
		marks: map[string]store.Mark{}}
	for _, p := range list {
		f.projections[p.stored()] = p
		f.marks[p.stored()] = store.Mark{}
	}
	return f
}

// On sets the source of the log's position, before anything is read. Readers see everything that is durable by then.
func (f *Follower) On(source Source) { f.source, f.from = source, source.Durable() }

// BehindError means that a projection is being built, with its progress in events.
type BehindError struct {
	Name   string
	At, Of uint64
}

func (e *BehindError) Error() string {
	return fmt.Sprintf("the index %s is being built from the log: %d of %d events are read", e.Name, e.At, e.Of)
}

// Follow keeps the projections near the end of the log until ctx ends.
func (f *Follower) Follow(ctx context.Context) {
	for failing := false; ctx.Err() == nil; {
		changed := f.source.Changed()
		var err error
		if !f.begun.Load() {
			err = isolate.Do(func() error { return f.begin(ctx) })
		}
		if err == nil {
			f.begun.Store(true)
			err = isolate.Do(func() error { return f.catchUp(ctx) })
		}
		switch {
		case err == nil:
			failing = false
			f.rest(ctx, changed)
		case ctx.Err() == nil:
			f.begun.Store(false) // another server may have moved a mark
			if !errors.Is(err, store.ErrConflict) && !failing {
				f.errors.Error("cannot follow the log; retrying", "error", err, isolate.Stack(err))
				failing = true
			}
			_ = wait.For(ctx, time.Second)
		}
	}
}

// rest waits until the log grows, and then a while longer unless somebody reads.
func (f *Follower) rest(ctx context.Context, changed <-chan struct{}) {
	select {
	case <-ctx.Done():
		return
	case <-changed:
	}
	select {
	case <-ctx.Done():
	case <-f.asked:
	case <-time.After(lag):
	}
}

// begin reads how far the projections have come. It drops rows of another log, and those of projections or versions
// that this program does not have.
func (f *Follower) begin(ctx context.Context) error {
	marks, err := f.log.Marks(ctx)
	if err != nil {
		return err
	}
	here := map[string]store.Mark{}
	for name := range f.projections {
		here[name] = store.Mark{}
	}
	for _, name := range slices.Sorted(maps.Keys(marks)) {
		_, ours := f.projections[name]
		same := false
		if ours {
			if same, err = f.same(ctx, marks[name]); err != nil {
				return err
			}
		}
		switch {
		case ours && same:
			here[name] = marks[name]
			continue
		case ours:
			f.errors.Warn("what is stored beside the log belongs to another log; rebuilding it", "projection", name)
		}
		if err := f.log.DropProjection(ctx, name); err != nil {
			return err
		}
	}
	f.rise(here)
	return nil
}

// same reports whether the mark belongs to this log.
func (f *Follower) same(ctx context.Context, mark store.Mark) (bool, error) {
	if mark.Seq > f.source.Durable() {
		return false, nil
	}
	if mark.Kept == 0 {
		return true, nil
	}
	records, err := f.log.RecordsAt(ctx, []uint64{mark.Kept})
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

// catchUp applies the log up to its durable end. Projections at the same mark share a read of the log. Those that are
// ahead come first in each turn, so a rebuild does not hold them up. A projection that fails does not stop the others.
func (f *Follower) catchUp(ctx context.Context) error {
	failed := map[string]error{}
	for {
		groups := f.groups(failed)
		if len(groups) == 0 {
			return errors.Join(slices.Collect(maps.Values(failed))...)
		}
		for _, from := range slices.SortedFunc(maps.Keys(groups), func(a, b store.Mark) int {
			return cmp.Or(cmp.Compare(b.Seq, a.Seq), cmp.Compare(b.Kept, a.Kept))
		}) {
			err := f.advance(ctx, from, groups[from])
			var one *applyError
			if errors.As(err, &one) {
				failed[one.name] = err // the others of its group get another turn
			} else if err != nil {
				return err
			}
		}
	}
}

// applyError is the failure of one projection.
type applyError struct {
	name string
	err  error
}

func (e *applyError) Error() string { return fmt.Sprintf("%s: %v", e.name, e.err) }
func (e *applyError) Unwrap() error { return e.err }

// groups returns the names of the projections that are behind the log's durable end, by their mark, without those that
// have failed.
func (f *Follower) groups(failed map[string]error) map[store.Mark][]string {
	end := f.source.Durable()
	f.mu.Lock()
	defer f.mu.Unlock()
	groups := map[store.Mark][]string{}
	for name, mark := range f.marks {
		if mark.Seq < end && failed[name] == nil {
			groups[mark] = append(groups[mark], name)
		}
	}
	return groups
}

// advance applies the next events to projections that are all at the same mark, and writes their rows.
func (f *Follower) advance(ctx context.Context, from store.Mark, names []string) error {
	to := from
	changes := map[string]map[string]store.Change{}
	rows := map[string]*Rows{}
	for _, name := range names {
		changes[name] = map[string]store.Change{}
		rows[name] = &Rows{projection: name, log: f.log, changes: changes[name], read: map[string][]byte{}}
	}
	for range pieces {
		end := f.source.Durable()
		if err := f.apply(ctx, &to, end, rows); err != nil {
			return err
		}
		if to.Seq == end || len(f.asked) > 0 {
			break
		}
	}
	if err := f.log.Project(ctx, from, to, changes); err != nil {
		return err
	}
	marks := map[string]store.Mark{}
	for _, name := range names {
		marks[name] = to
	}
	f.rise(marks)
	return nil
}

// apply applies a piece of the log after the mark, at most up to the event end, and moves the mark.
func (f *Follower) apply(ctx context.Context, mark *store.Mark, end uint64, rows map[string]*Rows) error {
	from := mark.Seq
	records, err := f.log.WholeRecords(ctx, from, piece)
	if err != nil {
		return err
	}
	list := make([]Record, 0, len(records))
	var kept *store.Record // the last that is no sample
	for i := range records {
		if r := &records[i]; r.Seq <= end {
			list = append(list, Record{Record: *r})
			if mark.Seq = r.Seq; !r.Sample {
				kept = r
			}
		}
	}
	if kept != nil {
		mark.Kept, mark.Sum = kept.Seq, sumOf(*kept)
	}
	for name, rows := range rows {
		err := isolate.Do(func() error {
			for i := range list {
				if err := f.projections[name].Apply(ctx, &list[i], rows); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return &applyError{name, err}
		}
	}
	if mark.Seq == from {
		return fmt.Errorf("events after %d are missing, and the log ends at %d", from, end)
	}
	return nil
}

// rise records that projections have reached their marks.
func (f *Follower) rise(marks map[string]store.Mark) {
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.Copy(f.marks, marks)
	if f.more != nil {
		close(f.more)
		f.more = nil
	}
}

// next returns the mark of a projection, and a channel that closes when one advances.
func (f *Follower) next(name string) (store.Mark, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.more == nil {
		f.more = make(chan struct{})
	}
	return f.marks[name], f.more
}

// Wait returns once the projection has read the log up to a durable event, and up to the log's end at the start of the
// server, so that a reader finds its own writes. If that takes too long, it returns a *BehindError.
func (f *Follower) Wait(ctx context.Context, p Projection, seq uint64) error {
	seq = max(seq, f.from)
	patient := time.NewTimer(patience)
	defer patient.Stop()
	for {
		mark, more := f.next(p.stored())
		switch {
		case mark.Seq >= seq:
			return nil
		case f.begun.Load() && seq-mark.Seq > tooFarBehind:
			return &BehindError{Name: p.Name, At: mark.Seq, Of: seq}
		}
		select {
		case f.asked <- struct{}{}:
		default: // a signal is pending
		}
		select {
		case <-more:
		case <-patient.C:
			return &BehindError{Name: p.Name, At: mark.Seq, Of: seq}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Rows returns the rows of a projection that exist, by key, once it has read the log up to a durable event.
func (f *Follower) Rows(ctx context.Context, p Projection, upTo uint64, keys ...string) (map[string][]byte, error) {
	if err := f.Wait(ctx, p, upTo); err != nil {
		return nil, err
	}
	return f.log.Rows(ctx, p.stored(), keys)
}

// Range returns rows of a projection in the order of their keys, once it has read the log up to a durable event.
func (f *Follower) Range(ctx context.Context, p Projection, upTo uint64, r store.Range) ([]store.Row, error) {
	if err := f.Wait(ctx, p, upTo); err != nil {
		return nil, err
	}
	return f.log.RowRange(ctx, p.stored(), r)
}
