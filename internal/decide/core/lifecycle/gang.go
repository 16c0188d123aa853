package lifecycle

import (
	"maps"
	"slices"
	"time"

	"scrimp/internal/decide/core/queue"
	"scrimp/internal/decide/core/step"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/state"
	"scrimp/internal/market"
)

// A gang is an attempt on several machines that need each other: they start together, and any change of its
// machines ends the attempt. The next attempt keeps the machines that are left.

// rankEnded handles the end of a rank's program. The other ranks must end too, unless it completed its work.
func (ts *Attempts) rankEnded(j *state.Job, k *state.Task, reason string) {
	a := k.Attempt()
	switch {
	case a.Task() == state.Ended:
		ts.gangEnded(j, a)
	case k.Leaving() == "":
	case j.State() != state.Running || j.Asked() != nil: // the future of the job is decided
		ts.rankLeaves(j, k)
	case cut(a) != nil:
		ts.goesOn(j, a)
	}
	if a.Task() != state.Ended && k.Leaving() == "" && reason != "completed" {
		ts.leavesTogether(j, a, "node_"+reason)
	}
}

// cut returns a rank of an attempt whose machine ended while its program ran, or nil.
func cut(a *state.Attempt) *state.Task {
	for _, k := range a.Tasks() {
		if !k.Live() && k.Over().IsZero() {
			return k
		}
	}
	return nil
}

// goesOn lets a job whose gang lost a machine continue on the machines that are left.
func (ts *Attempts) goesOn(j *state.Job, a *state.Attempt) {
	ts.instances.cutOff(j, a, cut(a).Cause())
	ts.regroups(j, a)
}

// leavesTogether asks all ranks of an attempt to save and end. If not all have started, there is nothing to save.
func (ts *Attempts) leavesTogether(j *state.Job, a *state.Attempt, why string) {
	switch {
	case a.Draining() || !a.Live():
	case ts.begun(a):
		ts.jobs.drains(j, a, state.DrainRequested{Why: why})
	default:
		ts.breakUp(a, why)
	}
}

// begun reports whether all programs of an attempt have started.
func (ts *Attempts) begun(a *state.Attempt) bool {
	return !slices.ContainsFunc(a.Tasks(), func(k *state.Task) bool { return k.Started().IsZero() })
}

// breakUp ends the remaining programs of an attempt. Nothing they do counts.
func (ts *Attempts) breakUp(a *state.Attempt, why string) {
	for _, k := range a.Tasks() {
		if k.Live() && k.Phase() != state.Ended {
			ts.instances.releaseSeat(k, why, "")
		}
	}
}

// lostRank handles the end of a gang's machine while its program ran. The other ranks are ended, and their machines
// kept for the next attempt if it uses the same offer. The job requests nothing before the first of them has ended,
// because machines of an offer are often interrupted together.
func (ts *Attempts) lostRank(j *state.Job, k *state.Task) {
	a := k.Attempt()
	if ts.breakUp(a, "node_lost"); a.Task() == state.Ended {
		ts.goesOn(j, a)
	}
}

// Silent handles a rank whose agent has not reported for too long. The other ranks cannot work without it.
func (ts *Attempts) Silent(k *state.Task) {
	a := k.Attempt()
	ts.jobs.releaseMachine(k, "agent_silent", "silent")
	if a.Nodes() > 1 && k.Phase() != state.Ended {
		ts.breakUp(a, "node_lost")
	}
}

// neverBegan terminates the machines of a gang that took too long to start.
func (ts *Attempts) neverBegan(a *state.Attempt, why string) {
	for _, k := range a.Tasks() {
		if k.Live() && k.Phase() != state.Ended && k.Started().IsZero() {
			ts.jobs.releaseMachine(k, why, "silent")
		}
	}
	ts.breakUp(a, why)
}

// gangEnded decides what happens to a job whose programs have all ended, and to its machines.
func (ts *Attempts) gangEnded(j *state.Job, a *state.Attempt) {
	if j.State() == state.Running && j.Asked() == nil && j.Attempt() == a {
		switch reason := a.End(); reason {
		case "completed", "failed", "setup", "drained":
			ts.becomes(j, a, reason, a.Exit())
		default: // they were ended because of a machine
			ts.instances.cutOff(j, a, a.Cause())
		}
	}
	ts.regroups(j, a)
}

// regroups requests the next attempt of a job whose gang has ended or is ending, so that it keeps the remaining
// machines. It terminates those that it does not keep.
func (ts *Attempts) regroups(j *state.Job, a *state.Attempt) {
	ts.queue.Keeping, ts.queue.Keeps = j, ts.decider.Survivors(a)
	ts.queue.Sums = nil
	if len(ts.queue.Keeps) > 0 && ts.mayRegroup(j) {
		ts.queue.Queue.Remove(j)
		ts.launches.try(j)
	}
	ts.queue.Keeping, ts.queue.Keeps, ts.queue.Sums = nil, nil, nil
	for _, k := range a.Tasks() {
		switch {
		case !k.Live():
		case k.Phase() == state.Ended:
			ts.rankLeaves(j, k)
		case k.Leaving() != "" && !ts.awaited(j, k): // its program does nothing useful any more
			ts.jobs.releaseMachine(k, k.Leaving(), "")
		}
	}
}

// mayRegroup reports whether a job that has just lost its attempt may have another at once.
func (ts *Attempts) mayRegroup(j *state.Job) bool {
	waits := j.State() == state.Queued && queue.At(j).Waits && j.Asked() == nil
	return waits && (ts.queue.Room() || j.Holds() && !ts.State.Undecided()) && ts.queue.Blocks()(j).By == nil &&
		!ts.decider.Awaits(j)
}

// rankGone handles a rank that had to leave its seat and has left it.
func (ts *Attempts) rankGone(j *state.Job, k *state.Task) {
	if k.Phase() == state.Ended {
		return
	}
	lost := time.Duration(0)
	if k.Started().IsZero() {
		ts.books.Settle(j, k, ledger.StartUp, ts.Now())
	} else {
		lost = max(0, ts.Now().Sub(k.Kept()))
		ts.books.Settle(j, k, ledger.Useful, k.Kept())
		ts.books.Settle(j, k, ledger.Lost, ts.Now())
	}
	ts.Fact(state.TaskEnded{Attempt: k.Attempt().ID(), Lost: lost})
	ts.rankEnded(j, k, k.End())
}

// rankLeaves gives the machine of an ended rank to the job's next attempt or to the next job, or terminates it.
func (ts *Attempts) rankLeaves(j *state.Job, k *state.Task) {
	i := ts.State.Instance(k.Instance())
	switch {
	case i == nil || !i.Live() || i.Release() != "":
	case ts.awaited(j, k):
		ts.passes(j, k)
	case j.State().Over() && ts.instances.mayKeep(k, k.End()):
		ts.instances.vacate(j, k, k.End())
	default:
		ts.jobs.releaseMachine(k, "program_"+k.Attempt().End(), "")
	}
}

// awaited reports whether the next attempt of the job waits for the machine of a rank.
func (ts *Attempts) awaited(j *state.Job, k *state.Task) bool {
	a := j.Asked()
	return a != nil && a.Awaits(k.Instance())
}

// passes gives the machine of a rank to the next attempt of its job.
func (ts *Attempts) passes(j *state.Job, k *state.Task) {
	a := j.Asked()
	end := ts.instances.settleEnd(j, k, ts.Now())
	ts.Fact(state.SeatLeft{Instance: k.Instance(), Attempt: k.Attempt().ID(), Next: a.ID(), Lost: end.Lost})
	ts.jobs.Freed()
	if a.Full() {
		ts.launches.began(a)
	}
}

// lacks handles the end of a machine that an incomplete allocation has or waits for: the whole allocation is given
// up.
func (ts *Attempts) lacks(j *state.Job, i *state.Instance) {
	if a := j.Asked(); a != nil && (a.Has(i.ID()) || a.Awaits(i.ID())) {
		ts.disbands(j, a, "gang_wait")
	}
}

// disbands gives up an allocation that has some of its machines, and lets its job try again.
func (ts *Attempts) disbands(j *state.Job, a *state.Allocation, why string) {
	ts.launches.giveUp(a, why)
	ts.jobs.requeue(j, state.JobQueued{Why: why})
	ts.dropsAwaited(j, a)
}

// dropsAwaited terminates the machines that an allocation would have taken over from the previous attempt.
func (ts *Attempts) dropsAwaited(j *state.Job, a *state.Allocation) {
	for _, id := range a.Keeps() {
		if i := ts.State.Instance(id); i != nil && !a.Has(id) {
			for _, k := range ts.State.TasksOn(i) {
				if k.Attempt().Job() == j.ID() {
					ts.jobs.releaseMachine(k, "allocation_closed", "")
				}
			}
		}
	}
}

// partial ends an allocation that got only some of its machines. Their cost goes to its attempt, and they are
// terminated.
func (ts *Attempts) partial(j *state.Job, a *state.Allocation) {
	ts.Fact(state.AttemptBegan{Attempt: a.ID(), Partial: true})
	ts.books.PostsAt(j)
	t := ts.State.Attempt(a.ID())
	ts.cutDead(j, t)
	for _, k := range t.Tasks() {
		if k.Live() {
			ts.jobs.releaseMachine(k, "gang_wait", "gang_wait")
		}
	}
}

// cutDead ends the tasks of an attempt whose machines had ended before it began, and books the bills that came
// meanwhile.
func (ts *Attempts) cutDead(j *state.Job, a *state.Attempt) {
	for _, k := range a.Tasks() {
		i := ts.State.Instance(k.Instance())
		if i.Live() && !i.Lost() { // an instance that was given up has ended for its task, even if it reappears
			continue
		}
		end := ts.instances.settleEnd(j, k, step.Later(i.Until(), k.From()))
		bill := i.Bill()
		if bill != nil && !i.Shared() {
			ts.books.Bill(j, k, linesOf(i))
			ts.Fact(state.BillSplit{Instance: i.ID(), Parts: []state.BillPart{{Attempt: a.ID(), Bill: bill}}})
		}
		ts.Fact(state.TaskCut{Attempt: a.ID(), Node: k.Rank(), Lost: end.Lost})
		if bill != nil && i.Shared() {
			ts.books.SplitBill(i, linesOf(i))
		}
	}
}

// linesOf returns the lines of the newest bill of an instance, or its sums by rule if only those are kept.
func linesOf(i *state.Instance) (lines []state.BillLine) {
	if i.BillLines() != nil {
		return i.BillLines()
	}
	bill := i.Bill()
	for _, rule := range slices.Sorted(maps.Keys(bill)) {
		lines = append(lines, state.BillLine{Rule: rule, Amount: bill[rule]})
	}
	return lines
}

// gathers reports whether a gang has some of its machines and waits for others of the same pool. Two gangs that
// each had some of the last machines would both wait forever.
func (ts *Attempts) gathers(offer market.OfferID) bool {
	l := ts.State.Listing(offer)
	if l == nil {
		return false
	}
	of := state.MachineOf(l.Offer())
	pool := state.ScopeKey(state.PoolScope, &of)
	for a := range ts.State.Allocations() {
		if a.Nodes() > 1 && len(a.Granted()) > 0 && !a.Answered() && state.ScopeKey(state.PoolScope, a.Machine()) == pool {
			return true
		}
	}
	return false
}

// reviewGang decides whether to give up an allocation that has some of its machines, because it waits for too long
// or the budget of its job is spent. It reports whether it gave it up.
func (ts *Attempts) reviewGang(j *state.Job, a *state.Allocation) bool {
	end := ts.decider.GangEnd(a)
	if end.IsZero() || ts.Faults.Hoards {
		return false
	}
	if !ts.Now().Before(end) {
		ts.launches.backOff(a, state.OfferScope, 0, "not all machines of a gang came in time")
		ts.disbands(j, a, "gang_wait")
		return true
	}
	ts.WakeAt(j, end)
	if t := j.Terms(); t.HasBudget && !t.DeadlineFirst {
		left := t.Budget.Sub(j.Spent(ts.Now()))
		if left.Sign() <= 0 {
			ts.disbands(j, a, string(plan.BudgetGone))
			return true
		}
		if d, ok := a.PresentRate().Buys(left); ok {
			ts.WakeAt(j, ts.Now().Add(d))
		}
	}
	return false
}

// reduces lets a gang that can do with fewer machines start with those that it has, or takes over from the previous
// attempt, if no others are available. It reports whether it does.
func (ts *Attempts) reduces(j *state.Job, a *state.Allocation) bool {
	has := len(a.Granted())
	for _, id := range a.Keeps() {
		if !a.Has(id) {
			has++
		}
	}
	if a.Phase() != state.Pending || has < j.Terms().Fewest() || has >= a.Nodes() {
		return false
	}
	ts.Fact(state.AllocationReduced{Allocation: a.ID(), Nodes: has})
	if a.Full() {
		ts.launches.began(a)
	}
	return true
}
