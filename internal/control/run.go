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
	"scrimp/internal/wire/bound"
)

// Three hands work at the same time: who tells of an event encodes it, the run
// steps through it, and the writer makes durable what was stepped meanwhile, acts
// on it and answers. So a step never waits for a disk, and whatever gathers while
// one transaction is written shares the next.

const (
	// group is how many events share a transaction, about.
	group = 2000
	// ahead is how many requests may be stepped and not written yet.
	ahead = 256
	// turn is how many events are stepped before readers have their turn.
	turn = 16
	// fullPause is between two tries to write to a full disk.
	fullPause = time.Second
)

// request is what somebody tells, and where they wait.
type request struct {
	events []core.Event
	bodies [][]byte        // the events', encoded
	sought map[string]bool // jobs that were looked for among the archived ones
	done   chan error
}

// stepped is a request that the core has taken: it is to be written.
type stepped struct {
	request
	first uint64 // number of the first event
	outs  []core.Outcome
	no    error // why the core does not take its events; nil: it has
}

// ask is a request about events.
// A number that is out of its bounds is none for the core: it is on record for ever, and every sum would have it.
func ask(events []core.Event) (request, error) {
	r := request{events: slices.Clone(events), bodies: make([][]byte, len(events)), done: make(chan error, 1)}
	for i, e := range events {
		err := bound.Numbers(e.Body, e.At)
		if err != nil {
			return r, fmt.Errorf("take %s: %w", e.Body.Kind(), err)
		}
		if r.bodies[i], err = json.Marshal(e.Body); err != nil {
			return r, fmt.Errorf("encode %s: %w", e.Body.Kind(), err)
		}
	}
	return r, nil
}

// Propose hands events to the core and returns when they are durable, all or none. What
// the core does not let in it refuses with a *core.Refusal, or core.ErrStale.
// While there is no room for them it takes none.
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

// proposeToEnd is Propose for who must know whether the core took the events: once it has
// them, the end of ctx ends nothing.
func (c *Control) proposeToEnd(ctx context.Context, events ...core.Event) error {
	return c.rehydrating(ctx, func(sought map[string]bool) error {
		done, err := c.handOver(ctx, events, sought)
		if err != nil {
			return err
		}
		return <-done
	})
}

// proposeWhatGoes is proposeToEnd for independent events. It skips events that are refused because their step failed:
// an agent would only send them again.
func (c *Control) proposeWhatGoes(ctx context.Context, events ...core.Event) error {
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

// handOver gives events to who drives the core.
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

// Run drives the core until ctx ends. It returns when all its goroutines have. It
// is called once.
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
	if begun != nil { // before anything that could ask for a machine
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
		return fmt.Errorf("keep where the log lies: %w", err)
	}
	close(c.begun)
	for _, a := range c.machine.Pending() {
		c.act(work, a)
	}
	c.acts.Go(func() { c.watch(work) })

	steps, failed, written := make(chan stepped, ahead), make(chan struct{}), make(chan error, 1)
	go func() { written <- c.write(work, steps, failed) }()
	why := c.drive(ctx, work, steps, failed)
	close(steps) // what was stepped is written still
	if err := <-written; err != nil {
		return err
	}
	return why
}

// drive steps through what is told and through what time brings, until ctx ends or a write has failed.
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

// write makes durable what was stepped, as much at a time as has gathered, until
// there is no more. After a failure it takes nothing more.
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

// commit writes what was stepped in one transaction, lets it be seen, acts on it
// and answers.
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

// append writes records. For room on the disk it waits until ctx ends: what was
// stepped is kept, whoever reads what is durable is answered, and nothing more is
// taken meanwhile.
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
			c.cfg.Log.Error("nothing can be written, and nothing is taken until there is room", "error", err)
		}
		sleep(ctx, fullPause)
	}
}

// Full returns why nothing can be written now; nil where it can.
func (c *Control) Full() error {
	if why := c.full.Load(); why != nil {
		return *why
	}
	return nil
}

// records is what was stepped as the store keeps it. What led to nothing is not kept.
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
