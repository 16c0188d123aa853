// Package core decides: an event goes in, facts and actions come out. Machine.Step passes the event to the part
// that handles it. state.Apply records what the parts decide, and nothing else changes the state. The package has
// no clock, no randomness and no I/O.
package core

import (
	"fmt"
	"slices"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/core/accounting"
	"scrimp/internal/decide/core/admission"
	"scrimp/internal/decide/core/lifecycle"
	"scrimp/internal/decide/core/members"
	"scrimp/internal/decide/core/placement"
	"scrimp/internal/decide/core/preempt"
	"scrimp/internal/decide/core/queue"
	"scrimp/internal/decide/core/step"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/policy"
	"scrimp/internal/decide/state"
)

// Machine drives the rules over a state. It starts no goroutine and reads no clock. Each part keeps its own data
// besides the state and uses the parts above it in this list; the parts of one package use each other.
type Machine struct {
	step      *step.Context
	books     *accounting.Books
	admission *admission.Admission
	queue     *queue.Quotas

	market  *placement.Market
	decider *placement.Decider
	bids    *placement.Bids

	jobs      *lifecycle.Jobs
	launches  *lifecycle.Launches
	attempts  *lifecycle.Attempts
	instances *lifecycle.Instances
	mover     *lifecycle.Mover

	members *members.Members

	preempter *preempt.Preempter
}

// New returns a machine with no jobs.
func New() *Machine { return NewWith(plan.NewPlanner()) }

// NewWith is New with a planner that may already have tables. That saves time and changes nothing else: the planner
// has not observed the markets of this world.
func NewWith(planner *plan.Planner) *Machine { return On(state.New(), planner) }

// On returns a machine that continues from a state. The machine owns the state from then on.
func On(s *state.State, planner *plan.Planner) *Machine {
	m := &Machine{step: &step.Context{State: s}}
	m.books = accounting.New(m.step)
	m.admission = admission.New(m.step, m.books)
	m.queue = queue.New(m.step, m.admission)
	m.market, m.decider, m.bids = placement.New(m.books, m.admission, m.queue, planner.Fork())
	below := lifecycle.Under(m.books, m.admission, m.queue, m.market, m.decider, m.bids)
	m.jobs, m.launches, m.attempts, m.instances, m.mover = lifecycle.New(below)
	m.members = members.New(m.admission, m.bids, m.jobs, m.launches)
	m.preempter = preempt.New(m.admission, m.queue, m.market, m.decider, m.jobs)
	m.jobs.Watcher = m.members
	s.Watch(func(j *Job) {
		m.admission.Unsum(j)
		m.queue.Touch(j)
		m.market.Touch(j)
	})
	m.market.OneTiming = placement.AlikeTiming(m.step.Config())
	m.market.List()
	m.market.FindPrepaid()
	m.queue.SetQuotas()
	for _, j := range s.Jobs() {
		switch {
		case j.State() == Queued && j.Asked() == nil && !lifecycle.Leaves(j):
			if m.jobs.Enqueue(j); len(j.Waits()) == 0 {
				m.launches.OverAt(j)
			}
		case j.State() == Held:
			m.step.WakeAt(j, j.Approval().Until)
		}
		if !j.State().Over() {
			m.queue.ClassOf(j)
		}
	}
	for _, j := range s.Running() {
		m.queue.ClassOf(j)
		m.step.WakeAt(j, s.Now())
		m.books.PostsAt(j)
	}
	for a := range s.Allocations() { // including those of ended jobs, which may be granted late
		m.queue.ClassOf(s.Job(a.Job()))
	}
	for a := range s.Attempts() { // some of their jobs already hold another machine
		m.step.WakeAt(s.Job(a.Job()), s.Now())
		m.books.PostsAt(s.Job(a.Job()))
	}
	m.members.DependsAgain()
	m.admission.SumUsage()
	m.jobs.ClosesAll()
	m.members.ArchivesAll()
	m.queue.Recount()
	m.mover.RecallsKept()
	m.instances.RecallsKeeps()
	m.queue.Settle()
	m.market.Settle()
	return m
}

// Share makes m decide with a planner that others in the same goroutine use too.
func (m *Machine) Share(planner *plan.Planner) { m.market.Planner = planner.Fork() }

// Step processes one event and returns what to do about it, in order. It accepts any event: one about something
// unknown or long ended changes nothing. It panics if time runs backwards, which is a bug in the caller.
func (m *Machine) Step(e Event) Outcome {
	m.step.Begin(e)
	m.jobs.Added = nil
	m.queue.Begin()
	m.queue.OpenWindows()
	m.queue.Queue.EndBackoff(m.step.Now())
	saved, seen := m.earlier(e.Body)
	news := m.step.State.Observe(m.step.Event)
	if news {
		m.take(e.Body, saved, seen)
	}
	if b, ok := e.Body.(JobPaused); !ok || b.Cause == "" { // a step that sets a job aside works on no other
		m.follow(e.Body)
	}
	m.admission.SumAgain()
	m.close(news)
	m.queue.Settle()
	m.market.Settle()
	return m.step.End()
}

// close decides which parts of the step the log must keep, and when the next step is due. Values of the job's metric
// must stay in the log, so an event with such values is not a sample.
func (m *Machine) close(news bool) {
	out := m.step.Out
	if len(out.Facts)+len(out.Postings) == 0 && onlyPlanning(out.Actions) {
		switch b := m.step.Event.Body.(type) {
		case Tick:
			if out.Sample, out.Nothing = len(out.Actions) > 0, len(out.Actions) == 0; out.Nothing {
				m.step.State.Forget()
			}
		case Proposed:
			if out.Nothing = len(out.Actions) == 0; out.Nothing {
				m.step.State.Forget()
			}
			out.Sample = !out.Nothing
		case RoundProposed:
			out.Nothing = len(b.Groups)+len(out.Actions) == 0
			if out.Sample = !out.Nothing; out.Nothing {
				m.step.State.Forget()
			}
		case Audited, IdentityChanged: // others read them
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

// onlyPlanning reports whether the actions only build tables, run a round or propose. A restart requests those by
// itself.
func onlyPlanning(actions []Action) bool {
	return !slices.ContainsFunc(actions, func(a Action) bool {
		switch a.(type) {
		case BuildTable, RunRound, Propose:
			return false
		}
		return true
	})
}

// earlier returns the step of a job's newest checkpoint and the summary of its metric before the event, if the
// event changes them.
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
	if a := m.step.State.Attempt(attempt); a != nil {
		j := m.step.State.Job(a.Job())
		return j.SavedStep(), j.Seen()
	}
	return 0, seen
}

// take passes the event to the parts of the core that it concerns.
func (m *Machine) take(b Body, saved int64, seen policy.Seen) {
	switch b := b.(type) {
	case Configured:
		m.configured()
	case BudgetsSet:
		if m.step.State.Stale(b) {
			return
		}
		m.step.Fact(state.RulesSet{})
		m.queue.SetQuotas()
		m.queue.Queue.Changed()
	case IncarnationBegun:
		m.instances.Incarnation(b)
	case OwnershipDecided:
		m.instances.Owned(b)
	case MarketSeen:
		m.jobs.Market(b)
	case JobSubmitted, JobReviewed, JobEnded, JobPaused, JobResumed, JobUpdated:
		m.takeJob(b)
	case GroupOpened, GroupReviewed, GroupClosed, Proposed, Spawn:
		m.members.TakeGroup(b)
	case LaunchDone, LaunchPending, LaunchRefused, LaunchExpired, LaunchCancelled, InstanceEnded,
		InterruptionAnnounced, BillReceived, BillReconciled,
		InventorySeen, MachineRegistered, MachineCleaned, MachineReleased,
		TaskGone:
		m.takeMachine(b)
	case AgentClaimed, AttemptStarted, Progressed, CheckpointSaved, CheckpointFailed, CheckpointRefused,
		NoticeGiven, UsageSeen, AttemptEnded, AgentSilent:
		m.takeMessage(b, saved, seen)
	case Tick, Audited, IdentityChanged:
	case Rehydrated:
		if m.members.MissingGroup(b) == "" {
			m.jobs.Rehydrate(b)
		}
	case RehydratedGroup:
		m.members.Rehydrate(b)
	case TableReady:
		m.attempts.TableReady(b.Table)
	case RoundProposed:
		m.mover.Proposed(&b)
	default:
		panic(fmt.Sprintf("core: unknown event %T", b))
	}
}

// configured applies a new configuration, and repeats what depends on changed settings.
func (m *Machine) configured() {
	was := *m.step.Config()
	m.step.Fact(state.ConfigSet{})
	is := m.step.Config()
	if is.Currency != was.Currency || !placement.SharesAlike(&was, is) {
		m.market.List()
	} else {
		m.market.Relist()
	}
	if is.ArchiveAfter != was.ArchiveAfter || is.ArchiveUnbilled != was.ArchiveUnbilled {
		m.jobs.ClosesAll()
		m.members.ArchivesAll()
	}
	m.market.OneTiming = placement.AlikeTiming(is)
	m.queue.Queue.Changed()
}

func (m *Machine) takeJob(b Body) {
	switch b := b.(type) {
	case JobSubmitted:
		m.jobs.Submit(&b)
	case JobReviewed:
		m.jobs.Reviewed(b)
	case JobEnded:
		m.jobs.EndJob(b)
	case JobPaused:
		m.jobs.PauseJob(b)
	case JobResumed:
		m.jobs.ResumeJob(b)
	case JobUpdated:
		m.jobs.UpdateJob(b)
	}
}

func (m *Machine) takeMachine(b Body) {
	switch b := b.(type) {
	case LaunchDone:
		m.launches.Launched(Rented{Launch: b.Launch, Instance: b.Instance, Offer: b.Offer, Rate: b.Rate, From: b.From})
	case LaunchPending:
		m.launches.Pending(b)
	case LaunchRefused:
		m.launches.Refused(b)
	case LaunchExpired:
		m.launches.Expired(b.Launch)
	case LaunchCancelled:
		m.launches.Cancelled(b.Launch)
	case InterruptionAnnounced:
		m.attempts.Announced(b)
	case InstanceEnded:
		m.instances.Ended(b)
	case BillReceived:
		m.books.Billed(b)
	case BillReconciled:
		m.books.Reconcile(&b)
	case InventorySeen:
		m.instances.Inventory(b)
	case MachineRegistered:
		m.market.Registered(b)
	case MachineCleaned:
		m.instances.Cleaned(b.Instance)
	case MachineReleased:
		m.instances.Release(b.Instance)
	case TaskGone:
		m.instances.TaskGone(b.Attempt, b.Node)
	}
}

func (m *Machine) takeMessage(b Body, saved int64, seen policy.Seen) {
	switch b := b.(type) {
	case AgentClaimed:
		if k := m.attempts.TaskOf(b.Attempt, b.Node); k != nil && k.Phase() == Assigned {
			m.step.Fact(state.TaskClaimed{Attempt: b.Attempt})
		}
	case AttemptStarted:
		m.attempts.Started(b, saved)
	case Progressed:
		m.attempts.Progressed(b, seen)
	case CheckpointSaved:
		m.attempts.Saved(b)
	case NoticeGiven:
		m.attempts.Noticed(b)
	case UsageSeen:
		m.attempts.Used(b)
	case AttemptEnded:
		m.attempts.ProgramEnded(b)
	case AgentSilent:
		if k := m.attempts.TaskOf(b.Attempt, b.Node); k != nil && k.Live() {
			m.attempts.Silent(k)
		}
	}
}

// PartlySpent reports whether the spending of a limit in force is incomplete, because whoever set it did not state
// it.
func (m *Machine) PartlySpent() bool { return len(m.step.State.Partial()) > 0 }

// Rules returns the limits and required tags in force. ok is false if nobody has ever set any. Callers must not
// change them.
func (m *Machine) Rules() (rules budget.Rules, ok bool) {
	return m.step.Rules(), m.step.State.Rules() != nil
}
