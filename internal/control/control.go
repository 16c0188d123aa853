// Package control drives the core live: it takes events, lets the core step,
// writes what came of it in one transaction, and then acts. It holds no rule.
package control

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/engine"
	"scrimp/internal/store"
	"scrimp/internal/work/groups"
	"scrimp/internal/work/propose"
)

// Clock turns wall time into market time.
type Clock = engine.Clock

// Config is what a Control needs to know. Spans are wall time.
type Config struct {
	Clock    Clock         // that all events are dated by
	Dir      string        // the data folder, whose path no event has; empty: there is none
	Tenant   string        // whose log this is; empty: ledger.DefaultTenant
	Silence  time.Duration // without word from an agent before its machine is given up
	Snapshot uint64        // events between snapshots at least; 0: none is written
	Log      *slog.Logger
	Running  int // jobs that hold a machine at once; 0: the core's default
	// Env is given to the agent of an attempt at an engine: by which URL it reaches the server, the token, and whose
	// the programs are.
	Env func(e *engine.Engine, attempt string) map[string]string
	// Ends says that all machines are to be given back and nothing is rented any more: what is asked for waits for another
	// server of the log.
	Ends bool
	// Leads is asked before each act: false while another server may have taken
	// over. nil: none can.
	Leads func() bool
	// Relieve gives up room that is held for the log, where it finds none, and reports whether there was any. nil: none
	// is held.
	Relieve func() bool
	// Archive finds jobs that have left the core. nil: none does.
	Archive Archive
	// Resolve answers a planner that wants to know of the files of a pipeline: with the move, or with another one.
	// Without it no stage of a pipeline begins.
	Resolve func(context.Context, groups.Snapshot, groups.Move) (groups.Move, error)
	// Notify tells the user's webhook. It must not block for long.
	Notify func(context.Context, core.Notify)
	// Die ends the process and does not return; nil: os.Exit. Whoever watches over the server begins another.
	Die func()
	// StepLimit is how much of its thread's processor time a step may use; 0: ten seconds.
	StepLimit time.Duration
	OnWork    func(job string) // called before a step works on a job, for tests
}

// Control owns a core.Machine and everything it acts on.
type Control struct {
	cfg     Config
	store   store.Store
	sources []*source // the engines, in their order

	requests chan request
	ended    chan struct{} // closed when the run has ended: nothing is taken any more
	acts     sync.WaitGroup
	builds   chan struct{} // a place in it for each table that is being built

	mu       sync.RWMutex // guards machine against readers between steps
	machine  *core.Machine
	stepping stepping
	asides   map[string]aside // events that were refused since a step failed, by id; the run's own
	beat     time.Time        // wall time at which the server was last awake
	drains   drains           // orders to be given to agents
	wake     time.Time        // market time; the run's own
	listed   map[string]bool  // ended instances that are being reported

	agents agentStatus // with a lock of its own

	planning sync.Mutex // guards planner
	planner  propose.Planner

	durable commitIndex           // how much of what was stepped is
	full    atomic.Pointer[error] // why nothing can be written: there is no room; nil: it can

	installation string // that the log is of, and its incarnation: part of every key and tag
	incarnation  int
	begun        chan struct{} // closed once the log says that they are

	snapped  uint64 // event of the newest snapshot
	tried    uint64 // event of the newest attempt at one
	probeAt  uint64 // event at which it is checked again whether one is due
	snapping bool   // one is being written
}

// ErrStopping is returned to callers while the server goes down.
var ErrStopping = errors.New("the server is stopping")

// New restores the machine from the store: the newest snapshot and the events after it.
// Each engine has a name of its own.
func New(ctx context.Context, s store.Store, engines []engine.Engine, cfg Config) (*Control, error) {
	cfg.Tenant = cmp.Or(cfg.Tenant, ledger.DefaultTenant)
	c := &Control{
		cfg: cfg, store: s, requests: make(chan request), begun: make(chan struct{}),
		ended: make(chan struct{}), machine: core.New(), asides: map[string]aside{},
		stepping: stepping{steps: make(chan struct{}, 1)}, listed: map[string]bool{},
		agents: agentStatus{by: map[string]ranks{}},
		builds: make(chan struct{}, builders()),
	}
	for _, e := range engines {
		if err := e.Validate(); err != nil {
			return nil, err
		}
		if c.sourceOf(e.Name) != nil {
			return nil, fmt.Errorf("two engines are called %s: give each a name of its own", e.Name)
		}
		c.sources = append(c.sources, newSource(e, cfg.Clock))
	}
	if c.cfg.Die == nil {
		c.cfg.Die = func() { os.Exit(1) }
	}
	c.cfg.StepLimit = cmp.Or(c.cfg.StepLimit, stepLimit)
	if err := c.readAsides(ctx); err != nil {
		return nil, err
	}
	if err := c.restore(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

func (c *Control) untilWake() time.Duration {
	if c.wake.IsZero() {
		return time.Hour
	}
	return min(time.Hour, max(0, time.Until(c.cfg.Clock.ToWall(c.wake))))
}

// Now is the market time.
func (c *Control) Now() time.Time { return c.cfg.Clock.ToMarket(time.Now()) }

// Begun is closed once it is in the log of which incarnation it is: before, nobody can say
// whether machines wait for somebody to decide whose they are.
func (c *Control) Begun() <-chan struct{} { return c.begun }

// Tenant is whose log this is: it stands in each event that is proposed.
func (c *Control) Tenant() string { return c.cfg.Tenant }

func (c *Control) event(at time.Time, b core.Body) core.Event {
	return core.Event{At: at, Schema: core.Schema, Tenant: c.cfg.Tenant, Actor: "server", Body: b}
}

// Read calls f with the machine between two steps, and returns when all that f
// may have seen is durable. It reports false where some of it never will be, since a
// write has failed: then nobody may be told what f saw. f must not keep the machine.
func (c *Control) Read(f func(*core.Machine)) (durable bool) {
	return c.ReadUpTo(func(m *core.Machine) uint64 { f(m); return m.Seq() })
}

// ReadUpTo is Read of an f that says itself which event is the last that it depends
// on, as Machine.ChangedAt does: what has not changed for a while is shown without
// waiting for the events that are being written.
func (c *Control) ReadUpTo(f func(*core.Machine) (last uint64)) (durable bool) {
	return c.durable.wait(c.readAt(f))
}

// Job calls f with the job of that name, between two steps, and returns when what f
// saw of it is durable. It reports whether the job is known; one of which something
// will never be durable is not. One that is archived is read from its record, which f may keep.
func (c *Control) Job(id string, f func(*core.Machine, *core.Job)) (known bool) {
	for range 2 { // it may be archived meanwhile, or come back
		durable := c.ReadUpTo(func(m *core.Machine) uint64 {
			var j *core.Job
			if j, known = m.Job(id); !known {
				return 0
			}
			f(m, j)
			return m.ChangedAt(j)
		})
		if known {
			return durable
		}
		j, err := c.archivedJob(id)
		if err != nil {
			c.cfg.Log.Error("an archived job was not read", "job", id, "error", err)
		}
		if j != nil {
			c.ReadUncommitted(func(m *core.Machine) { f(m, j) })
			return true
		}
	}
	return false
}

// Lost reports whether a write has failed, so that the machine has taken events
// which a restart will know nothing of. It is true before the first reader is let
// go with false.
func (c *Control) Lost() bool { return c.durable.lost.Load() }

// ReadUncommitted is Read without waiting: what f sees may be taken back by a crash. It is
// for what is shown to nobody, and for what an event that follows depends on.
func (c *Control) ReadUncommitted(f func(*core.Machine)) {
	c.readAt(func(m *core.Machine) uint64 { f(m); return 0 })
}

// tryRead is readAt where no step is on its way; ok is false where one is.
func (c *Control) tryRead(f func(*core.Machine) uint64) (last uint64, ok bool) {
	if !c.mu.TryRLock() {
		return 0, false
	}
	defer c.mu.RUnlock()
	return f(c.machine), true
}

func (c *Control) readAt(f func(*core.Machine) uint64) uint64 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return f(c.machine)
}

// prepared is how many jobs are summed between two steps while limits are prepared.
const prepared = 2048

// Prepare lets the machine sum what limits will have taken that are about to be set,
// some jobs between every two steps. The event that sets them then waits for none of
// a million; without it the step that takes the event does all of that at once.
func (c *Control) Prepare(ctx context.Context, rules *budget.Rules) {
	for more := true; more && ctx.Err() == nil; {
		more = c.prepare(rules)
		runtime.Gosched() // a step or a reader that waits has its turn
	}
}

func (c *Control) prepare(rules *budget.Rules) (more bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.machine.Prepare(rules, prepared)
}

// Durable is the number of the last event that is.
func (c *Control) Durable() uint64 { return c.durable.at() }

// Changed returns a channel that is closed when more events are durable.
func (c *Control) Changed() <-chan struct{} { return c.durable.changed() }

// Spec returns the job file that the job was submitted with, from the log; ok is
// false where the job is not known.
func (c *Control) Spec(ctx context.Context, job string) (text json.RawMessage, ok bool, err error) {
	var seq uint64
	stage := -1
	if !c.Job(job, func(_ *core.Machine, j *core.Job) {
		if seq = j.SpecEvent(); j.Terms().Stage != "" {
			stage = j.Terms().Index
		}
	}) {
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
	switch b := e.Body.(type) {
	case core.GroupOpened:
		return specOf(b, stage), true, nil
	case core.Spawn:
		for _, p := range b.Parts {
			if p.Job == job {
				return p.Spec, true, nil
			}
		}
	case core.JobSubmitted:
		if b.Job == job {
			return b.Spec, true, nil
		}
	case core.JobResumed:
		if b.Job == job {
			return b.Spec, true, nil
		}
	}
	return nil, false, fmt.Errorf("read the job file of %s: event %d is another", job, seq)
}

// specOf is the job file of a member of a group: of a stage of a pipeline its own, else that of all.
func specOf(b core.GroupOpened, stage int) json.RawMessage {
	if stage >= 0 && stage < len(b.Specs) {
		return b.Specs[stage]
	}
	return b.Spec
}

// leads reports whether this server may still act on the world.
func (c *Control) leads() bool { return c.cfg.Leads == nil || c.cfg.Leads() }

// Clock is the market's clock.
func (c *Control) Clock() Clock { return c.cfg.Clock }
