package lifecycle

import (
	"slices"
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/core/accounting"
	"scrimp/internal/decide/core/step"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
)

// mayKeep reports whether the machine of a task whose program has ended may serve another job. It may not if it is
// being interrupted or at fault, or is no longer in the log, nor if its engine keeps no idle machines or the job moves
// from it, unless a part of it is kept for another job.
func (is *Instances) mayKeep(k *state.Task, end string) bool {
	a := k.Attempt()
	i := is.State.Instance(k.Instance())
	switch {
	case i == nil || !serves(i) || is.State.Undecided() || a.Machine().Prepaid:
		return false
	case len(i.Seats()) != 1 || is.State.Seated(i) != a:
		return false
	case end == "setup" || a.DrainWhy() == "lifetime_ends":
		return false
	case !is.State.KeptUntil(i).IsZero():
		return true
	}
	moves := a.Draining() && is.State.Job(a.Job()).MigratingTo() != ""
	return !moves && is.market.TimingOf(a.Machine()).Idle > 0
}

// staysKept reports whether the machine of a task that must leave it stays for a job that a part of it is kept for. It
// does not if the program was asked to end and did not.
func (is *Instances) staysKept(k *state.Task) bool {
	i := is.State.Instance(k.Instance())
	if i == nil || is.State.KeptUntil(i).IsZero() || k.Attempt().Draining() && k.Phase() != state.Ended {
		return false
	}
	return is.mayKeep(k, k.End())
}

// serves reports whether a machine has an agent and may get tasks: nobody is terminating or interrupting it, and its
// provider lists it.
func serves(i *state.Instance) bool {
	return i.Agent() != nil && i.Phase() != state.Provisioning && i.Release() == "" && !i.Disowned() &&
		i.Missing().IsZero() && i.Noticed().IsZero()
}

// vacate keeps the machine of a task for the next job, or else terminates it.
func (is *Instances) vacate(j *state.Job, k *state.Task, reason string) {
	f, waits := is.waitsFor(j, k)
	if !waits {
		is.jobs.releaseMachine(k, "program_"+reason, "")
		return
	}
	is.books.Level(j, k, ledger.Idle, is.Now())
	is.queue.ServedGPUs(j, k, k.From(), is.Now())
	is.admission.SumGPUs(j, k, k.From(), is.Now())
	is.Fact(f)
	is.jobs.Freed()
}

// waitsFor returns how long the machine of a task waits for the next job of its user: for as long as that is expected
// to pay, and while a part of it is kept. ok is false if it does not wait, or if the team's limits have no room for it.
func (is *Instances) waitsFor(j *state.Job, k *state.Task) (f state.SeatLeft, ok bool) {
	i := is.State.Instance(k.Instance())
	pays := max(0, is.keepsFor(j, k.Attempt(), i))
	keep := max(pays, is.State.KeptUntil(i).Sub(is.Now()))
	most := i.PresentRate().Until(max(keep, is.books.PaidUntil(i).Sub(is.Now())))
	f = state.SeatLeft{Instance: i.ID(), Keep: is.Now().Add(pays), Most: most}
	return f, keep > 0 && !is.noRoom(j, i, most)
}

// keepsFor is the longest time that a machine waits for the next job.
func (is *Instances) keepsFor(j *state.Job, a *state.Attempt, i *state.Instance) time.Duration {
	l := is.State.Listing(a.Offer())
	if l == nil {
		return 0
	}
	return plan.KeepWarm(l.Offer(), is.Now().Sub(i.From()), is.startOf(j, i), is.books.PaidUntil(i).Sub(is.Now()),
		is.State.Gaps(j.User()), is.market.TimingOf(a.Machine()).Idle)
}

// startOf is the time of a start: what the first one on this machine took, or else what the job expects.
func (is *Instances) startOf(j *state.Job, i *state.Instance) time.Duration {
	if a := is.State.AttemptOf(i.Allocation()); a != nil && !a.Started().IsZero() {
		return max(0, a.Started().Sub(a.Requested())-a.Transfer())
	}
	return j.Restart()
}

// noRoom reports whether a limit has no room for what a machine may cost while it is idle. Its last job no longer
// has a hold if it has ended.
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

// Cleans reports whether the event tells the core for the first time that a machine is clean.
func (is *Instances) Cleans(instance string) bool {
	i := is.State.Instance(instance)
	if i == nil || !i.Live() {
		return false
	}
	idle, ok := i.Idle()
	return ok && idle.Clean.IsZero()
}

// Cleaned records that an idle machine is clean and may be used.
func (is *Instances) Cleaned(instance string) {
	if is.Cleans(instance) {
		is.Fact(state.InstanceCleaned{Instance: instance})
		is.queue.Queue.Changed()
	}
}

// Release terminates an idle machine on request of a user. A machine that has a task by now keeps running.
func (is *Instances) Release(instance string) {
	i := is.State.Instance(instance)
	if i == nil || !i.Live() {
		return
	}
	if _, idle := i.Idle(); idle {
		is.releaseIdle(i, "asked")
	}
}

// Tend terminates machines that were idle long enough, and posts the cost of idle time by the hour.
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

// cleanBy is when a machine must be clean; otherwise it is of no use.
func (is *Instances) cleanBy(i *state.Instance, idle *state.Idle) time.Time {
	return idle.From.Add(is.market.TimingOf(i.Machine()).Detect + is.Config().Patience)
}

// needsRoom reports whether the event may have admitted something that needs the room held for idle machines.
func (is *Instances) needsRoom() bool {
	switch is.Event.Body.(type) {
	case state.JobSubmitted, state.JobReviewed, state.JobResumed, state.JobUpdated, state.GroupOpened,
		state.GroupReviewed, state.Spawn, state.BudgetsSet:
		return len(is.Rules().Limits) > 0
	}
	return false
}

// shortOfRoom reports whether a limit no longer has room for what an idle machine may cost beyond the time already
// paid for.
func (is *Instances) shortOfRoom(i *state.Instance, idle *state.Idle) bool {
	w := is.admission.Weigher()
	v := is.books.IdleJob(i, idle, is.Now())
	v.ID, v.Most, v.Spent = "", idle.Most.Sub(v.Most), money.Amount{}
	return v.Most.Sign() > 0 && w.Weigh(v, &state.Terms{}) != nil
}

// hourAfter is the end of the hour in which the cost of an idle span was last posted.
func hourAfter(idle *state.Idle) time.Time {
	last := step.Later(idle.From, idle.Settled)
	return last.Truncate(time.Hour).Add(time.Hour)
}

// WakeForIdle is when an idle machine must be reviewed next; zero: none is idle.
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

// releaseIdle terminates an idle machine.
func (is *Instances) releaseIdle(i *state.Instance, why string) {
	if i.Release() == "" && !i.Disowned() {
		is.Fact(state.InstanceReleased{Instance: i.ID(), Why: why})
	}
}

// accrueIdle posts the cost of a machine up to t that no task pays for.
func (is *Instances) accrueIdle(i *state.Instance, idle *state.Idle, t time.Time) {
	due := i.Cost(t).Sub(i.Posted())
	due = due.Sub(is.postIdle(i, idle, t))
	is.books.ChargeIdle(i, is.books.IdleEntry(i, idle, ledger.Accrued, accounting.PricedLater), due)
}

// postIdle posts the time of an idle span up to t, or reverses what was posted beyond t. It returns the cost.
func (is *Instances) postIdle(i *state.Instance, idle *state.Idle, t time.Time) (cost money.Amount) {
	known := idle.PostedUntil()
	for _, p := range accounting.Due(i.Pieces, known, t) {
		if t.Before(known) {
			p.Amount = p.Amount.Neg()
		}
		cost = cost.Add(p.Amount)
		entry := is.books.IdleEntry(i, idle, ledger.Accrued, "")
		is.books.ChargeIdle(i, is.books.Timed(entry, i.Machine(), accounting.Undivided(p)), p.Amount)
	}
	return cost
}

// idleEnded handles the end of an idle machine.
func (is *Instances) idleEnded(i *state.Instance, until time.Time, cause string, givenUp bool) {
	idle, _ := i.Idle()
	is.accrueIdle(i, &idle, until)
	is.Fact(state.InstanceClosed{Instance: i.ID(), Until: until, Cause: cause, GivenUp: givenUp})
	is.jobs.Freed()
}

// overran reverses the charges of an attempt that took an idle machine, or a portion of one, that had already ended
// unnoticed. It returns when the attempt ended.
func (is *Instances) overran(i *state.Instance, k *state.Task, until time.Time) time.Time {
	if !k.Warm() || !until.Before(k.From()) {
		return until
	}
	if idle := takenBy(i, k); idle != nil {
		is.postIdle(i, idle, until)
	} else {
		is.takesBack(i, until)
	}
	return k.From()
}

// takesBack reverses what the last task of a machine paid beyond the machine's end.
func (is *Instances) takesBack(i *state.Instance, until time.Time) {
	if k := is.leftLast(i); k != nil && until.Before(k.Accrued()) {
		is.books.Correct(is.State.Job(k.Attempt().Job()), k, i, step.Later(until, k.From()))
	}
}

// leftLast returns the task that had a machine last, unless it shared the machine or its job is archived.
func (is *Instances) leftLast(i *state.Instance) *state.Task {
	served := i.Served()
	if len(served) == 0 || i.Divided() {
		return nil
	}
	if a := is.State.AttemptOf(served[len(served)-1]); a != nil {
		return a.On(i.ID())
	}
	return nil
}

// ranOn posts again what overran reversed, if the machine was given up and ran on.
func (is *Instances) ranOn(i *state.Instance, k *state.Task) {
	upTo := func(t time.Time) time.Time {
		if i.Until().Before(t) {
			return i.Until()
		}
		return t
	}
	if idle := takenBy(i, k); idle != nil {
		is.postIdle(i, idle, upTo(k.From()))
		return
	}
	if before := is.leftLast(i); before != nil && before.Accrued().Before(upTo(before.Until())) {
		is.books.Correct(is.State.Job(before.Attempt().Job()), before, i, upTo(before.Until()))
	}
}

// takenBy returns the idle span of a machine that ended when k took the machine, or nil.
func takenBy(i *state.Instance, k *state.Task) *state.Idle {
	at := slices.IndexFunc(i.Idles(), func(x state.Idle) bool { return x.Taken == k.Attempt().ID() })
	if at < 0 {
		return nil
	}
	return &i.Idles()[at]
}

// IdleAfter returns the idle cost of a job's machines after its attempts, up to t; nil if none was idle.
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
