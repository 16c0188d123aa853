package control

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"time"

	"scrimp/internal/core"
	"scrimp/internal/store"
)

// restore reads the newest snapshot and replays the log after it.
func (c *Control) restore(ctx context.Context) error {
	if err := c.restoreSnapshot(ctx); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	c.tried = c.machine.Seq()
	for events, err := range inOrder(pages(ctx, c.store, c.tried), decodeAll) {
		if err != nil {
			return fmt.Errorf("restore: %w", err)
		}
		for _, e := range events {
			c.wake = c.machine.Replay(e.event, e.decisions).Wake
		}
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

// restoreSnapshot makes the machine of the newest snapshot, or leaves an empty one.
func (c *Control) restoreSnapshot(ctx context.Context) error {
	snap, ok, err := c.store.LatestSnapshot(ctx)
	if err != nil || !ok || snap.Version != core.SnapshotVersion {
		return err
	}
	if snap.Parts == 0 {
		c.machine, err = core.Restore(snap.State)
		return err
	}
	r, err := core.NewRestorer(snap.State)
	if err != nil {
		return err
	}
	for part, err := range inOrder(c.store.SnapshotParts(ctx, snap), core.ReadPart) {
		if err != nil {
			return err
		}
		r.Add(part)
	}
	c.machine, err = r.Machine()
	c.snapped = snap.Seq // the next one takes from it what has not changed
	return err
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
	event     core.Event
	decisions []core.Decision
}

func decodeAll(records []store.Record) ([]decoded, error) {
	list := make([]decoded, len(records))
	for i, r := range records {
		var err error
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
	if len(r.Decisions) > 0 {
		if err := json.Unmarshal(r.Decisions, &d); err != nil {
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
