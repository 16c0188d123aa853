// Package replay reads the state of the core from the store: the newest snapshot and the log after it.
package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/state"
	"scrimp/internal/store"
)

// errUnreadable is returned for a snapshot that this release cannot read.
var errUnreadable = errors.New("the snapshot cannot be read")

// Result is what the store holds of the core.
type Result struct {
	State *state.State
	// Snapshot is the last event of the snapshot that the state begins with and whose unchanged parts the next snapshot
	// reuses; 0: none.
	Snapshot uint64
	Read     uint64 // last event that a snapshot contained; State has replayed the log after it
}

// State reads the newest snapshot and replays the log after it. A snapshot only saves time: if another release wrote
// it or it is damaged, State replays the whole log, with the same result.
func State(ctx context.Context, s store.Store, log *slog.Logger) (Result, error) {
	r, upTo, unread := latest(ctx, s)
	switch {
	case errors.Is(unread, errUnreadable):
		r = Result{State: state.New()}
		log.Warn("the snapshot is passed over: the whole log is replayed, which takes longer, and what samples "+
			"taught that were dropped is lost", "why", unread)
	case unread != nil:
		return r, fmt.Errorf("restore: %w", unread)
	}
	r.Read = r.State.Seq()
	if err := replay(ctx, s, r.State, upTo); err != nil {
		return r, fmt.Errorf("restore: %w", missing(err, unread))
	}
	return r, nil
}

// replay applies the log after the state's newest event. Samples up to upTo may have been dropped.
func replay(ctx context.Context, s store.Store, st *state.State, upTo uint64) error {
	end, err := s.End(ctx)
	if err != nil {
		return err
	}
	chain := store.Chain{After: st.Seq(), Dropped: upTo}
	for events, err := range inOrder(pages(ctx, s, st.Seq()), decodeAll) {
		if err != nil {
			return err
		}
		for _, e := range events {
			if err := chain.Add(e.record); err != nil {
				return err
			}
			st.Replay(e.record.Seq, e.event, e.facts, e.record.Postings)
		}
	}
	return chain.Ends(max(end, upTo))
}

// missing returns the error for a log that lacks events and says what to do. replay never guesses: the state without
// those events would be a different one.
func missing(err, unread error) error {
	var gone *store.MissingError
	switch {
	case !errors.As(err, &gone):
		return err
	case unread != nil:
		return fmt.Errorf("events %d to %d are in no log, only in a snapshot, and %w: start once the release of scrimp "+
			"that wrote it and take a backup with it, or restore a backup (scrimp restore)", gone.First, gone.Last, unread)
	}
	return fmt.Errorf("events %d to %d are missing from the log: restore a backup (scrimp restore)", gone.First, gone.Last)
}

// latest returns the state of the newest snapshot, or an empty one. upTo is the snapshot's last event, whether it
// could be read or not.
func latest(ctx context.Context, s store.Store) (r Result, upTo uint64, err error) {
	snap, ok, err := s.LatestSnapshot(ctx)
	if err != nil || !ok {
		return Result{State: state.New()}, 0, err
	}
	r.State, err = read(ctx, s, snap)
	if snap.Parts > 0 {
		r.Snapshot = snap.Seq
	}
	return r, snap.Seq, err
}

func read(ctx context.Context, s store.Store, snap store.Snapshot) (st *state.State, err error) {
	if snap.Version != state.SnapshotVersion {
		return nil, fmt.Errorf("%w: it has version %d, and this release reads version %d", errUnreadable, snap.Version,
			state.SnapshotVersion)
	}
	unreadable := func(err error) error {
		if err != nil {
			err = fmt.Errorf("%w: %w", errUnreadable, err)
		}
		return err
	}
	if snap.Parts == 0 {
		st, err = state.Restore(snap.State)
		return st, unreadable(err)
	}
	r, err := state.NewRestorer(snap.State)
	if err != nil {
		return nil, unreadable(err)
	}
	part := func(text json.RawMessage) (state.Part, error) {
		p, err := state.ReadPart(text)
		return p, unreadable(err)
	}
	for p, err := range inOrder(s.SnapshotParts(ctx, snap), part) {
		if errors.Is(err, store.ErrGone) {
			return nil, unreadable(err)
		}
		if err != nil {
			return nil, err
		}
		r.Add(p)
	}
	st, err = r.State()
	return st, unreadable(err)
}

// pages iterates over the log after an event, in pages of records.
func pages(ctx context.Context, s store.Store, after uint64) iter.Seq2[[]store.Record, error] {
	return func(yield func([]store.Record, error) bool) {
		for {
			records, err := s.WholeRecords(ctx, after, 500)
			if err == nil && len(records) == 0 || !yield(records, err) || err != nil {
				return
			}
			after = records[len(records)-1].Seq
		}
	}
}

type decoded struct {
	record store.Record // without its event and facts, which are decoded
	event  core.Event
	facts  []core.Fact
}

func decodeAll(records []store.Record) ([]decoded, error) {
	list := make([]decoded, len(records))
	for i, r := range records {
		var err error
		if list[i].event, list[i].facts, err = Decode(r); err != nil {
			return nil, err
		}
		r.Event, r.Facts = nil, nil
		list[i].record = r
	}
	return list, nil
}

// Decode decodes the event and the facts of a record.
func Decode(r store.Record) (core.Event, []core.Fact, error) {
	var e core.Event
	if err := e.UnmarshalJSON(r.Event); err != nil { // directly: json.Unmarshal would first scan the whole text
		return e, nil, fmt.Errorf("read event %d: %w", r.Seq, err)
	}
	facts, err := state.DecodeFacts(r.Facts)
	if err != nil {
		return e, nil, fmt.Errorf("event %d: %w", r.Seq, err)
	}
	return e, facts, nil
}

// atOnce is the number of values that inOrder works on at once.
const atOnce = 8

// inOrder applies f to the values of in, several at a time, and yields the results in the same order, up to the first
// error.
func inOrder[A, B any](in iter.Seq2[A, error], f func(A) (B, error)) iter.Seq2[B, error] {
	type result struct {
		value B
		err   error
	}
	return func(yield func(B, error) bool) {
		results, stop := make(chan chan result, atOnce), make(chan struct{})
		go func() {
			defer close(results)
			for a, err := range in {
				r := make(chan result, 1)
				select {
				case results <- r:
				case <-stop:
					return
				}
				if err != nil {
					r <- result{err: err}
					return
				}
				go func() {
					b, err := f(a)
					r <- result{b, err}
				}()
			}
		}()
		defer func() {
			close(stop)
			for r := range results { // until the producer has stopped
				<-r
			}
		}()
		for r := range results {
			if r := <-r; !yield(r.value, r.err) || r.err != nil {
				return
			}
		}
	}
}
