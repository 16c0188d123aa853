package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"scrimp/internal/core"
	"scrimp/internal/store"
)

// errUnreadable is a snapshot that this release cannot read.
var errUnreadable = errors.New("the snapshot cannot be read")

// restore reads the newest snapshot and replays the log after it. A snapshot is a
// short cut only: where another release wrote it, or it is damaged, the whole log is
// replayed, which says the same and takes longer.
func (c *Control) restore(ctx context.Context) error {
	upTo, unread := c.restoreSnapshot(ctx)
	switch {
	case errors.Is(unread, errUnreadable):
		c.machine, c.snapped = core.New(), 0
		c.cfg.Log.Warn("the snapshot is passed over: the whole log is replayed, which takes longer", "why", unread)
	case unread != nil:
		return fmt.Errorf("restore: %w", unread)
	}
	c.tried = c.machine.Seq()
	for events, err := range inOrder(pages(ctx, c.store, c.tried), decodeAll) {
		if err != nil {
			return fmt.Errorf("restore: %w", err)
		}
		for _, e := range events {
			if next := c.machine.Seq() + 1; e.seq != next {
				return fmt.Errorf("restore: %w", missing(next, e.seq, unread))
			}
			c.wake = c.machine.Replay(e.event, e.decisions).Wake
		}
	}
	if c.machine.Seq() < upTo {
		return fmt.Errorf("restore: %w", missing(c.machine.Seq()+1, upTo+1, unread))
	}
	if c.wake.IsZero() {
		c.wake = c.machine.Now()
	}
	c.durable.rise(c.machine.Seq())
	for _, a := range c.machine.Live() {
		if !a.Claimed.IsZero() {
			c.words.hear(a.ID, time.Now()) // its agent has until the limit to find us again
		}
	}
	return nil
}

// missing says what is wrong with a log that goes on with event seq where next is
// due. Nothing is guessed: a state without those events would be another.
func missing(next, seq uint64, unread error) error {
	if unread != nil {
		return fmt.Errorf("events %d to %d are in no log, only in a snapshot, and %w: start once the release of scrimp that wrote it and take a backup with it, or restore a backup (scrimp restore)", next, seq-1, unread)
	}
	return fmt.Errorf("events %d to %d are missing from the log: restore a backup (scrimp restore)", next, seq-1)
}

// restoreSnapshot makes the machine of the newest snapshot, or leaves an empty one.
// upTo is the last event that the snapshot has, whether it could be read or not.
func (c *Control) restoreSnapshot(ctx context.Context) (upTo uint64, err error) {
	snap, ok, err := c.store.LatestSnapshot(ctx)
	if err != nil || !ok {
		return 0, err
	}
	return snap.Seq, c.read(ctx, snap)
}

func (c *Control) read(ctx context.Context, snap store.Snapshot) (err error) {
	if snap.Version != core.SnapshotVersion {
		return fmt.Errorf("%w: it has version %d, and this release reads version %d", errUnreadable, snap.Version, core.SnapshotVersion)
	}
	unreadable := func(err error) error {
		if err != nil {
			err = fmt.Errorf("%w: %w", errUnreadable, err)
		}
		return err
	}
	if snap.Parts == 0 {
		c.machine, err = core.Restore(snap.State)
		return unreadable(err)
	}
	r, err := core.NewRestorer(snap.State)
	if err != nil {
		return unreadable(err)
	}
	read := func(text json.RawMessage) (core.Part, error) {
		p, err := core.ReadPart(text)
		return p, unreadable(err)
	}
	for part, err := range inOrder(c.store.SnapshotParts(ctx, snap), read) {
		if errors.Is(err, store.ErrGone) {
			return unreadable(err)
		}
		if err != nil {
			return err
		}
		r.Add(part)
	}
	c.machine, err = r.Machine()
	c.snapped = snap.Seq // the next one takes from it what has not changed
	return unreadable(err)
}

// pages is the log after an event, so many records at a time.
func pages(ctx context.Context, s store.Store, after uint64) iter.Seq2[[]store.Record, error] {
	return func(yield func([]store.Record, error) bool) {
		for {
			records, err := s.Records(ctx, after, 500)
			if err == nil && len(records) == 0 || !yield(records, err) || err != nil {
				return
			}
			after = records[len(records)-1].Seq
		}
	}
}

type decoded struct {
	seq       uint64
	event     core.Event
	decisions []core.Decision
}

func decodeAll(records []store.Record) ([]decoded, error) {
	list := make([]decoded, len(records))
	for i, r := range records {
		var err error
		list[i].seq = r.Seq
		if list[i].event, list[i].decisions, err = Decode(r); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// Decode reads an event and its decisions back from the log.
func Decode(r store.Record) (core.Event, []core.Decision, error) {
	var e core.Event
	if err := e.UnmarshalJSON(r.Event); err != nil { // at once: the library would look through all of it first
		return e, nil, fmt.Errorf("read event %d: %w", r.Seq, err)
	}
	var d []core.Decision
	if len(r.Facts) > 0 {
		if err := json.Unmarshal(r.Facts, &d); err != nil {
			return e, nil, fmt.Errorf("read the decisions of event %d: %w", r.Seq, err)
		}
	}
	return e, d, nil
}

// atOnce is how many values inOrder has in work.
const atOnce = 8

// inOrder applies f to what in yields, several at the same time, and yields what
// comes of them in the same order, up to the first error.
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
			for r := range results { // until the reader has left
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
