// Package core decides: event in, facts and actions out. Machine.Step holds the rules;
// what they decide is recorded by state.Apply, the only way in which anything changes.
// It has no clock, no chance and no I/O.
package core

import (
	"fmt"
	"slices"
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/policy"
	"scrimp/internal/decide/state"
)

// Outcome is what one step led to. The shell writes its facts and postings with the
// event in one transaction and then does the actions, in order.
type Outcome struct {
	Facts    []Fact
	Actions  []Action
	Postings []ledger.Posting
	Wake     time.Time // when the next Tick is due; zero: none
	// Sample: the event only teaches, and need not be kept for ever. Nothing: it need
	// not be kept at all, and has no number.
	Sample, Nothing bool
	// Decided counts the decisions that were taken, those that changed nothing with them.
	Decided int
	// Moved counts the groups of a round that happened, Stale those that were dropped.
	Moved, Stale int
}

// Machine drives the rules over a state. It owns no goroutine and no clock.
type Machine struct {
	s   *state.State
	e   *Event   // of the step; nil between two
	out *Outcome // likewise

	event   Event
	outcome Outcome
	added   *Job // that the step has put into the queue; nil: none

	onWork func(*Job) // told of the job that a step works on next; nil: nobody is

	oneTiming bool // all providers have the timing of those that are not named

	stayedAt time.Time // begin of the minute in which jobs that stay recorded why
	stayed   int       // how many did

	planner       *plan.Planner
	listings      *plan.Listings      // what is for sale in the currency of the configuration
	needs         map[string]*need    // by key
	built         []*need             // those that have their class
	seq           int                 // how many classes were dropped
	tables        map[string]*awaited // that were asked for, by key
	prepaid       []*state.Listing    // what is for sale and reserved
	lists         lists
	freedReserved bool // a reserved machine came free in this step
	keeping       *Job // whose gang is being made up again, and of which machines
	keeps         []*Task
	rounds        rounds
	proposals     proposals
	waiters       map[string][]string // jobs and groups that wait, by the job or group that they wait for

	queue   queue
	wakes   wakes
	hours   wakes    // when the next posting of a running job is due
	archive wakes    // when jobs that are over are archived
	review  backlog  // of the jobs that hold a machine
	quotas  []*quota // of the rules what the queue keeps, by name
	era     int      // how often they changed
	sums    []tally  // of what runs under them now; nil: not summed

	usage    []*usage          // what all limits have taken, in their order
	soon     *sums             // the same of limits that will be set; nil: nobody prepares that
	unsummed []change          // jobs that this step changes
	parts    map[string]*parts // what the parts of holds take, by hold
	faults   Faults
	weighed  map[string]verdict // of the jobs of the events that were admitted and not stepped yet
	accounts map[accountKey]*Account
	history  history

	watcher watcher
}

// New returns a machine with no jobs.
func New() *Machine { return NewWith(plan.NewPlanner()) }

// NewWith is New with a planner whose tables may be there already, which saves time and
// changes nothing else: of this world's markets it has seen nothing.
func NewWith(planner *plan.Planner) *Machine { return On(state.New(), planner) }

// On returns a machine that goes on from a state, which is its own from now on.
func On(s *state.State, planner *plan.Planner) *Machine {
	m := &Machine{s: s, planner: planner.Fork(), needs: map[string]*need{}, tables: map[string]*awaited{},
		weighed: map[string]verdict{}, proposals: newProposals(), waiters: map[string][]string{},
		accounts: map[accountKey]*Account{}, history: newHistory()}
	m.watcher = m
	s.Watch(m.unsum)
	m.oneTiming = alikeTiming(m.cfg())
	m.list()
	m.findPrepaid()
	m.setQuotas()
	for _, j := range s.Jobs() {
		switch {
		case j.State() == Queued && j.Asked() == nil && !leaves(j):
			if m.enqueue(j); len(j.Waits()) == 0 {
				m.overAt(j)
			}
		case j.State() == Held:
			m.wakeAt(j, j.Approval().Until)
		}
		if !j.State().Over() {
			m.classOf(j)
		}
	}
	for _, j := range s.Running() {
		m.classOf(j)
		m.wakeAt(j, s.Now())
		m.postsAt(j)
	}
	for a := range s.Allocations() { // of jobs that are over too, and may be granted late
		m.classOf(s.Job(a.Job()))
	}
	for a := range s.Attempts() { // of jobs that hold another machine by now
		m.wakeAt(s.Job(a.Job()), s.Now())
		m.postsAt(s.Job(a.Job()))
	}
	m.dependsAgain()
	m.sumUsage()
	m.closesAll()
	m.recount()
	m.recallsKept()
	return m
}

// Share lets m decide with a planner that others of the same goroutine use too.
func (m *Machine) Share(planner *plan.Planner) { m.planner = planner.Fork() }

// Step takes one event and returns what is to be done about it, in order. It is
// total: an event about something unknown or long over changes nothing.
// It panics if time runs backwards, which is a bug of the caller.
func (m *Machine) Step(e Event) Outcome {
	m.begin(e)
	m.added = nil
	m.sums = nil
	m.openWindows()
	m.queue.endBackoff(m.now())
	saved, seen := m.earlier(e.Body)
	news := m.s.Observe(m.e)
	if news {
		m.take(e.Body, saved, seen)
	}
	if b, ok := e.Body.(JobPaused); !ok || b.Cause == "" { // a step that sets a job aside works on no other
		m.follow(e.Body)
	}
	m.sumAgain()
	m.close(news)
	return m.endStep()
}

func (m *Machine) begin(e Event) {
	m.event, m.outcome = e, Outcome{}
	m.e, m.out = &m.event, &m.outcome
	m.s.Begin(m.e)
}

// endStep returns what the step led to.
func (m *Machine) endStep() Outcome {
	out := m.outcome
	m.event, m.outcome = Event{}, Outcome{}
	m.e, m.out = nil, nil
	return out
}

// close says what of the step must be kept, and when the next is due.
// The values of what a job is judged by stay with it: they are no sample.
func (m *Machine) close(news bool) {
	out := m.out
	if len(out.Facts)+len(out.Postings) == 0 && onlyPlanning(out.Actions) {
		switch b := m.e.Body.(type) {
		case Tick:
			if out.Sample, out.Nothing = len(out.Actions) > 0, len(out.Actions) == 0; out.Nothing {
				m.s.Forget()
			}
		case Proposed:
			if out.Nothing = len(out.Actions) == 0; out.Nothing {
				m.s.Forget()
			}
			out.Sample = !out.Nothing
		case RoundProposed:
			out.Nothing = len(b.Groups)+len(out.Actions) == 0
			if out.Sample = !out.Nothing; out.Nothing {
				m.s.Forget()
			}
		case Audited, IdentityChanged: // which others read
		case MarketSeen:
			out.Sample = len(b.Offers) == 0
		case Progressed:
			out.Sample = !news || len(b.Values) == 0
		default:
			out.Sample = true
		}
	}
	out.Wake = m.nextWake()
}

// onlyPlanning reports whether nothing is to be done but to build tables, to run a round or to propose, which
// a restart asks for by itself.
func onlyPlanning(actions []Action) bool {
	return !slices.ContainsFunc(actions, func(a Action) bool {
		switch a.(type) {
		case BuildTable, RunRound, Propose:
			return false
		}
		return true
	})
}

// fact records what was decided.
func (m *Machine) fact(f Fact) {
	m.s.Apply(m.e, f)
	m.out.Facts = append(m.out.Facts, f)
	if a := m.wanted(f); a != nil {
		m.out.Actions = append(m.out.Actions, a)
	}
}

func (m *Machine) now() time.Time     { return m.s.Now() }
func (m *Machine) cfg() *state.Config { return m.s.Config() }

// earlier is what the newest checkpoint of a job held and what its metric had come to
// before the event, where that tells of them anew.
func (m *Machine) earlier(b Body) (savedStep int64, seen policy.Seen) {
	attempt := ""
	switch b := b.(type) {
	case AttemptStarted:
		attempt = b.Attempt
	case Progressed:
		attempt = b.Attempt
	default:
		return 0, seen
	}
	if a := m.s.Attempt(attempt); a != nil {
		j := m.s.Job(a.Job())
		return j.SavedStep(), j.Seen()
	}
	return 0, seen
}

// take is what happened.
func (m *Machine) take(b Body, saved int64, seen policy.Seen) {
	switch b := b.(type) {
	case Configured:
		was := *m.cfg()
		if m.fact(state.ConfigSet{}); m.cfg().Currency != was.Currency || !sharesAlike(&was, m.cfg()) {
			m.list()
		} else {
			m.relist()
		}
		if m.cfg().ArchiveAfter != was.ArchiveAfter || m.cfg().ArchiveUnbilled != was.ArchiveUnbilled {
			m.closesAll()
		}
		m.oneTiming = alikeTiming(m.cfg())
		m.queue.changed()
	case BudgetsSet:
		if m.s.Stale(b) {
			return
		}
		m.fact(state.RulesSet{})
		m.setQuotas()
		m.queue.changed()
	case IncarnationBegun:
		m.incarnation(b)
	case OwnershipDecided:
		m.owned(b)
	case MarketSeen:
		m.market(b)
	case JobSubmitted, JobReviewed, JobEnded, JobPaused, JobResumed, JobUpdated:
		m.takeJob(b)
	case GroupOpened, GroupReviewed, GroupClosed, Proposed, Spawn:
		m.takeGroup(b)
	case LaunchDone, LaunchPending, LaunchRefused, LaunchExpired, LaunchCancelled, InstanceEnded,
		InterruptionAnnounced, BillReceived,
		InventorySeen, MachineRegistered, MachineCleaned,
		TaskGone:
		m.takeMachine(b)
	case AgentClaimed, AttemptStarted, Progressed, CheckpointSaved, CheckpointFailed, CheckpointRefused,
		NoticeGiven, UsageSeen, AttemptEnded, AgentSilent:
		m.takeMessage(b, saved, seen)
	case Tick, Audited, IdentityChanged:
	case Rehydrated:
		m.rehydrate(b)
	case TableReady:
		m.tableReady(b.Table)
	case RoundProposed:
		m.proposed(&b)
	default:
		panic(fmt.Sprintf("core: unknown event %T", b))
	}
}

func (m *Machine) takeJob(b Body) {
	switch b := b.(type) {
	case JobSubmitted:
		m.submit(&b)
	case JobReviewed:
		m.reviewed(b)
	case JobEnded:
		m.endJob(b)
	case JobPaused:
		m.pauseJob(b)
	case JobResumed:
		m.resumeJob(b)
	case JobUpdated:
		m.updateJob(b)
	}
}

func (m *Machine) takeMachine(b Body) {
	switch b := b.(type) {
	case LaunchDone:
		m.launched(Rented{Launch: b.Launch, Instance: b.Instance, Offer: b.Offer, Rate: b.Rate, From: b.From})
	case LaunchPending:
		m.pending(b)
	case LaunchRefused:
		m.refused(b)
	case LaunchExpired:
		m.expired(b.Launch)
	case LaunchCancelled:
		m.cancelled(b.Launch)
	case InterruptionAnnounced:
		m.announced(b)
	case InstanceEnded:
		m.ended(b)
	case BillReceived:
		m.billed(b)
	case InventorySeen:
		m.inventory(b)
	case MachineRegistered:
		m.registered(b)
	case MachineCleaned:
		m.cleaned(b.Instance)
	case TaskGone:
		m.taskGone(b.Attempt, b.Node)
	}
}

func (m *Machine) takeMessage(b Body, saved int64, seen policy.Seen) {
	switch b := b.(type) {
	case AgentClaimed:
		if k := m.taskOf(b.Attempt, b.Node); k != nil && k.Phase() == Assigned {
			m.fact(state.TaskClaimed{Attempt: b.Attempt})
		}
	case AttemptStarted:
		m.started(b, saved)
	case Progressed:
		m.progressed(b, seen)
	case CheckpointSaved:
		m.saved(b)
	case NoticeGiven:
		m.noticed(b)
	case UsageSeen:
		m.used(b)
	case AttemptEnded:
		m.programEnded(b)
	case AgentSilent:
		if k := m.taskOf(b.Attempt, b.Node); k != nil && k.Live() {
			m.silent(k)
		}
	}
}

// PartlySpent reports whether there is a limit in force of which not all is known that was
// spent of it: whoever set it did not say.
func (m *Machine) PartlySpent() bool { return len(m.s.Partial()) > 0 }

// Rules are the limits and required tags in force; ok is false where nobody has
// ever set any. They are the machine's own: change none of them.
func (m *Machine) Rules() (rules budget.Rules, ok bool) { return m.rules(), m.s.Rules() != nil }

func (m *Machine) rules() budget.Rules {
	if r := m.s.Rules(); r != nil {
		return *r
	}
	return budget.Rules{}
}
