package core

import (
	"maps"
	"slices"
	"time"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/state"
	"scrimp/internal/market"
)

// A gang is an attempt on several machines, which are of no use without each other: they
// start together, and any change of which machines it has ends the attempt. The next one keeps
// those that are left.

// rankEnded takes that the program of a rank has ended: the others are to end too, unless it
// did all it had to.
func (m *Machine) rankEnded(j *Job, k *Task, reason string) {
	a := k.Attempt()
	switch {
	case a.Task() == Ended:
		m.gangEnded(j, a)
	case k.Leaving() == "":
	case j.State() != Running || j.Asked() != nil: // what becomes of the job is known
		m.rankLeaves(j, k)
	case cut(a) != nil:
		m.goesOn(j, a)
	}
	if a.Task() != Ended && k.Leaving() == "" && reason != "completed" {
		m.leavesTogether(j, a, "node_"+reason)
	}
}

// cut is a rank of an attempt whose machine ended while its program ran, or nil.
func cut(a *Attempt) *Task {
	for _, k := range a.Tasks() {
		if !k.Live() && k.Over().IsZero() {
			return k
		}
	}
	return nil
}

// goesOn lets a job whose gang lost a machine go on, on those that are left.
func (m *Machine) goesOn(j *Job, a *Attempt) {
	m.cutOff(j, a, cut(a).Cause())
	m.regroups(j, a)
}

// leavesTogether asks all ranks of an attempt to save and end; where not all have begun, there is
// nothing to save.
func (m *Machine) leavesTogether(j *Job, a *Attempt, why string) {
	switch {
	case a.Draining() || !a.Live():
	case m.begun(a):
		m.drains(j, a, why, "")
	default:
		m.breakUp(a, why)
	}
}

// begun reports whether all programs of an attempt have begun.
func (m *Machine) begun(a *Attempt) bool {
	for _, k := range a.Tasks() {
		if k.Started().IsZero() {
			return false
		}
	}
	return true
}

// breakUp has what is left of the programs of an attempt ended: nothing that they do counts.
func (m *Machine) breakUp(a *Attempt, why string) {
	for _, k := range a.Tasks() {
		if k.Live() && k.Phase() != Ended {
			m.releaseSeat(k, why, "")
		}
	}
}

// lostRank takes that a machine of a gang ended while its program ran. The others are ended,
// and their machines kept for the next attempt, where that is on the same offer. Nothing is
// asked for before one of them has ended: machines of an offer are often taken together.
func (m *Machine) lostRank(j *Job, k *Task) {
	a := k.Attempt()
	if m.breakUp(a, "node_lost"); a.Task() == Ended {
		m.goesOn(j, a)
	}
}

// silent takes that nothing was heard of a rank's agent for too long. The others can do
// nothing without it.
func (m *Machine) silent(k *Task) {
	a := k.Attempt()
	m.releaseMachine(k, "agent_silent", "silent")
	if a.Nodes() > 1 && k.Phase() != Ended {
		m.breakUp(a, "node_lost")
	}
}

// neverBegan gives the machines of a gang back that took too long to begin.
func (m *Machine) neverBegan(a *Attempt, why string) {
	for _, k := range a.Tasks() {
		if k.Live() && k.Phase() != Ended && k.Started().IsZero() {
			m.releaseMachine(k, why, "silent")
		}
	}
	m.breakUp(a, why)
}

// gangEnded says what becomes of a job all of whose programs have ended, and of its machines.
func (m *Machine) gangEnded(j *Job, a *Attempt) {
	if j.State() == Running && j.Asked() == nil && j.Attempt() == a {
		switch reason := a.End(); reason {
		case "completed", "failed", "setup", "drained":
			m.becomes(j, a, reason, a.Exit())
		default: // they were ended, because of a machine
			m.cutOff(j, a, a.Cause())
		}
	}
	m.regroups(j, a)
}

// regroups asks for the next attempt of a job whose gang has ended or is ending, so that it
// keeps the machines that are left, and gives those back that it does not keep.
func (m *Machine) regroups(j *Job, a *Attempt) {
	m.keeping, m.keeps = j, m.survivors(a)
	m.sums = nil
	if len(m.keeps) > 0 && m.mayRegroup(j) {
		m.queue.remove(j)
		m.try(j)
	}
	m.keeping, m.keeps, m.sums = nil, nil, nil
	for _, k := range a.Tasks() {
		switch {
		case !k.Live():
		case k.Phase() == Ended:
			m.rankLeaves(j, k)
		case k.Leaving() != "" && !m.awaited(j, k): // nothing that its program does is of use
			m.releaseMachine(k, k.Leaving(), "")
		}
	}
}

// mayRegroup reports whether a job that has just lost its attempt may have another at once.
func (m *Machine) mayRegroup(j *Job) bool {
	waits := j.State() == Queued && at(j).waits && j.Asked() == nil
	return waits && (m.room() || j.Holds() && !m.s.Undecided()) && m.blocks()(j).by == nil && !m.awaits(j)
}

// rankGone takes that nothing is left of a rank whose seat was taken from it.
func (m *Machine) rankGone(j *Job, k *Task) {
	if k.Phase() == Ended {
		return
	}
	lost := time.Duration(0)
	if k.Started().IsZero() {
		m.settle(j, k, ledger.StartUp, m.now())
	} else {
		lost = max(0, m.now().Sub(k.Kept()))
		m.settle(j, k, ledger.Useful, k.Kept())
		m.settle(j, k, ledger.Lost, m.now())
	}
	m.fact(state.TaskEnded{Attempt: k.Attempt().ID(), Lost: lost})
	m.rankEnded(j, k, k.End())
}

// rankLeaves gives the machine of a rank that has ended to the job's next attempt, to the next
// job, or back.
func (m *Machine) rankLeaves(j *Job, k *Task) {
	i := m.s.Instance(k.Instance())
	switch {
	case i == nil || !i.Live() || i.Release() != "":
	case m.awaited(j, k):
		m.passes(j, k)
	case j.State().Over() && m.mayKeep(k, k.End()):
		m.vacate(j, k, k.End())
	default:
		m.releaseMachine(k, "program_"+k.Attempt().End(), "")
	}
}

// awaited reports whether the next attempt of the job waits for the machine of a rank.
func (m *Machine) awaited(j *Job, k *Task) bool {
	a := j.Asked()
	return a != nil && a.Awaits(k.Instance())
}

// passes gives the machine of a rank to the next attempt of its job.
func (m *Machine) passes(j *Job, k *Task) {
	a := j.Asked()
	end := m.settleEnd(j, k, m.now())
	m.fact(state.SeatLeft{Instance: k.Instance(), Attempt: k.Attempt().ID(), Next: a.ID(), Lost: end.Lost})
	m.freed()
	if a.Full() {
		m.began(a)
	}
}

// lacks takes that a machine has ended which an allocation has, or waits for, that is not complete:
// it is given up, with the others.
func (m *Machine) lacks(j *Job, i *Instance) {
	if a := j.Asked(); a != nil && (a.Has(i.ID()) || a.Awaits(i.ID())) {
		m.disbands(j, a, "gang_wait")
	}
}

// disbands gives up an allocation that has some of its machines, and lets its job try again.
func (m *Machine) disbands(j *Job, a *Allocation, why string) {
	m.giveUp(a, why)
	if a.Answered() { // nothing else can come of it
		m.unanswered(a, state.CancelDone, state.JobQueued{})
	}
	m.requeue(j, state.JobQueued{Why: why})
	m.dropsAwaited(j, a)
}

// dropsAwaited gives the machines back that an allocation would have had from the attempt before.
func (m *Machine) dropsAwaited(j *Job, a *Allocation) {
	for _, id := range a.Keeps() {
		if i := m.s.Instance(id); i != nil && !a.Has(id) {
			for _, k := range m.s.TasksOn(i) {
				if k.Attempt().Job() == j.ID() {
					m.releaseMachine(k, "allocation_closed", "")
				}
			}
		}
	}
}

// partial ends an allocation that got some of its machines: what they cost is its attempt's, and
// they are given back.
func (m *Machine) partial(j *Job, a *Allocation) {
	m.fact(state.AttemptBegan{Attempt: a.ID(), Partial: true})
	m.postsAt(j)
	t := m.s.Attempt(a.ID())
	m.cutDead(j, t)
	for _, k := range t.Tasks() {
		if k.Live() {
			m.releaseMachine(k, "gang_wait", "gang_wait")
		}
	}
}

// cutDead ends the tasks of an attempt whose machines had ended before it began, and books the
// bills that came meanwhile.
func (m *Machine) cutDead(j *Job, a *Attempt) {
	for _, k := range a.Tasks() {
		i := m.s.Instance(k.Instance())
		if i.Live() && !i.Lost() { // one that was given up has ended for its task, also where it is there after all
			continue
		}
		end := m.settleEnd(j, k, i.Until())
		bill := i.Bill()
		if bill != nil && !i.Shared() {
			m.bill(j, k, linesOf(i))
			m.fact(state.BillSplit{Instance: i.ID(), Parts: []state.BillPart{{Attempt: a.ID(), Bill: bill}}})
		}
		m.fact(state.TaskCut{Attempt: a.ID(), Node: k.Rank(), Lost: end.Lost})
		if bill != nil && i.Shared() {
			m.splitBill(i, linesOf(i))
		}
	}
}

// linesOf are the lines of the newest bill of an instance, or where only sums are kept these, by rule.
func linesOf(i *Instance) (lines []BillLine) {
	if i.BillLines() != nil {
		return i.BillLines()
	}
	bill := i.Bill()
	for _, rule := range slices.Sorted(maps.Keys(bill)) {
		lines = append(lines, BillLine{Rule: rule, Amount: bill[rule]})
	}
	return lines
}

// incomplete reports whether the instance is of an allocation that has not all its machines.
func (m *Machine) incomplete(i *Instance) bool {
	return len(i.Seats()) > 0 && m.s.Allocation(i.Seats()[0].Attempt) != nil
}

// gathers reports whether a gang has some of its machines and waits for others of the same
// pool: two that each had a part of the last ones would both wait for ever.
func (m *Machine) gathers(offer market.OfferID) bool {
	l := m.s.Listing(offer)
	if l == nil {
		return false
	}
	of := state.MachineOf(l.Offer())
	pool := state.ScopeKey(state.PoolScope, &of)
	for a := range m.s.Allocations() {
		if a.Nodes() > 1 && len(a.Granted()) > 0 && !a.Answered() && state.ScopeKey(state.PoolScope, a.Machine()) == pool {
			return true
		}
	}
	return false
}

// gangEnd is until when an allocation that has some of its machines waits for the others; zero:
// it has none, or nobody else is to come.
func (m *Machine) gangEnd(a *Allocation) time.Time {
	if a.Nodes() == 1 || len(a.Granted()) == 0 {
		return time.Time{}
	}
	return a.Since().Add(max(m.timingOf(a.Machine()).GrantWait, grantPatience))
}

// reviewGang looks whether an allocation that has some of its machines is given up: it waits
// for too long, or the budget of its job is spent. It reports whether it is.
func (m *Machine) reviewGang(j *Job, a *Allocation) bool {
	end := m.gangEnd(a)
	if end.IsZero() {
		return false
	}
	if !m.now().Before(end) {
		m.backOff(a, state.OfferScope, 0, "not all machines of a gang came in time")
		m.disbands(j, a, "gang_wait")
		return true
	}
	m.wakeAt(j, end)
	if t := j.Terms(); t.HasBudget && !t.DeadlineFirst {
		left := t.Budget.Sub(j.Spent(m.now()))
		if left.Sign() <= 0 {
			m.disbands(j, a, string(plan.BudgetGone))
			return true
		}
		if d, ok := a.PresentRate().Buys(left); ok {
			m.wakeAt(j, m.now().Add(d))
		}
	}
	return false
}

// reduces lets a gang that may do with fewer machines begin with those that it has, or gets from
// the attempt before, where no others are to be had. It reports whether it does.
func (m *Machine) reduces(j *Job, a *Allocation) bool {
	has := len(a.Granted())
	for _, id := range a.Keeps() {
		if !a.Has(id) {
			has++
		}
	}
	if a.Phase() != state.Pending || has < j.Terms().Fewest() || has >= a.Nodes() {
		return false
	}
	m.fact(state.AllocationReduced{Allocation: a.ID(), Nodes: has})
	if a.Full() {
		m.began(a)
	}
	return true
}
