package lifecycle

import (
	"slices"
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/core/books"
	"scrimp/internal/decide/core/step"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
)

// mayKeep reports whether the machine of a task whose program has ended may serve another
// job: not where it is interrupted, moved from, at fault or out of the log's hands.
func (is *Instances) mayKeep(k *state.Task, end string) bool {
	a := k.Attempt()
	i := is.State.Instance(k.Instance())
	switch {
	case is.market.TimingOf(a.Machine()).Idle <= 0 || a.Machine().Prepaid:
		return false
	case i == nil || !serves(i) || is.State.Undecided():
		return false
	case len(i.Seats()) != 1 || is.State.Seated(i) != a:
		return false
	case a.Draining() && is.State.Job(a.Job()).MigratingTo() != "":
		return false
	}
	return end != "setup" && a.DrainWhy() != "lifetime_ends"
}

// serves reports whether a machine has an agent and stays: nobody gives it back, takes it or misses it.
func serves(i *state.Instance) bool {
	return i.Agent() != nil && i.Phase() != state.Provisioning && i.Release() == "" && !i.Disowned() &&
		i.Missing().IsZero() && i.Noticed().IsZero()
}

// vacate leaves the machine of a task to the next job of its user, for as long as that is
// expected to pay and its team has room for it; else it is given back.
func (is *Instances) vacate(j *state.Job, k *state.Task, reason string) {
	i := is.State.Instance(k.Instance())
	keep := is.keepsFor(j, k.Attempt(), i)
	most := i.PresentRate().Until(max(0, keep, is.books.PaidUntil(i).Sub(is.Now())))
	if keep <= 0 || is.noRoom(j, i, most) {
		is.jobs.releaseMachine(k, "program_"+reason, "")
		return
	}
	is.books.Level(j, k, ledger.Idle, is.Now())
	is.queue.ServedGPUs(j, k, k.From(), is.Now())
	is.admission.SumGPUs(j, k, k.From(), is.Now())
	is.Fact(state.SeatLeft{Instance: i.ID(), Keep: is.Now().Add(keep), Most: most})
	is.jobs.Freed()
}

// keepsFor is how long a machine waits for the next job at most.
func (is *Instances) keepsFor(j *state.Job, a *state.Attempt, i *state.Instance) time.Duration {
	l := is.State.Listing(a.Offer())
	if l == nil {
		return 0
	}
	return plan.KeepWarm(l.Offer(), is.Now().Sub(i.From()), is.startOf(j, i), is.books.PaidUntil(i).Sub(is.Now()),
		is.State.Gaps(j.User()), is.market.TimingOf(a.Machine()).Idle)
}

// startOf is what a start takes: what the first one on this machine took, else as the job expects.
func (is *Instances) startOf(j *state.Job, i *state.Instance) time.Duration {
	if a := is.State.AttemptOf(i.Allocation()); a != nil && !a.Started().IsZero() {
		return max(0, a.Started().Sub(a.Requested())-a.Transfer())
	}
	return j.Restart()
}

// noRoom reports whether a limit has no room for what a machine may cost while it waits. Its
// last job holds nothing more where it is over.
func (is *Instances) noRoom(j *state.Job, i *state.Instance, most money.Amount) bool {
	if len(is.Rules().Limits) == 0 {
		return false
	}
	books, _ := is.admission.Books(is.Now())
	if j.State().Over() {
		books = books.Without(budget.Job{ID: j.ID()})
	}
	books = books.Folded()
	w := is.admission.Weigher()
	w.Books = &books
	return w.Weigh(budget.Job{ID: i.ID(), Owner: j.Terms().Owner, User: j.User(), Most: most, Bounded: true,
		GPUBounded: true, Kind: budget.Hold}, &state.Terms{}) != nil
}

// Cleans reports whether it is news that nothing of an earlier task is left on a machine.
func (is *Instances) Cleans(instance string) bool {
	i := is.State.Instance(instance)
	if i == nil || !i.Live() {
		return false
	}
	idle, ok := i.Idle()
	return ok && idle.Clean.IsZero()
}

// Cleaned takes that a machine without a task may be used.
func (is *Instances) Cleaned(instance string) {
	if is.Cleans(instance) {
		is.Fact(state.InstanceCleaned{Instance: instance})
		is.queue.Queue.Changed()
	}
}

// GiveBack terminates a machine without a task because a user asked for it. One that has a task by now keeps it.
func (is *Instances) GiveBack(instance string) {
	i := is.State.Instance(instance)
	if i == nil || !i.Live() {
		return
	}
	if _, idle := i.Idle(); idle {
		is.releaseIdle(i, "asked")
	}
}

// Tend gives back the machines that have waited for long enough, and posts by the hour what
// waiting costs.
func (is *Instances) Tend() {
	for _, i := range is.State.Waiting() {
		idle, _ := i.Idle()
		switch {
		case i.Release() != "" || i.Disowned() || is.Faults.Waits:
		case idle.Clean.IsZero() && !is.Now().Before(is.cleanBy(i, &idle)):
			is.releaseIdle(i, "not_clean")
		case is.needsRoom() && is.shortOfRoom(i, &idle):
			is.releaseIdle(i, "no_room")
		case !is.decider.IdleUntil(i, &idle).After(is.Now().Add(time.Millisecond)): // amounts are rounded
			is.releaseIdle(i, "idle")
		}
		if !is.Now().Before(hourAfter(&idle)) {
			is.accrueIdle(i, &idle, is.Now())
		}
	}
}

// cleanBy is by when a machine must be shown clean: one that is not is of no use.
func (is *Instances) cleanBy(i *state.Instance, idle *state.Idle) time.Time {
	return idle.From.Add(is.market.TimingOf(i.Machine()).Detect + is.Config().Patience)
}

// needsRoom reports whether the event may have let something in that needs the room which a
// machine that waits has.
func (is *Instances) needsRoom() bool {
	switch is.Event.Body.(type) {
	case state.JobSubmitted, state.JobReviewed, state.JobResumed, state.JobUpdated, state.GroupOpened,
		state.GroupReviewed, state.Spawn, state.BudgetsSet:
		return len(is.Rules().Limits) > 0
	}
	return false
}

// shortOfRoom reports whether a limit has no room any more for what a machine that waits may
// cost beyond what it is paid for anyway.
func (is *Instances) shortOfRoom(i *state.Instance, idle *state.Idle) bool {
	w := is.admission.Weigher()
	v := is.books.IdleJob(i, idle, is.Now())
	v.ID, v.Most, v.Spent = "", idle.Most.Sub(v.Most), money.Amount{}
	return v.Most.Sign() > 0 && w.Weigh(v, &state.Terms{}) != nil
}

// hourAfter is the end of the hour in which the cost of a span without a task was posted last.
func hourAfter(idle *state.Idle) time.Time {
	last := step.Later(idle.From, idle.Settled)
	return last.Truncate(time.Hour).Add(time.Hour)
}

// WakeForIdle is when a machine that waits is to be looked at next; zero: none does.
func (is *Instances) WakeForIdle() (soonest time.Time) {
	for _, i := range is.State.Waiting() {
		idle, _ := i.Idle()
		t := is.Now().Truncate(time.Hour).Add(time.Hour)
		if by := is.cleanBy(i, &idle); idle.Clean.IsZero() && by.Before(t) && i.Release() == "" && !i.Disowned() &&
			!is.Faults.Waits {
			t = by
		}
		if end := is.decider.IdleUntil(i, &idle); i.Release() == "" && !i.Disowned() && !is.Faults.Waits && end.Before(t) {
			t = end
		}
		if !t.After(is.Now()) {
			t = is.Now().Add(time.Nanosecond)
		}
		if soonest.IsZero() || t.Before(soonest) {
			soonest = t
		}
	}
	return soonest
}

// releaseIdle gives a machine without a task back.
func (is *Instances) releaseIdle(i *state.Instance, why string) {
	if i.Release() == "" && !i.Disowned() {
		is.Fact(state.InstanceReleased{Instance: i.ID(), Why: why})
	}
}

// accrueIdle posts what a machine has cost by t and no task has.
func (is *Instances) accrueIdle(i *state.Instance, idle *state.Idle, t time.Time) {
	due := i.Cost(t).Sub(i.Posted())
	known := step.Later(idle.From, idle.Accrued)
	begin, end := known, t
	if t.Before(known) {
		begin, end = t, known
	}
	for _, p := range i.Pieces(begin, end) {
		if t.Before(known) {
			p.Amount = p.Amount.Neg()
		}
		due = due.Sub(p.Amount)
		entry := is.books.IdleEntry(i, idle, ledger.Accrued, "")
		is.books.ChargeIdle(i, is.books.Timed(entry, i.Machine(), books.Undivided(p)), p.Amount)
	}
	is.books.ChargeIdle(i, is.books.IdleEntry(i, idle, ledger.Accrued, books.PricedLater), due)
}

// idleEnded takes the end of a machine that had no task.
func (is *Instances) idleEnded(i *state.Instance, until time.Time, cause string, givenUp bool) {
	idle, _ := i.Idle()
	is.accrueIdle(i, &idle, until)
	is.Fact(state.InstanceClosed{Instance: i.ID(), Until: until, Cause: cause, GivenUp: givenUp})
	is.jobs.Freed()
}

// overran takes back from an attempt that took a machine without a task, or a part of one, what it
// was not there for: the machine had ended before, and nobody knew. It returns when the attempt ended.
func (is *Instances) overran(i *state.Instance, k *state.Task, until time.Time) time.Time {
	a := k.Attempt()
	if !k.Warm() || !until.Before(k.From()) {
		return until
	}
	at := slices.IndexFunc(i.Idles(), func(x state.Idle) bool { return x.Taken == a.ID() })
	if at < 0 { // others had it before: what they paid is theirs
		return k.From()
	}
	idle := &i.Idles()[at]
	for _, p := range i.Pieces(until, k.From()) {
		entry := is.books.IdleEntry(i, idle, ledger.Accrued, "settled_too_far")
		entry = is.books.Timed(entry, i.Machine(), books.Undivided(p))
		is.books.ChargeIdle(i, entry, p.Amount.Neg())
	}
	return k.From()
}

// IdleAfter is what the machines of a job cost by t after its attempts, while they waited for
// another; nil: none has.
func (is *Instances) IdleAfter(j *state.Job, t time.Time) *money.Amount {
	var sum *money.Amount
	for _, a := range j.Attempts() {
		i := is.State.Instance(a.Instance())
		if a.Cause() != state.Kept || i == nil {
			continue
		}
		for _, idle := range i.Idles() {
			if idle.After != a.ID() {
				continue
			}
			cost := idle.Posted.Add(idle.Rules)
			if idle.Until.IsZero() {
				cost = cost.Add(i.Cost(t).Sub(i.Posted()))
			}
			if sum == nil {
				sum = &money.Amount{}
			}
			*sum = sum.Add(cost)
		}
	}
	return sum
}
