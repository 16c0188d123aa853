// Package control runs the core on live events: it receives events, steps the core, writes the result in one
// transaction, and then acts. It makes no decisions.
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
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"scrimp/internal/control/inbox"
	"scrimp/internal/control/recent"
	"scrimp/internal/control/replay"
	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/engine"
	"scrimp/internal/store"
	"scrimp/internal/work/groups"
	"scrimp/internal/work/propose"
)

// Clock converts between wall time and market time.
type Clock = engine.Clock

// Config configures a Control. Durations are wall time.
type Config struct {
	Clock    Clock         // dates all events
	Dir      string        // data folder; its path must not appear in events; empty: none
	Tenant   string        // owner of the log; empty: ledger.DefaultTenant
	Silence  time.Duration // how long an agent may be silent before its machine is given up
	Snapshot uint64        // least number of events between snapshots; 0: no snapshots
	Log      *slog.Logger
	Running  int // most jobs that hold a machine at once; 0: the core's default
	// PreemptAfter is how long a program runs, in wall time, before a critical job may preempt it; 0: the core's default.
	PreemptAfter time.Duration
	// Env returns the environment of an attempt's agent on an engine: the URL of the server, the token, and the user
	// of the programs.
	Env func(e *engine.Engine, attempt string) map[string]string
	// Ends tells the server to terminate all machines and rent none. New launches wait for another server of the log.
	Ends bool
	// Leads reports whether this server may act. It is called before each action and returns false once another
	// server may have taken over. nil: no other server can.
	Leads func() bool
	// Relieve frees space reserved for the log when the disk is full, and reports whether there was any. nil: none is
	// reserved.
	Relieve func() bool
	// Archive finds jobs that have left the core. nil: jobs are never archived.
	Archive Archive
	// Resolve returns what completes the moves of one proposal from the files of a pipeline or the conditions of a
	// schedule. Without Resolve no stage of a pipeline starts.
	Resolve func(context.Context) groups.Resolver
	// Notify calls the user's webhook. It must not block for long.
	Notify func(context.Context, core.Notify)
	// Die ends the process and does not return; nil: os.Exit. The supervisor starts a new process.
	Die func()
	// StepLimit bounds the processor time that a step's thread may use; 0: ten seconds.
	StepLimit time.Duration
	OnWork    func(job string) // called before a step works on a job, for tests
}

// Control owns a core.Machine and everything it acts on.
type Control struct {
	cfg     Config
	store   store.Store
	sources []*source // the engines, in configuration order

	requests chan request
	ended    chan struct{} // closed when Run has ended: no more requests are taken
	acts     sync.WaitGroup
	builds   chan struct{} // a semaphore for tables being built

	mu       sync.RWMutex // guards machine against readers between steps
	machine  *core.Machine
	stepping stepping
	asides   map[string]aside // events refused since a step failed, by id; used by Run only
	beat     time.Time        // wall time of the last call of awake
	drains   drains           // drain orders for agents
	wake     time.Time        // market time; used by Run only
	listed   map[string]bool  // ended instances that are being reported

	agents *inbox.Inbox // has its own lock

	bodies *recent.Cache[uint64, core.Body] // of events that job files were read from, by number

	planning sync.Mutex // guards planner
	planner  propose.Planner

	durable commitIndex           // how much of the stepped log is durable
	full    atomic.Pointer[error] // why nothing can be written (the disk is full); nil: it can

	installation string // installation and incarnation of the log, part of every key and tag
	incarnation  int
	begun        chan struct{} // closed once the log contains the incarnation

	snapped  uint64 // event of the newest snapshot
	tried    uint64 // event of the newest attempted snapshot
	probeAt  uint64 // event at which to check again whether a snapshot is due
	snapping bool   // a snapshot is being written
}

// ErrStopping is returned to callers while the server shuts down.
var ErrStopping = errors.New("the server is stopping")

// New restores the machine from the store: the newest snapshot and the events after it. The names of the engines must
// differ.
func New(ctx context.Context, s store.Store, engines []engine.Engine, cfg Config) (*Control, error) {
	cfg.Tenant = cmp.Or(cfg.Tenant, ledger.DefaultTenant)
	c := &Control{
		cfg: cfg, store: s, requests: make(chan request), begun: make(chan struct{}),
		ended: make(chan struct{}), machine: core.New(), asides: map[string]aside{},
		stepping: stepping{steps: make(chan struct{}, 1)}, listed: map[string]bool{},
		agents: inbox.New(inbox.Config{Clock: cfg.Clock, Tenant: cfg.Tenant, Silence: cfg.Silence}),
		builds: make(chan struct{}, builders()), bodies: recent.New[uint64, core.Body](mostBodies),
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

// Now returns the market time.
func (c *Control) Now() time.Time { return c.cfg.Clock.ToMarket(time.Now()) }

// Begun returns a channel that is closed once the log contains the current incarnation. Before that, nobody knows
// whether machines wait for a user to adopt or release them.
func (c *Control) Begun() <-chan struct{} { return c.begun }

// Tenant returns the owner of the log, who is named in each proposed event.
func (c *Control) Tenant() string { return c.cfg.Tenant }

func (c *Control) event(at time.Time, b core.Body) core.Event {
	return core.Event{At: at, Schema: core.Schema, Tenant: c.cfg.Tenant, Actor: "server", Body: b}
}

// Read calls f with the machine between two steps, and returns when everything that f may have seen is durable. It
// returns false if a write has failed, so that some of it never will be: the caller must not show what f saw. f must
// not keep the machine.
func (c *Control) Read(f func(*core.Machine)) (durable bool) {
	return c.ReadUpTo(func(m *core.Machine) uint64 { f(m); return m.Seq() })
}

// ReadUpTo is like Read, but f returns the last event that its result depends on, as Machine.ChangedAt does. So a
// result that has not changed lately does not wait for the events that are being written.
func (c *Control) ReadUpTo(f func(*core.Machine) (last uint64)) (durable bool) {
	return c.durable.wait(c.readAt(f))
}

// Job calls f with the named job between two steps, and returns when what f saw is durable. It reports whether the
// job is known; a job with an event that never becomes durable is not. Job reads an archived job from its record,
// which f may keep.
func (c *Control) Job(id string, f func(*core.Machine, *core.Job)) (known bool) {
	for range 2 { // the job may be archived or rehydrated meanwhile
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

// Lost reports whether a write has failed, so that the machine contains events that a restart will not know. It
// becomes true before any reader returns false.
func (c *Control) Lost() bool { return c.durable.lost.Load() }

// ReadUncommitted is Read without waiting: a crash may undo what f sees. Use it for values that no user sees, and for
// those on which only later events depend.
func (c *Control) ReadUncommitted(f func(*core.Machine)) {
	c.readAt(func(m *core.Machine) uint64 { f(m); return 0 })
}

// tryRead is readAt if no step is running; otherwise ok is false.
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

// prepared is the number of jobs summed between two steps while limits are prepared.
const prepared = 2048

// Prepare sums the usage of limits that are about to be set, a few jobs between every two steps. Without it, the step
// that sets them sums all jobs at once, which may be a million.
func (c *Control) Prepare(ctx context.Context, rules *budget.Rules) {
	for more := true; more && ctx.Err() == nil; {
		more = c.prepare(rules)
		runtime.Gosched() // let a waiting step or reader run
	}
}

func (c *Control) prepare(rules *budget.Rules) (more bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.machine.Prepare(rules, prepared)
}

// Durable returns the number of the last durable event.
func (c *Control) Durable() uint64 { return c.durable.at() }

// Changed returns a channel that is closed when more events are durable.
func (c *Control) Changed() <-chan struct{} { return c.durable.changed() }

// Spec returns the job file that the job was submitted with, from the log; ok is false if the job is unknown.
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
	body, err := c.bodies.Get(seq, func() (core.Body, int, error) { return c.bodyOf(ctx, seq) })
	if err != nil {
		return nil, false, fmt.Errorf("read the job file of %s: %w", job, err)
	}
	switch b := body.(type) {
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
	return nil, false, fmt.Errorf("read the job file of %s: event %d does not submit it", job, seq)
}

// mostBodies is the total size of the events whose job files are kept for the next rank, member or stage, in bytes.
const mostBodies = 32 << 20

// bodyOf reads an event's body, and its size.
func (c *Control) bodyOf(ctx context.Context, seq uint64) (core.Body, int, error) {
	records, err := c.store.Records(ctx, seq-1, 1)
	if err != nil {
		return nil, 0, err
	}
	if len(records) == 0 {
		return nil, 0, fmt.Errorf("event %d does not exist", seq)
	}
	e, _, err := replay.Decode(records[0])
	return e.Body, len(records[0].Event), err
}

// SpecsAt returns all job files in an event; none if the event holds none.
func (c *Control) SpecsAt(ctx context.Context, seq uint64) (list []json.RawMessage, err error) {
	if seq == 0 {
		return nil, nil
	}
	records, err := c.store.Records(ctx, seq-1, 1)
	if err != nil || len(records) == 0 {
		return nil, err
	}
	e, _, err := replay.Decode(records[0])
	if err != nil {
		return nil, fmt.Errorf("read event %d: %w", seq, err)
	}
	switch b := e.Body.(type) {
	case core.GroupOpened:
		list = slices.Concat(b.Specs, []json.RawMessage{b.Spec})
	case core.Spawn:
		for _, p := range b.Parts {
			list = append(list, p.Spec)
		}
	case core.JobSubmitted:
		list = append(list, b.Spec)
	case core.JobResumed:
		list = append(list, b.Spec)
	}
	return list, nil
}

// specOf returns the job file of a member of a group: a pipeline stage's own, otherwise the group's.
func specOf(b core.GroupOpened, stage int) json.RawMessage {
	if stage >= 0 && stage < len(b.Specs) {
		return b.Specs[stage]
	}
	return b.Spec
}

// leads reports whether this server may still act on the world.
func (c *Control) leads() bool { return c.cfg.Leads == nil || c.cfg.Leads() }

// Clock returns the market's clock.
func (c *Control) Clock() Clock { return c.cfg.Clock }
