package control

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/state"
	"scrimp/internal/store"
	"scrimp/internal/wire/limits"
)

// Three goroutines work at once: the proposer encodes its events, Run steps through them, and the writer makes the
// stepped events durable, runs their actions and answers. So a step never waits for a disk, and all events that
// arrive while one transaction is written share the next.

const (
	// group is the approximate number of events in a transaction.
	group = 2000
	// ahead bounds the requests that are stepped and not yet written.
	ahead = 256
	// turn is the number of events stepped before readers get their turn.
	turn = 16
	// fullPause is the pause between two attempts to write to a full disk.
	fullPause = time.Second
)

// request holds proposed events and the channel on which their proposer waits.
type request struct {
	events []core.Event
	bodies [][]byte        // the encoded events
	sought map[string]bool // jobs already looked up in the archive
	done   chan error
}

// stepped is a request that the core has applied and the writer has to write.
type stepped struct {
	request
	first uint64 // number of the first event
	outs  []core.Outcome
	no    error // why the core refused its events; nil: it applied them
}

// ask builds a request from events. It refuses numbers that are out of their bounds: they would stay in the log for
// ever and enter every sum.
func ask(events []core.Event) (request, error) {
	r := request{events: slices.Clone(events), bodies: make([][]byte, len(events)), done: make(chan error, 1)}
	for i, e := range events {
		err := limits.Numbers(e.Body, e.At)
		if err != nil {
			return r, fmt.Errorf("take %s: %w", e.Body.Kind(), err)
		}
		if r.bodies[i], err = json.Marshal(e.Body); err != nil {
			return r, fmt.Errorf("encode %s: %w", e.Body.Kind(), err)
		}
	}
	return r, nil
}

// Propose hands events to the core and returns when all or none of them are durable. If the core refuses them, the
// error is a *core.Refusal or core.ErrStale. Propose fails while the disk is full.
func (c *Control) Propose(ctx context.Context, events ...core.Event) error {
	return c.rehydrating(ctx, func(sought map[string]bool) error {
		done, err := c.handOver(ctx, events, sought)
		if err != nil {
			return err
		}
		select {
		case err := <-done:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
}

// proposeToEnd is Propose for callers that must know whether the core took the events: once they are handed over, it
// ignores the end of ctx.
func (c *Control) proposeToEnd(ctx context.Context, events ...core.Event) error {
	return c.rehydrating(ctx, func(sought map[string]bool) error {
		done, err := c.handOver(ctx, events, sought)
		if err != nil {
			return err
		}
		return <-done
	})
}

// proposeIndependent is proposeToEnd for independent events. It skips events that are refused because their step
// failed: an agent would only send them again.
func (c *Control) proposeIndependent(ctx context.Context, events ...core.Event) error {
	for len(events) > 0 {
		err := c.proposeToEnd(ctx, events...)
		var aside *AsideError
		if !errors.As(err, &aside) {
			return err
		}
		events = slices.Delete(slices.Clone(events), aside.at, aside.at+1)
	}
	return nil
}

// handOver gives events to the goroutine that drives the core.
func (c *Control) handOver(ctx context.Context, events []core.Event, sought map[string]bool) (<-chan error, error) {
	if err := c.Full(); err != nil {
		return nil, err
	}
	r, err := ask(events)
	if err != nil {
		return nil, err
	}
	r.sought = sought
	select {
	case c.requests <- r:
		return r.done, nil
	case <-c.ended:
		return nil, ErrStopping
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Run drives the core until ctx ends, and returns when all its goroutines have. Call it once.
func (c *Control) Run(ctx context.Context) error {
	defer close(c.ended)
	defer c.durable.end()
	work, stop := context.WithCancel(ctx)
	defer c.acts.Wait()
	defer stop()
	c.acts.Go(func() { c.watchSteps(work) })

	begun, placed, err := c.incarnate(work)
	if err != nil {
		return err
	}
	var events []core.Event
	if begun != nil { // before anything that could rent a machine
		events = append(events, c.event(c.Now(), begun))
	}
	aside, err := c.setsAside(work)
	if err != nil {
		return err
	}
	events = append(append(events, aside...), c.event(c.Now(), core.Configured{Config: c.Rules()}))
	first, err := ask(events)
	if err != nil {
		return err
	}
	if err := c.commit(work, []stepped{c.step(work, first)}); err != nil {
		return err
	}
	if err := <-first.done; err != nil {
		return err
	}
	if err := placed(); err != nil {
		return fmt.Errorf("store the location of the log: %w", err)
	}
	close(c.begun)
	for _, a := range c.machine.Pending() {
		c.act(work, a)
	}
	c.acts.Go(func() { c.watch(work) })

	steps, failed, written := make(chan stepped, ahead), make(chan struct{}), make(chan error, 1)
	go func() { written <- c.write(work, steps, failed) }()
	why := c.drive(ctx, work, steps, failed)
	close(steps) // the writer finishes what was stepped
	if err := <-written; err != nil {
		return err
	}
	return why
}

// drive steps through requests and timer ticks until ctx ends or a write fails.
func (c *Control) drive(ctx, work context.Context, steps chan<- stepped, failed <-chan struct{}) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(c.untilWake())
		var r request
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-failed:
			return nil
		case r = <-c.requests:
		case <-timer.C:
			if c.untilWake() > 0 {
				continue
			}
			var err error
			if r, err = ask([]core.Event{c.event(c.Now(), core.Tick{})}); err != nil {
				return err
			}
		}
		steps <- c.step(work, r)
	}
}

// write makes the stepped requests durable, as many at a time as have gathered, until the channel is closed. After a
// failure it answers the rest with the error.
func (c *Control) write(ctx context.Context, steps <-chan stepped, failed chan<- struct{}) error {
	for s := range steps {
		batch, events := []stepped{s}, len(s.events)
	more:
		for events < group {
			select {
			case s, ok := <-steps:
				if !ok {
					break more
				}
				batch, events = append(batch, s), events+len(s.events)
			default:
				break more
			}
		}
		if err := c.commit(ctx, batch); err != nil {
			close(failed)
			for s := range steps {
				s.done <- err
			}
			return err
		}
	}
	return nil
}

// commit writes a batch in one transaction, makes it visible, runs its actions and answers the proposers.
func (c *Control) commit(ctx context.Context, batch []stepped) error {
	records, err := records(batch)
	if err == nil && len(records) > 0 {
		if err = c.append(ctx, records); err != nil {
			err = fmt.Errorf("write %d events: %w", len(records), err)
		}
	}
	if err != nil {
		c.durable.lose()
	} else {
		if len(records) > 0 {
			c.durable.rise(records[len(records)-1].Seq)
		}
		for _, s := range batch {
			for _, out := range s.outs {
				for _, a := range out.Actions {
					c.act(ctx, a)
				}
			}
		}
	}
	for _, s := range batch {
		s.done <- cmp.Or(err, s.no)
	}
	return err
}

// append writes records. If the disk is full, it retries until ctx ends. Meanwhile stepped requests wait, readers of
// durable state are served, and no new events are taken.
func (c *Control) append(ctx context.Context, records []store.Record) error {
	defer func() {
		if c.full.Swap(nil) != nil && ctx.Err() == nil {
			c.cfg.Log.Info("there is room again: going on")
		}
	}()
	for {
		err := c.store.Append(context.WithoutCancel(ctx), records)
		if !errors.Is(err, store.ErrFull) || ctx.Err() != nil {
			return err
		}
		if c.cfg.Relieve != nil && c.cfg.Relieve() {
			continue
		}
		if c.full.Swap(&err) == nil {
			c.cfg.Log.Error("the disk is full: the server takes no events until there is room", "error", err)
		}
		sleep(ctx, fullPause)
	}
}

// Full returns why nothing can be written now; nil if it can.
func (c *Control) Full() error {
	if why := c.full.Load(); why != nil {
		return *why
	}
	return nil
}

// records converts a batch for the store. It leaves out events that changed nothing.
func records(batch []stepped) ([]store.Record, error) {
	var list []store.Record
	for _, s := range batch {
		seq := s.first
		for i, e := range s.events {
			if s.outs[i].Nothing {
				continue
			}
			r, err := record(seq, e, s.bodies[i], s.outs[i])
			if err != nil {
				return nil, err
			}
			list = append(list, r)
			seq++
		}
	}
	return list, nil
}

func record(seq uint64, e core.Event, body []byte, out core.Outcome) (store.Record, error) {
	r := store.Record{Seq: seq, Tenant: e.Tenant, At: e.At, Kind: e.Body.Kind(), Key: e.Key, Postings: out.Postings,
		Sample: out.Sample}
	var err error
	if r.Event, err = e.Append(make([]byte, 0, len(body)+200), body); err != nil {
		return r, fmt.Errorf("encode event %d: %w", seq, err)
	}
	if r.Facts, err = state.EncodeFacts(out.Facts); err != nil {
		return r, fmt.Errorf("encode event %d: %w", seq, err)
	}
	return r, nil
}
