package core

import (
	"cmp"
	"slices"
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
)

// A step stops so many jobs of a limit that is spent at most, and goes through so many of
// those that wait: others follow in short steps of their own.
const (
	stopsAtOnce  = 16
	passedAtOnce = 2000
)

// guarded is how a limit of dollars is kept while its jobs run.
type guarded struct {
	next    time.Time // when it is checked again; zero: when something happens that can spend of it
	checked time.Time
	stops   bool // its jobs are being stopped
	// passed is the order of the last job that the stop has gone through, of all, when none of it runs any more.
	passed uint64
}

// guardLimits saves and stops the jobs of limits that are spent: first those that cost
// something, then those that wait. What is held for a job keeps its limit; this is for jobs
// whose most nobody knows, and for those that pass it.
func (m *Machine) guardLimits() {
	m.checkSpent()
	for _, u := range m.usage {
		if u.guard.stops {
			m.stopOf(u)
			return
		}
	}
}

// checkSpent looks which limits are spent, of those whose time has come.
func (m *Machine) checkSpent() {
	due := false
	for _, u := range m.usage {
		if u.Dollars == nil {
			continue
		}
		g := &u.guard
		if m.spends() && !g.checked.IsZero() {
			if soon := g.checked.Add(m.cfg().Detect); g.next.IsZero() || soon.Before(g.next) {
				g.next = later(soon, m.now())
			}
		}
		due = due || g.due(m.now())
	}
	if !due {
		return
	}
	b, burn := m.Books(m.now())
	for _, u := range m.usage {
		if u.Dollars != nil && u.guard.due(m.now()) {
			m.checkLimit(u, b, burn[u.Name()])
		}
	}
}

func (g *guarded) due(now time.Time) bool {
	return g.checked.IsZero() || !g.next.IsZero() && !g.next.After(now)
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// spends reports whether the event can make limits be spent earlier than was foreseen.
func (m *Machine) spends() bool {
	switch m.e.Body.(type) {
	case MarketSeen, LaunchDone, InventorySeen, InstanceEnded, BillReceived, JobReviewed, JobResumed, JobSubmitted:
		return true
	}
	return false
}

// checkLimit begins to stop the jobs of a limit that is spent, or says when it is looked at
// again: when it would be spent at the rate of now.
func (m *Machine) checkLimit(u *usage, b budget.Accounts, burn money.Rate) {
	g := &u.guard
	g.checked, g.next = m.now(), time.Time{}
	use := budget.Use{Spent: b.Spent[u.Name()]}
	if use.Spent.Cmp(*u.Dollars) >= 0 {
		if !m.s.Spent(u.Limit, m.now()).Reached {
			m.fact(state.LimitReached{Limit: u.Name(), Spent: use.Spent})
		}
		g.stops, g.passed = true, 0
		return
	}
	if at, ok := u.Breach(use, burn, m.now()); ok {
		g.next = later(at, m.now().Add(m.cfg().Stretch(time.Second)))
	} else if burn > 0 && !u.end.IsZero() {
		g.next = u.end
	}
}

// stopOf stops some jobs of a limit that is spent.
func (m *Machine) stopOf(u *usage) {
	n := 0
	for _, i := range m.s.Waiting() {
		if idle, _ := i.Idle(); u.Scope.Holds(idle.Owner, idle.User) {
			m.releaseIdle(i, LimitSpent)
		}
	}
	for _, j := range slices.Clone(m.s.Running()) {
		if n == stopsAtOnce {
			return
		}
		if m.stops(u, j) {
			n++
		}
	}
	left := state.After(m.s.Jobs(), u.guard.passed)
	for seen, j := range left {
		if n == stopsAtOnce || seen == passedAtOnce {
			return
		}
		if m.stops(u, j) {
			n++
		}
		u.guard.passed = j.Order()
	}
	u.guard.stops = false
}

// stops saves and stops a job that the limit holds, and reports whether it did.
func (m *Machine) stops(u *usage, j *Job) bool {
	ends := j.State() == Held || j.State().Over() || j.Ending() != "" && j.Ending() != Paused
	if ends || !u.Scope.Holds(j.Terms().Owner, j.User()) || m.faults.Spares != nil && m.faults.Spares(j.ID()) {
		return false
	}
	m.end(j, true, LimitSpent, "all of the budget "+u.Name()+" is spent")
	return true
}

// end saves and stops a job, or cancels it at once.
func (m *Machine) end(j *Job, save bool, why, detail string) {
	as := Cancelled
	if save {
		as = Stopped
	}
	a := j.Live()
	if save && a != nil && a.Task() == TaskRunning && j.State() == Running {
		if j.Ending() == "" || j.Ending() == Paused {
			m.fact(state.JobEnding{Job: j.ID(), State: as, Why: why, Detail: detail})
		}
		m.drain(j, a, why, as, "")
		return
	}
	m.finish(j, as, why, cmp.Or(detail, j.Detail()))
	if a != nil {
		m.release(a, why, "")
	}
}

// wakeForLimits is when a limit is checked next, or goes on stopping.
func (m *Machine) wakeForLimits() (soonest time.Time) {
	for _, u := range m.usage {
		if u.guard.stops {
			return m.now()
		}
		if t := u.guard.next; !t.IsZero() && (soonest.IsZero() || t.Before(soonest)) {
			soonest = t
		}
	}
	return soonest
}
