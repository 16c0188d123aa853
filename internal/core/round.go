package core

import (
	"slices"
	"time"

	"scrimp/internal/market"
	"scrimp/internal/plan"
	"scrimp/internal/state"
)

// reviewsAtOnce is how many jobs that hold a machine one step reviews because the market
// moved: a few milliseconds. Others follow in short steps of their own.
const reviewsAtOnce = 16

// round is a review of all jobs that hold a machine. A price that moves meanwhile makes
// another round follow, so that nobody waits for more than two.
type round struct {
	jobs  []*Job
	again bool
}

// left reports whether somebody waits to be reviewed.
func (r *round) left() bool { return len(r.jobs) > 0 || r.again }

// market takes offers and quotes: what waits may be tried again, and what holds a
// machine is reviewed.
func (m *Machine) market(b MarketSeen) {
	if len(b.Offers) > 0 {
		m.findPrepaid()
	}
	m.queue.changed()
	m.review.again = true
}

// reviews goes on with the round, and begins the next where one is due.
func (m *Machine) reviews() {
	for n := reviewsAtOnce; n > 0; n-- {
		if len(m.review.jobs) == 0 {
			if !m.review.again {
				return
			}
			m.review.again = false
			m.review.jobs = m.turns()
			if len(m.review.jobs) == 0 {
				return
			}
		}
		j := m.review.jobs[0]
		m.review.jobs = m.review.jobs[1:]
		m.reviewJob(j)
	}
}

// soon is how near the guard of a job is that is reviewed before the others.
const soon = 10 * time.Minute

// many is from how many jobs on they are reviewed in the order of their tables.
const many = 64

// turns is the order in which the jobs that hold a machine are reviewed: those whose
// guard is near first, then by name, and where there are many, those side by side that
// share a table.
func (m *Machine) turns() []*Job {
	list := slices.Clone(m.s.Running())
	if len(list) <= reviewsAtOnce {
		return list
	}
	limit := m.now().Add(soon)
	type key struct {
		urgent bool
		guard  time.Time
		kin    [3]int64
	}
	keys := make(map[*Job]key, len(list))
	for _, j := range list {
		k := key{guard: at(j).guard}
		k.urgent = !k.guard.IsZero() && k.guard.Before(limit)
		if len(list) > many && !k.urgent {
			k.kin = plan.Kin(m.progress(j, 1))
		}
		keys[j] = k
	}
	slices.SortStableFunc(list, func(a, b *Job) int {
		x, y := keys[a], keys[b]
		switch {
		case x.urgent != y.urgent && x.urgent:
			return -1
		case x.urgent != y.urgent:
			return 1
		case x.urgent:
			return x.guard.Compare(y.guard)
		}
		return slices.Compare(x.kin[:], y.kin[:])
	})
	return list
}

// reviewJob looks whether a job that holds a machine must stop, and whether it should be
// elsewhere.
func (m *Machine) reviewJob(j *Job) {
	if asked := j.Asked(); asked != nil {
		m.reviewAsked(j, asked)
		return
	}
	a := j.Live()
	if a == nil || a.Releasing() || a.Disowned() {
		return
	}
	at(j).wake = time.Time{} // as in try
	if m.overdue(j, a) {
		return
	}
	if m.limits(j, a) || !a.Noticed().IsZero() || m.awaits(j) {
		return // it is saving, or asking
	}
	if m.expires(j, a) {
		return
	}
	m.moves(j, a)
}

// overdue gives a machine back that takes too long to begin or to end, and reports
// whether there is nothing else to decide.
func (m *Machine) overdue(j *Job, a *Attempt) bool {
	switch {
	case a.Draining() || a.Task() == Ended:
		if m.now().Before(a.DrainBy()) {
			m.wakeAt(j, a.DrainBy())
		} else {
			m.release(a, "drain_overdue", "")
		}
		return true
	case a.Task() == Working:
		return false
	}
	limit := a.From().Add(m.cfg().BootLimit + a.Transfer())
	if !m.now().Before(limit) {
		m.release(a, "boot_limit", "silent")
		return true
	}
	if at, limited := m.brokeAt(j); limited {
		if !at.After(m.now()) {
			m.release(a, "budget_spent", "moved")
			return true
		}
		m.wakeAt(j, at)
	}
	m.wakeAt(j, limit)
	return false
}

// moves decides where the job should be.
func (m *Machine) moves(j *Job, a *Attempt) {
	switch d := m.decide(j); {
	case d.Look != "":
		m.probe(j, d.Look)
	case d.Take == a.Offer():
		m.wakeAt(j, d.Again)
		m.rungAt(j)
		if at, ok := m.expiry(a, j); ok && a.Task() == Working {
			m.wakeAt(j, at)
		}
	case a.Task() == Working && d.Take == "" && d.Why == plan.OutOfMoney:
		m.drain(j, a, string(ends[d.Why]), Stopped, "")
	case a.Task() == Working:
		m.drain(j, a, "move_"+string(d.Why), "", d.Take)
	default: // it has nothing to save
		m.release(a, "move_"+string(d.Why), "moved")
	}
}

// expiry is when a machine with a longest lifetime is left: early enough to save
// twice, for the end is known in advance.
func (m *Machine) expiry(a *Attempt, j *Job) (time.Time, bool) {
	l := m.s.Listing(a.Offer())
	if l == nil {
		return time.Time{}, false
	}
	o := l.Offer()
	margin := j.Terms().Grace + 2*j.SaveCost() + m.cfg().Detect
	if o.Reserved.Count > 0 {
		return o.Reserved.Until.Add(-margin), true
	}
	if o.MaxLifetime <= 0 || margin >= o.MaxLifetime/2 { // it would be left as soon as it works
		return time.Time{}, false
	}
	return a.From().Add(o.MaxLifetime - margin), true
}

// expires leaves a machine whose lifetime ends, in time to lose no work.
func (m *Machine) expires(j *Job, a *Attempt) bool {
	at, ok := m.expiry(a, j)
	if !ok || a.Task() != Working || m.now().Before(at) {
		return false
	}
	m.drain(j, a, "lifetime_ends", "", "")
	return true
}

// probe asks about an offer that nobody has tried; the answer brings the job back here.
func (m *Machine) probe(j *Job, offer market.OfferID) {
	m.fact(state.ProbeAsked{Job: j.ID(), Offer: offer})
	m.wakeAt(j, m.now().Add(m.answerTime()))
}

// answerTime is how long an answer to a probe is waited for, and how long it counts.
func (m *Machine) answerTime() time.Duration { return max(m.cfg().Detect, time.Nanosecond) }

// awaits reports whether j waits for the answer to a probe.
func (m *Machine) awaits(j *Job) bool {
	if j.ProbeOf() == "" || m.now().Sub(j.Probed()) >= m.answerTime() {
		return false
	}
	l := m.s.Listing(j.ProbeOf())
	return l != nil && (l.Quote().Untried || l.Quote().At.Before(j.Probed()))
}

// limits ends a job whose budget of any kind is used up, and reports whether it did.
func (m *Machine) limits(j *Job, a *Attempt) bool {
	if a.Task() != Working || a.Draining() {
		return false
	}
	why, stop := m.exhausted(j, a)
	if stop {
		m.drain(j, a, string(why), Stopped, "")
	}
	return stop
}

// gotOn reviews a job that made progress: its limits, and whether it turned
// out to be so slow that the guard holds. The market is as it was, so nothing
// else can have changed.
func (m *Machine) gotOn(j *Job, a *Attempt) {
	if m.limits(j, a) || a.Draining() || !a.Noticed().IsZero() || !isSpot(a) || a.Task() != Working {
		return
	}
	if at, ok := m.progress(j, j.Last().Speed).GuardAt(true); ok {
		m.wakeAt(j, at)
	}
	if m.strained(j, a) {
		m.wakeAt(j, m.now().Add(m.cfg().Detect))
	}
}
