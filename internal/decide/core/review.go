package core

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"time"

	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/policy"
	"scrimp/internal/decide/state"
	"scrimp/internal/market"
)

// A step reviews so many jobs at most because the market moved, and as many whose time has
// come, and no more once it has weighed so many offers: a few milliseconds. Others follow in
// short steps of their own.
const (
	reviewsAtOnce = 16
	weighedAtOnce = 10_000
)

// effort is what reviews of a step took so far.
type effort struct{ reviews, weighed int }

func (e effort) enough() bool { return e.reviews >= reviewsAtOnce || e.weighed >= weighedAtOnce }

// reviewWithin reviews a job and adds what that took.
func (m *Machine) reviewWithin(j *Job, e *effort) {
	decided := m.out.Decided
	m.reviewJob(j)
	if e.reviews++; m.out.Decided > decided {
		e.weighed += m.class(j).Weighed()
	}
}

// backlog is the jobs that hold a machine and are going to be reviewed, in passes. What moves
// meanwhile makes another pass follow, so that nobody waits for more than two.
type backlog struct {
	jobs []*Job // in the order of their turns
	next []*Job // those of the next pass, each once in both
}

// left reports whether somebody waits to be reviewed.
func (r *backlog) left() bool { return len(r.jobs)+len(r.next) > 0 }

// add has j reviewed, where it is not going to be.
func (r *backlog) add(j *Job) {
	if p := lookoutOf(j); !p.due {
		p.due = true
		r.next = append(r.next, j)
	}
}

// reviews goes on with the pass, or begins the next where one is due. To put many in
// order is a step's work too.
func (m *Machine) reviews() {
	r := &m.review
	if _, ok := m.e.Body.(MarketSeen); ok && len(r.jobs) == 0 && len(r.next) > manyTurns {
		return // to find so many took its time
	}
	for e := (effort{}); !e.enough(); {
		if len(r.jobs) == 0 {
			r.jobs, r.next = m.turns(r.next), nil
			if len(r.jobs) == 0 || len(r.jobs) > manyTurns {
				return
			}
		}
		j := r.jobs[0]
		r.jobs = r.jobs[1:]
		lookoutOf(j).due = false
		m.reviewWithin(j, &e)
	}
}

// manyTurns is from how many jobs on it takes milliseconds to put them in order.
const manyTurns = 1000

// soon is how near the guard of a job is that is reviewed before the others.
const soon = 10 * time.Minute

// turns is the order in which jobs are reviewed: those whose guard is near first, then
// those side by side that may share a table, then by name.
func (m *Machine) turns(list []*Job) []*Job {
	limit := m.now().Add(soon)
	type turn struct {
		job *Job
		key int64 // below 0: by its guard
		n   int
	}
	turns := make([]turn, len(list))
	for i, j := range list {
		p := lookoutOf(j)
		turns[i] = turn{j, p.kin, i}
		if !p.guard.IsZero() && p.guard.Before(limit) {
			turns[i].key = math.MinInt64 + max(0, p.guard.UnixNano())
		}
	}
	slices.SortFunc(turns, func(a, b turn) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.n, b.n)) })
	for i := range turns {
		list[i] = turns[i].job
	}
	return list
}

// kinOf is near for jobs that may share a table. It decides nothing.
func kinOf(p policy.Progress) int64 {
	k := plan.Kin(p)
	tick := int64(bits.Len64(uint64(max(0, k[0]))))
	return tick<<56 | min(max(0, k[1]), 1<<40-1)<<16 | min(max(0, k[2]), 1<<16-1)
}

// reviewJob looks whether a job that holds a machine must stop, and whether it should be
// elsewhere.
func (m *Machine) reviewJob(j *Job) {
	m.works(j)
	if asked := j.Asked(); asked != nil {
		m.reviewAsked(j, asked)
		return
	}
	a := j.Live()
	if a == nil || a.Disowned() || a.Releasing() {
		return
	}
	timesOf(j).wake = time.Time{} // as in try
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

// bootLimit is when an attempt's program must run.
func (m *Machine) bootLimit(a *Attempt) time.Time {
	return a.Full().Add(m.timingOf(a.Machine()).BootLimit + a.Transfer())
}

// endDrain gives a machine back that takes too long to save, or for which no money is left.
func (m *Machine) endDrain(j *Job, a *Attempt) {
	broke, limited := m.brokeAt(j)
	switch {
	case !m.now().Before(a.DrainBy()):
		m.release(a, "drain_overdue", "")
	case limited && !m.now().Before(broke):
		m.release(a, "drain_unpaid", "")
	default:
		m.wakeAt(j, a.DrainBy())
		if limited {
			m.wakeAt(j, broke)
		}
	}
}

// overdue gives a machine back that takes too long to begin or to end, and reports
// whether there is nothing else to decide.
func (m *Machine) overdue(j *Job, a *Attempt) bool {
	switch {
	case a.Draining() || a.Task() == Ended:
		m.endDrain(j, a)
		return true
	case a.Task() == TaskRunning:
		return false
	}
	limit := m.bootLimit(a)
	if !m.now().Before(limit) {
		if a.Nodes() > 1 {
			m.neverBegan(a, "boot_limit")
		} else {
			m.release(a, "boot_limit", "silent")
		}
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
	case d.Probe != "":
		m.probe(j, d.Probe)
	case d.Take == a.Offer() && m.grows(j, a):
		m.drain(j, a, "grow", "", "")
	case d.Take == a.Offer():
		m.wakeAt(j, d.Again)
		m.rungAt(j)
		if at, ok := m.expiry(a, j); ok && a.Task() == TaskRunning {
			m.wakeAt(j, at)
		}
	case a.Task() == TaskRunning && d.Take == "" && d.Why == plan.OutOfMoney:
		m.drain(j, a, string(ends[d.Why]), Stopped, "")
	case a.Task() == TaskRunning:
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
	margin := j.Terms().Grace + 2*j.SaveCost() + m.timingOf(a.Machine()).Detect
	if o.Reserved.Count > 0 {
		return o.Reserved.Until.Add(-margin), true
	}
	if o.MaxLifetime <= 0 || margin >= o.MaxLifetime/2 { // it would be left as soon as it works
		return time.Time{}, false
	}
	return a.Rented().Add(o.MaxLifetime - margin), true
}

// expires leaves a machine whose lifetime ends, in time to lose no work.
func (m *Machine) expires(j *Job, a *Attempt) bool {
	at, ok := m.expiry(a, j)
	if !ok || a.Task() != TaskRunning || m.now().Before(at) {
		return false
	}
	m.drain(j, a, "lifetime_ends", "", "")
	return true
}

// probe asks about an offer that nobody has tried; the answer brings the job back here.
func (m *Machine) probe(j *Job, offer market.OfferID) {
	m.fact(state.ProbeAsked{Job: j.ID(), Offer: offer})
	m.wakeAt(j, m.now().Add(m.answerTime(offer)))
}

// answerTime is how long an answer to a probe is waited for, and how long it counts.
func (m *Machine) answerTime(offer market.OfferID) time.Duration {
	return max(m.timingAt(offer).Detect, time.Nanosecond)
}

// awaits reports whether j waits for the answer to a probe.
func (m *Machine) awaits(j *Job) bool {
	if j.ProbeOf() == "" || m.now().Sub(j.Probed()) >= m.answerTime(j.ProbeOf()) {
		return false
	}
	l := m.s.Listing(j.ProbeOf())
	return l != nil && (l.Quote().Untried || l.Quote().At.Before(j.Probed()))
}

// limits ends a job whose budget of any kind is used up, and reports whether it did.
func (m *Machine) limits(j *Job, a *Attempt) bool {
	if a.Task() != TaskRunning || a.Draining() {
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
	if m.limits(j, a) || a.Draining() || !a.Noticed().IsZero() || !isSpot(a) || a.Task() != TaskRunning {
		return
	}
	if at, ok := m.progress(j, j.Last().Speed).GuardAt(true); ok {
		m.wakeAt(j, at)
	}
	if m.strained(j, a) {
		m.wakeAt(j, m.now().Add(m.timingOf(a.Machine()).Detect))
	}
}
