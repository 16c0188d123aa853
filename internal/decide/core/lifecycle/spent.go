package lifecycle

import (
	"cmp"
	"slices"
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/core/admission"
	"scrimp/internal/decide/core/step"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
)

// StopsAtOnce is the largest number of jobs of a spent limit that one step stops, and PassedAtOnce the largest
// number of waiting jobs that it checks. The others follow in short steps of their own.
const (
	StopsAtOnce  = 16
	PassedAtOnce = 2000
)

// GuardLimits saves and stops the jobs of limits that are spent: first those that cost something, then those that
// wait. A hold already keeps a job within its limit; this is for jobs without a known maximum cost, and for those
// that exceed it.
func (js *Jobs) GuardLimits() {
	js.checkSpent()
	for _, u := range js.admission.Usage {
		if u.Guard.Stops {
			js.stopOf(u)
			return
		}
	}
}

// checkSpent finds limits that are spent among those that are due.
func (js *Jobs) checkSpent() {
	due := false
	for _, u := range js.admission.Usage {
		if u.Dollars == nil {
			continue
		}
		g := &u.Guard
		if js.spends() && !g.Checked.IsZero() {
			if soon := g.Checked.Add(js.Config().Detect); g.Next.IsZero() || soon.Before(g.Next) {
				g.Next = step.Later(soon, js.Now())
			}
		}
		due = due || g.Due(js.Now())
	}
	if !due {
		return
	}
	b, burn := js.admission.Books(js.Now())
	for _, u := range js.admission.Usage {
		if u.Dollars != nil && u.Guard.Due(js.Now()) {
			js.checkLimit(u, b, burn[u.Name()])
		}
	}
}

// spends reports whether the event can make a limit run out earlier than predicted.
func (js *Jobs) spends() bool {
	switch js.Event.Body.(type) {
	case state.MarketSeen, state.LaunchDone, state.InventorySeen, state.InstanceEnded, state.BillReceived,
		state.JobReviewed, state.JobResumed, state.JobSubmitted:
		return true
	}
	return false
}

// checkLimit starts to stop the jobs of a spent limit, or sets the next check to when the limit would be spent at
// the current rate.
func (js *Jobs) checkLimit(u *admission.Usage, b budget.Accounts, burn money.Rate) {
	g := &u.Guard
	g.Checked, g.Next = js.Now(), time.Time{}
	use := budget.Use{Spent: b.Spent[u.Name()]}
	if use.Spent.Cmp(*u.Dollars) >= 0 {
		if !js.State.Spent(u.Limit, js.Now()).Reached {
			js.Fact(state.LimitReached{Limit: u.Name(), Spent: use.Spent})
		}
		g.Stops, g.Passed = true, 0
		return
	}
	if at, ok := u.Breach(use, burn, js.Now()); ok {
		g.Next = step.Later(at, js.Now().Add(js.Config().Stretch(time.Second)))
	} else if burn > 0 && !u.End.IsZero() {
		g.Next = u.End
	}
}

// stopOf stops some jobs of a spent limit.
func (js *Jobs) stopOf(u *admission.Usage) {
	n := 0
	for _, i := range js.State.Waiting() {
		if idle, _ := i.Idle(); u.Scope.Holds(idle.Owner, idle.User) {
			js.instances.releaseIdle(i, step.LimitSpent)
		}
	}
	for _, j := range slices.Clone(js.State.Running()) {
		if n == StopsAtOnce {
			return
		}
		if js.stops(u, j) {
			n++
		}
	}
	left := state.After(js.State.Jobs(), u.Guard.Passed)
	for seen, j := range left {
		if n == StopsAtOnce || seen == PassedAtOnce {
			return
		}
		if js.stops(u, j) {
			n++
		}
		u.Guard.Passed = j.Order()
	}
	u.Guard.Stops = false
}

// stops saves and stops a job under the limit, and reports whether it did.
func (js *Jobs) stops(u *admission.Usage, j *state.Job) bool {
	ends := j.State() == state.Held || j.State().Over() || j.Ending() != "" && j.Ending() != state.Paused
	if ends || !u.Scope.Holds(j.Terms().Owner, j.User()) || js.Faults.Spares != nil && js.Faults.Spares(j.ID()) {
		return false
	}
	js.End(j, true, step.LimitSpent, "all of the budget "+u.Name()+" is spent")
	return true
}

// End saves and stops a job, or cancels it at once.
func (js *Jobs) End(j *state.Job, save bool, why, detail string) {
	as := state.Cancelled
	if save {
		as = state.Stopped
	}
	a := j.Live()
	if save && a != nil && a.Task() == state.TaskRunning && j.State() == state.Running {
		if j.Ending() == "" || j.Ending() == state.Paused {
			js.Fact(state.JobEnding{Job: j.ID(), State: as, Why: why, Detail: detail})
		}
		js.Drain(j, a, why, as, "")
		return
	}
	js.Finish(j, as, why, cmp.Or(detail, j.Detail()))
	if a != nil {
		js.release(a, why, "")
	}
}

// WakeForLimits is when a limit is checked next, or more jobs are stopped.
func (js *Jobs) WakeForLimits() (soonest time.Time) {
	for _, u := range js.admission.Usage {
		if u.Guard.Stops {
			return js.Now()
		}
		if t := u.Guard.Next; !t.IsZero() && (soonest.IsZero() || t.Before(soonest)) {
			soonest = t
		}
	}
	return soonest
}
