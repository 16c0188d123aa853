package core

import (
	"cmp"
	"fmt"
	"time"

	"scrimp/internal/budget"
	"scrimp/internal/ledger"
	"scrimp/internal/market"
	"scrimp/internal/money"
	"scrimp/internal/plan"
	"scrimp/internal/policy"
)

// Config is what the machine works by. It enters as an event, so that a log
// replays the same whatever a later release would set. Spans are market time.
type Config struct {
	MaxRunning int            `json:"max_running"`   // jobs that may hold a machine at once
	Detect     time.Duration  `json:"detect_ns"`     // how long a loss can go unnoticed
	BootLimit  time.Duration  `json:"boot_limit_ns"` // from launch to a running program, then the machine is given up
	CoolOff    time.Duration  `json:"cool_off_ns"`   // before an offer is asked again that refused
	Patience   time.Duration  `json:"patience_ns"`   // beyond the grace of a drain, then the machine is given back
	Currency   money.Currency `json:"currency"`      // quotes in another are not bought

	Policy  policy.Rule   `json:"policy,omitempty"`   // "": the default
	Spare   time.Duration `json:"spare_ns,omitempty"` // that the guard keeps back besides
	Look    time.Duration `json:"look_ns,omitempty"`  // the longest time between two looks at the market; 0: whenever a job asks
	Reserve int           `json:"reserve,omitempty"`  // restarts that the guard keeps back besides the one of a move
}

// DefaultConfig suits one user on one machine at market speed 1.
func DefaultConfig() Config {
	return Config{
		MaxRunning: 4, Detect: 30 * time.Second, BootLimit: 10 * time.Minute,
		CoolOff: time.Minute, Patience: 2 * time.Minute, Currency: money.USD, Reserve: 1,
	}
}

// looks is how many queued jobs one step looks at, at most.
const looks = 64

// looksAfter is the same for one event. A submission has one job looked at, and what
// is merely put on record none: of ten thousand a second each would else look at 64
// that were looked at in vain. Others follow when something happens, at the latest
// with the next tick.
func looksAfter(b Body) int {
	switch b.(type) {
	case JobSubmitted:
		return 1
	case Audited, IdentityChanged:
		return 0
	}
	return looks
}

// Decision is what was decided for a job. It is recorded beside its event;
// replay applies it and never takes it again.
type Decision struct {
	Job string `json:"job"`
	plan.Decision
	Version string `json:"version"`
	// SameRejected: the options were rejected for the same reasons as in the job's
	// decision before, which the log has; they are not written twice.
	SameRejected bool `json:"same_rejected,omitempty"`
}

// Outcome is what one step led to. The shell writes it in one transaction and
// then does the actions, in order.
type Outcome struct {
	Decisions []Decision
	Actions   []Action
	Postings  []ledger.Posting
	Wake      time.Time // when the next Tick is due; zero: none
}

// Machine is the state of all jobs, attempts and offers. It owns no goroutine
// and no clock; Step is the only way to change it.
type Machine struct {
	cfg      Config
	now      time.Time
	seq      uint64
	order    uint64
	jobs     map[string]*Job
	inOrder  []*Job               // all jobs, in the order of their submission
	attempts map[string]*Attempt  // all that are not gone, by ID
	prepaid  []*offer             // those of sale that are reserved
	stir     bool                 // a reserved machine came free in this step
	rented   map[string]*Attempt  // the same by instance
	orphans  map[string]Rented    // instances that nobody owns, being given back
	buried   map[string]time.Time // instances that nobody owned and that were paid for, with their ends
	given    map[string]*Attempt  // instances that were given up for lost, by name: their bill may still come
	offers   map[market.OfferID]*offer
	sale     []*offer               // sorted by ID
	listings *plan.Listings         // of sale what is in the currency of the configuration
	options  map[string]*plan.Class // for the jobs that ask for the same, by what that is
	running  []*Job                 // that hold or ask for a machine, sorted by ID
	turn     []*Job                 // in which the running are looked at, of the newest look
	queue    queue
	wakes    wakes
	rejected []plan.Rejection // what the newest decision rejected: never changed
	part     int              // jobs in a part of a snapshot
	parts    []uint64         // by part: number of the last event that may have changed a job in it
	frozen   *Frozen          // the state of a while ago that is being encoded, or nil
	heads    map[string]ledger.Hash
	replay   []Decision // decisions of the log still to be applied; nil when deciding anew
	replays  bool
	mind     *plan.Planner
	rules    *budget.Rules // nil: nobody has set any
	quotas   []*quota      // of them what the queue keeps, by name
	era      int           // how often they changed
	sums     []tally       // of what runs under them now; nil: not summed
	under    []*under      // what all limits have taken, in their order
	soon     *sums         // the same of limits that will be set; nil: nobody prepares that
	from     uint64        // the first event whose postings are in there
	unsummed []change      // jobs that this step changes
	accounts map[accountKey]*Account
	past     past
}

type offer struct {
	plan.Listing
	Hazard policy.Hazard `json:"hazard"`
	Stock  stock         `json:"stock,omitzero"` // where it is reserved
}

// New returns a machine with no jobs.
func New() *Machine { return NewWith(plan.NewPlanner()) }

// NewWith is New with a mind whose tables may be there already, which saves time and
// changes nothing else: of this world's markets it has seen nothing.
func NewWith(mind *plan.Planner) *Machine {
	m := &Machine{
		part: partJobs, mind: mind.Fork(),
		cfg: DefaultConfig(), jobs: map[string]*Job{}, attempts: map[string]*Attempt{}, rented: map[string]*Attempt{},
		accounts: map[accountKey]*Account{}, past: newPast(), orphans: map[string]Rented{}, buried: map[string]time.Time{}, given: map[string]*Attempt{}, offers: map[market.OfferID]*offer{}, heads: map[string]ledger.Hash{},
	}
	m.queue.touch = m.touch
	m.list()
	return m
}

// Share lets m decide with a mind that others of the same goroutine use too.
func (m *Machine) Share(mind *plan.Planner) { m.mind = mind.Fork() }

// Step takes one event and returns what is to be done about it, in order. It is
// total: an event about something unknown or long over changes nothing.
// It panics if time runs backwards, which is a bug of the caller.
func (m *Machine) Step(e Event) Outcome { return m.step(e, nil, false) }

// Replay does again what the log says happened: the event with the decisions
// that were taken then. It gives the same postings and state as Step did.
func (m *Machine) Replay(e Event, decisions []Decision) Outcome { return m.step(e, decisions, true) }

func (m *Machine) step(e Event, decisions []Decision, replays bool) Outcome {
	if e.At.Before(m.now) {
		panic(fmt.Sprintf("core: %s at %v, but it is %v already", e.Body.Kind(), e.At, m.now))
	}
	m.now, m.replay, m.replays = e.At, decisions, replays
	m.seq++
	m.marks(e.Body)
	m.sums = nil
	out := &Outcome{}
	m.roll()
	m.queue.thawed(m.now)
	switch b := e.Body.(type) {
	case Configured:
		other := m.cfg.Currency != b.Config.Currency
		if m.cfg = b.Config; other {
			m.list()
		}
		m.queue.changed()
	case JobSubmitted:
		m.submit(out, e, b)
	case JobReviewed:
		m.reviewed(out, e, b)
	case JobEnded:
		m.endJob(out, b)
	case MarketSeen:
		m.seeMarket(out, b)
	case Tick, Audited, IdentityChanged:
	case BudgetsSet:
		m.setRules(&b.Rules)
	case LaunchDone:
		m.launched(out, Rented{Launch: b.Launch, Instance: b.Instance, Offer: b.Offer, Rate: b.Rate, From: b.From})
	case LaunchRefused:
		m.refused(b)
	case InstanceEnded:
		m.ended(out, b)
	case InventorySeen:
		m.inventory(out, b)
	case AgentClaimed:
		if a := m.attempts[b.Attempt]; a != nil && a.Claimed.IsZero() {
			a.Claimed, a.By = m.now, b.By
		}
	case AttemptStarted:
		m.started(out, b)
	case Progressed:
		m.progressed(out, b)
	case CheckpointSaved:
		m.saved(out, b)
	case CheckpointRefused:
		m.hear(b.Attempt, b.Message)
	case NoticeGiven:
		m.noticed(b)
	case UsageSeen:
		m.used(out, b)
	case AttemptEnded:
		m.programEnded(out, b)
	case AgentSilent:
		if a := m.attempts[b.Attempt]; a != nil && a.Phase != Asked {
			a.End = cmp.Or(a.End, "silent")
			m.terminate(out, a, "agent_silent")
		}
	default:
		panic(fmt.Sprintf("core: unknown event %T", e.Body))
	}
	m.due(out)
	ended := m.stirred(out)
	most := looksAfter(e.Body)
	if b, ok := e.Body.(JobSubmitted); ok && m.greet(out, b.Job) {
		most = 0
	}
	m.consider(out, most)
	m.settle(out, ended)
	m.sumAgain()
	m.seal(out)
	out.Wake = m.nextWake()
	return *out
}

// due looks at the jobs whose time has come.
func (m *Machine) due(out *Outcome) {
	for len(m.wakes) > 0 && !m.wakes[0].at.After(m.now) {
		w := m.wakes.pop()
		m.touch(w.job)
		if !w.at.Equal(w.job.Wake) || w.job.State.Over() && w.job.live() == nil {
			continue
		}
		w.job.Wake = time.Time{}
		switch {
		case w.job.State == Held:
			m.finish(out, w.job, Cancelled, ApprovalExpired)
		case w.job.State == Queued && w.job.place.waits:
			_, over := w.job.over(m.now)
			switch {
			case over && !m.awaits(w.job) && !m.elsewhere(w.job):
				m.queue.remove(w.job)
				m.try(out, w.job)
			case m.room(): // in its turn, which may not come yet
				m.queue.remove(w.job)
				m.queue.add(w.job)
				fallthrough
			default:
				m.overAt(w.job)
			}
		default:
			m.review(out, w.job)
		}
	}
}

// elsewhere reports whether the log that is replayed decided nothing for j here.
func (m *Machine) elsewhere(j *Job) bool {
	return m.replays && (len(m.replay) == 0 || m.replay[0].Job != j.ID)
}

// greet looks at a job that has just come where those of its kind are passed over, so
// that it says why it waits.
func (m *Machine) greet(out *Outcome, id string) bool {
	j := m.jobs[id]
	if j == nil || j.Event != m.seq || !j.place.waits || !j.place.group.kind.barren || !m.room() || m.elsewhere(j) || m.blocks()(j).by != nil {
		return false
	}
	m.queue.remove(j)
	m.try(out, j)
	return true
}

// consider lets queued jobs have the free places, most urgent first.
func (m *Machine) consider(out *Outcome, most int) {
	for n := most; n > 0 || len(m.replay) > 0; n-- {
		if !m.room() {
			return
		}
		blocks := m.blocks()
		j, ok := m.queue.next(blocks)
		if ok && blocks(j).never {
			m.queue.push(j, stuck)
			continue
		}
		if ok && m.awaits(j) {
			m.queue.tried(j)
			continue
		}
		if m.replays {
			j, ok = m.recorded(j)
		}
		if !ok {
			return
		}
		m.try(out, j)
	}
}

// recorded returns the job that the log decided about next. It is j, the most
// urgent, unless a release wrote the log that took them in another order.
func (m *Machine) recorded(j *Job) (*Job, bool) {
	if len(m.replay) > 0 && j != nil && m.replay[0].Job == j.ID {
		return j, true
	}
	if j != nil {
		m.queue.add(j)
	}
	if len(m.replay) == 0 {
		return nil, false
	}
	if j = m.jobs[m.replay[0].Job]; j == nil || !j.place.waits {
		return nil, false
	}
	m.queue.remove(j)
	return j, true
}

func (m *Machine) nextWake() time.Time {
	for len(m.wakes) > 0 && !m.wakes[0].at.Equal(m.wakes[0].job.Wake) {
		m.wakes.pop()
	}
	var at time.Time
	if len(m.wakes) > 0 {
		at = m.wakes[0].at
	}
	if open := m.wakeForQuotas(); !open.IsZero() && (at.IsZero() || open.Before(at)) {
		at = open
	}
	if m.room() && m.queue.untried(m.blocks()) {
		if soon := m.now.Add(time.Second); at.IsZero() || soon.Before(at) {
			at = soon
		}
	}
	if thaw := m.queue.thaw; m.room() && !thaw.IsZero() && m.queue.Len() > 0 && (at.IsZero() || thaw.Before(at)) {
		at = thaw
	}
	return at
}

// wakeAt asks for a look at j at t, or earlier where that was asked before.
func (m *Machine) wakeAt(j *Job, t time.Time) {
	if t.IsZero() {
		return
	}
	if !t.After(m.now) {
		t = m.now.Add(time.Nanosecond)
	}
	if j.Wake.IsZero() || t.Before(j.Wake) {
		j.Wake = t
		m.wakes.push(wake{t, j})
	}
}
