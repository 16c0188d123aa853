package core

import (
	"time"
)

// tries is how many queued jobs one step tries, at most.
const tries = 64

// triesAfter is the same for one event. A submission has one job tried, and what
// is merely put on record none: of ten thousand a second each would else try 64
// that were tried without success. Others follow when something happens, at the latest
// with the next tick.
func triesAfter(b Body) int {
	switch b.(type) {
	case JobSubmitted:
		return 1
	case Audited, IdentityChanged, Rehydrated:
		return 0
	}
	return tries
}

// follow does what is due besides what happened.
func (m *Machine) follow(b Body) {
	m.reviews()
	m.due()
	m.postHours()
	ended := m.seatsFreed()
	m.guardLimits()
	most := triesAfter(b)
	if m.added != nil && m.tryNew(m.added) {
		most = 0
	}
	m.consider(most)
	m.tend()
	m.tendSeats()
	m.settleReserved(ended)
	m.asksRound()
	m.tendGroups()
	m.archives()
}

// due looks at jobs whose time has come, those that wait longest first, at as many as a
// step may: after a restart all that run are due at once.
func (m *Machine) due() {
	for e := (effort{}); !e.enough() && len(m.wakes) > 0 && !m.wakes[0].at.After(m.now()); {
		w := m.wakes.pop()
		p := timesOf(w.job)
		if !w.at.Equal(p.wake) || w.job.State().Over() && !w.job.Holds() {
			continue
		}
		p.wake = time.Time{}
		m.works(w.job)
		switch {
		case w.job.State() == Held:
			m.finish(w.job, Cancelled, ApprovalExpired, w.job.Detail())
		case w.job.State() == Queued && len(w.job.Waits()) > 0:
			if _, spent := over(w.job, m.now()); spent {
				m.try(w.job)
			}
		case w.job.State() == Queued && at(w.job).waits:
			m.dueInQueue(w.job)
		default:
			m.reviewWithin(w.job, &e)
		}
	}
}

func (m *Machine) dueInQueue(j *Job) {
	_, spent := over(j, m.now())
	switch {
	case spent && !m.awaits(j):
		m.queue.remove(j)
		m.try(j)
	case m.room(): // in its turn, which may not come yet
		m.queue.remove(j)
		m.queue.add(j)
		m.overAt(j)
	default:
		m.overAt(j)
	}
}

// tryNew tries a job that has just come where those of its class are passed over, so
// that it says why it waits.
func (m *Machine) tryNew(j *Job) bool {
	if !at(j).waits || !at(j).group.equivalence.unschedulable || !m.room() || m.blocks()(j).by != nil {
		return false
	}
	m.queue.remove(j)
	m.try(j)
	return true
}

// consider lets queued jobs have the free places, most urgent first.
func (m *Machine) consider(most int) {
	for n := most; n > 0; n-- {
		if !m.room() {
			return
		}
		blocks := m.blocks()
		j, ok := m.queue.next(blocks)
		switch {
		case !ok:
			return
		case blocks(j).never:
			m.queue.push(j, overQuota)
		case m.awaits(j):
			m.queue.tried(j)
		default:
			m.try(j)
		}
	}
}

func (m *Machine) nextWake() time.Time {
	var soonest time.Time
	sooner := func(t time.Time) {
		if !t.IsZero() && (soonest.IsZero() || t.Before(soonest)) {
			soonest = t
		}
	}
	for len(m.wakes) > 0 && !m.wakes[0].at.Equal(timesOf(m.wakes[0].job).wake) {
		m.wakes.pop()
	}
	if len(m.wakes) > 0 {
		sooner(m.wakes[0].at)
	}
	if len(m.hours) > 0 {
		sooner(m.hours[0].at)
	}
	for len(m.archive) > 0 && !m.archive[0].at.Equal(timesOf(m.archive[0].job).archive) {
		m.archive.pop()
	}
	if len(m.archive) > 0 {
		sooner(m.archive[0].at)
	}
	if m.review.left() {
		sooner(m.now())
	}
	sooner(m.wakeForQuotas())
	sooner(m.wakeForIdle())
	sooner(m.wakeForSeats())
	sooner(m.wakeForLimits())
	sooner(m.wakeForRound())
	sooner(m.wakeForGroups())
	if m.room() && m.queue.untried(m.blocks()) {
		sooner(m.now().Add(time.Second))
	}
	if m.room() && m.queue.Len() > 0 {
		sooner(m.queue.retryAt)
	}
	return soonest
}

// wakeAt asks for a review of j at t, or earlier where that was asked before.
func (m *Machine) wakeAt(j *Job, t time.Time) {
	if t.IsZero() {
		return
	}
	if !t.After(m.now()) {
		t = m.now().Add(time.Nanosecond)
	}
	if p := timesOf(j); p.wake.IsZero() || t.Before(p.wake) {
		p.wake = t
		m.wakes.push(wake{t, j})
	}
}
