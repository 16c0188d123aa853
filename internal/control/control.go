// Package control drives the core live: it takes events, lets the core step,
// writes what came of it in one transaction, and then acts. It holds no rule.
package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"scrimp/internal/core"
	"scrimp/internal/provider"
	"scrimp/internal/store"
)

// Clock turns wall time into market time, which runs Speed times as fast.
type Clock struct {
	Wall   time.Time // a moment on the wall
	Market time.Time // the same moment on the market
	Speed  float64   // market seconds a wall second
}

// ToMarket returns the market time at wall time t.
func (c Clock) ToMarket(t time.Time) time.Time {
	return c.Market.Add(c.Stretch(t.Round(0).Sub(c.Wall))).UTC()
}

// ToWall returns the wall time at market time t.
func (c Clock) ToWall(t time.Time) time.Time { return c.Wall.Add(c.Shrink(t.Sub(c.Market))).UTC() }

// Stretch turns a wall span into the market span that passes meanwhile.
func (c Clock) Stretch(d time.Duration) time.Duration { return time.Duration(float64(d) * c.Speed) }

// Shrink turns a market span into the wall span that it takes.
func (c Clock) Shrink(d time.Duration) time.Duration { return time.Duration(float64(d) / c.Speed) }

// Config is what a Control needs to know. Spans are wall time.
type Config struct {
	Clock    Clock
	Poll     time.Duration // between looks at instances and prices
	Sweep    time.Duration // between sweeps of the whole inventory
	Silence  time.Duration // without word from an agent before its machine is given up
	Snapshot uint64        // events between snapshots at least, and a quarter of the jobs: what writing one costs is in proportion to what it saves; 0: none is written
	Log      *slog.Logger
	// Env is given to the agent of an attempt: the server's address and the token.
	Env func(attempt string) map[string]string
	// Leads is asked before each act: false while another server may have taken
	// over. nil: none can.
	Leads func() bool
	// Notify tells the user's webhook. It must not block for long.
	Notify func(context.Context, core.Notify)
}

// Control owns a core.Machine and everything it acts on.
type Control struct {
	cfg    Config
	store  store.Store
	driver *provider.Provider
	name   string // of the provider

	requests chan request
	acts     sync.WaitGroup

	mu      sync.RWMutex // guards machine against readers between steps
	machine *core.Machine
	heard   map[string]time.Time  // wall time of an attempt's last word
	beat    time.Time             // wall time at which the server was last awake
	drains  map[string]core.Drain // orders to be given to agents, by attempt
	wake    time.Time             // market time
	changed chan struct{}         // closed and made anew at each change
	listed  map[string]bool       // ended instances that were reported already
	latest  map[string]*Latest    // newest word of each attempt, by attempt
	market  marketState

	snapped  uint64 // event of the newest snapshot
	snapping bool   // one is being written
}

type request struct {
	events []core.Event
	done   chan error
}

// ErrStopping is returned to callers while the server goes down.
var ErrStopping = errors.New("the server is stopping")

// New restores the machine from the store: the newest snapshot and the events after it.
func New(ctx context.Context, s store.Store, d provider.Driver, providerName string, cfg Config) (*Control, error) {
	c := &Control{
		cfg: cfg, store: s, driver: provider.New(d, provider.Default()), name: providerName, requests: make(chan request), machine: core.New(),
		heard: map[string]time.Time{}, drains: map[string]core.Drain{}, changed: make(chan struct{}), listed: map[string]bool{}, latest: map[string]*Latest{},
	}
	if err := c.restore(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

// restore reads the newest snapshot and replays the log after it.
func (c *Control) restore(ctx context.Context) error {
	snap, ok, err := c.store.LatestSnapshot(ctx)
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	if ok && snap.Version == core.SnapshotVersion {
		if c.machine, err = core.Restore(snap.State); err != nil {
			return fmt.Errorf("restore: %w", err)
		}
	}
	c.snapped = c.machine.Seq()
	for after := c.snapped; ; {
		records, err := c.store.Records(ctx, after, 1000)
		if err != nil {
			return fmt.Errorf("restore: %w", err)
		}
		if len(records) == 0 {
			break
		}
		for _, r := range records {
			after = r.Seq
			e, decisions, err := Decode(r)
			if err != nil {
				return err
			}
			c.wake = c.machine.Replay(e, decisions).Wake
		}
	}
	if c.wake.IsZero() {
		c.wake = c.machine.Now()
	}
	for _, a := range c.machine.Live() {
		if !a.Claimed.IsZero() {
			c.heard[a.ID] = time.Now() // its agent has until the limit to find us again
		}
	}
	return nil
}

// Decode reads an event and its decisions back from the log.
func Decode(r store.Record) (core.Event, []core.Decision, error) {
	var e core.Event
	if err := json.Unmarshal(r.Event, &e); err != nil {
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

// group is how many events share a transaction at most.
const group = 2000

// Run drives the core until ctx ends. It returns when all its goroutines have.
func (c *Control) Run(ctx context.Context) error {
	work, stop := context.WithCancel(ctx)
	defer c.acts.Wait()
	defer stop()

	now := c.Now()
	if err := c.apply(work, []core.Event{c.event(now, core.Configured{Config: CoreConfig(c.cfg.Clock, c.cfg.Poll)})}); err != nil {
		return err
	}
	for _, a := range c.machine.Pending() {
		c.act(work, a)
	}
	c.acts.Add(1)
	go func() { defer c.acts.Done(); c.watch(work) }()

	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(c.untilWake())
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case r := <-c.requests:
			batch, events := []request{r}, r.events
		more: // whoever waits already shares the transaction
			for len(events) < group {
				select {
				case next := <-c.requests:
					batch, events = append(batch, next), append(events, next.events...)
				default:
					break more
				}
			}
			err := c.apply(work, events)
			for _, r := range batch {
				r.done <- err
			}
			if err != nil {
				return err
			}
		case <-timer.C:
			if c.untilWake() > 0 {
				continue
			}
			if err := c.apply(work, []core.Event{c.event(c.Now(), core.Tick{})}); err != nil {
				return err
			}
		}
	}
}

func (c *Control) untilWake() time.Duration {
	if c.wake.IsZero() {
		return time.Hour
	}
	return min(time.Hour, max(0, time.Until(c.cfg.Clock.ToWall(c.wake))))
}

// Now is the market time.
func (c *Control) Now() time.Time { return c.cfg.Clock.ToMarket(time.Now()) }

func (c *Control) event(at time.Time, b core.Body) core.Event {
	return core.Event{At: at, Schema: core.Schema, Tenant: "default", Actor: "server", Body: b}
}

// Tell hands events to the core and returns when they are durable.
func (c *Control) Tell(ctx context.Context, events ...core.Event) error {
	r := request{events: events, done: make(chan error, 1)}
	select {
	case c.requests <- r:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case err := <-r.done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// apply steps through events, writes all that came of them, and then acts.
func (c *Control) apply(ctx context.Context, events []core.Event) error {
	c.mu.Lock()
	var records []store.Record
	var actions []core.Action
	for _, e := range events {
		if e.At.Before(c.machine.Now()) {
			e.At = c.machine.Now() // a clock that was set back, or a message that was overtaken
		}
		out := c.machine.Step(e)
		r, err := record(c.machine.Seq(), e, out)
		if err != nil {
			c.mu.Unlock()
			return err
		}
		records, actions, c.wake = append(records, r), append(actions, out.Actions...), out.Wake
	}
	if err := c.store.Append(context.WithoutCancel(ctx), records); err != nil {
		c.mu.Unlock()
		return fmt.Errorf("write %d events: %w", len(records), err)
	}
	c.snapshot(ctx)
	close(c.changed)
	c.changed = make(chan struct{})
	c.mu.Unlock()
	for _, a := range actions {
		c.act(ctx, a)
	}
	return nil
}

func record(seq uint64, e core.Event, out core.Outcome) (store.Record, error) {
	r := store.Record{Seq: seq, Tenant: e.Tenant, At: e.At, Kind: e.Body.Kind(), Key: e.Key, Postings: out.Postings}
	var err error
	if r.Event, err = json.Marshal(e); err != nil {
		return r, fmt.Errorf("encode event %d: %w", seq, err)
	}
	if len(out.Decisions) > 0 {
		if r.Decisions, err = json.Marshal(out.Decisions); err != nil {
			return r, fmt.Errorf("encode the decisions of event %d: %w", seq, err)
		}
	}
	if len(out.Actions) > 0 {
		if r.Actions, err = core.EncodeActions(out.Actions); err != nil {
			return r, err
		}
	}
	return r, nil
}

// Read calls f with the machine between two steps. f must not keep it.
func (c *Control) Read(f func(*core.Machine)) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	f(c.machine)
}

// Changed returns a channel that is closed at the next change of state.
func (c *Control) Changed() <-chan struct{} {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.changed
}

// Spec returns the job file that the job was submitted with, from the log; ok is
// false where the job is not known.
func (c *Control) Spec(ctx context.Context, job string) (text json.RawMessage, ok bool, err error) {
	var seq uint64
	c.Read(func(m *core.Machine) {
		if j, known := m.Job(job); known {
			seq = j.Event
		}
	})
	if seq == 0 {
		return nil, false, nil
	}
	records, err := c.store.Records(ctx, seq-1, 1)
	if err != nil {
		return nil, false, fmt.Errorf("read the job file of %s: %w", job, err)
	}
	if len(records) == 0 {
		return nil, false, fmt.Errorf("read the job file of %s: event %d is not there", job, seq)
	}
	e, _, err := Decode(records[0])
	if err != nil {
		return nil, false, fmt.Errorf("read the job file of %s: %w", job, err)
	}
	b, ok := e.Body.(core.JobSubmitted)
	if !ok || b.Job != job {
		return nil, false, fmt.Errorf("read the job file of %s: event %d is another", job, seq)
	}
	return b.Spec, true, nil
}

// leads reports whether this server may still act on the world.
func (c *Control) leads() bool { return c.cfg.Leads == nil || c.cfg.Leads() }

// Clock is the market's clock.
func (c *Control) Clock() Clock { return c.cfg.Clock }

// CoreConfig is the core's configuration, in market time, where the market is
// looked at every poll on the wall.
func CoreConfig(clock Clock, poll time.Duration) core.Config {
	d := core.DefaultConfig()
	d.Detect = clock.Stretch(2 * poll)
	d.CoolOff = clock.Stretch(2 * time.Second)
	d.BootLimit = clock.Stretch(5 * time.Minute)
	d.Patience = clock.Stretch(30 * time.Second)
	return d
}
