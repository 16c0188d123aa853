package core

import (
	"time"

	"scrimp/internal/decide/core/lifecycle"
	"scrimp/internal/decide/core/step"
)

// follow handles everything else that is due.
func (m *Machine) follow(b Body) {
	m.attempts.Reviews()
	m.jobs.Due()
	m.books.PostHours()
	freed := m.mover.SeatsFreed()
	m.instances.KeepsEnded()
	m.jobs.GuardLimits()
	most := lifecycle.TriesAfter(b)
	if m.jobs.Added != nil && m.jobs.TryNew(m.jobs.Added) {
		most = 0
	}
	m.preempter.Claims()
	m.jobs.Consider(most)
	m.preempter.Preempt()
	m.instances.Tend()
	m.instances.TendSeats()
	m.market.SettleReserved(freed)
	m.mover.AsksRound()
	m.members.TendGroups()
	m.jobs.Archives()
	m.members.Archives()
}

func (m *Machine) nextWake() time.Time {
	soonest := sooner(m.nextOfJobs(), m.nextTry())
	soonest = sooner(soonest, m.queue.WakeForQuotas())
	soonest = sooner(soonest, m.instances.WakeForIdle())
	soonest = sooner(soonest, m.instances.WakeForSeats())
	soonest = sooner(soonest, m.instances.WakeForKeeps())
	soonest = sooner(soonest, m.jobs.WakeForLimits())
	soonest = sooner(soonest, m.mover.WakeForRound())
	soonest = sooner(soonest, m.members.WakeForGroups())
	soonest = sooner(soonest, m.members.WakeForArchive())
	if m.market.Review.Left() || m.market.Unsettled() {
		soonest = sooner(soonest, m.step.Now())
	}
	return soonest
}

// nextOfJobs is the first time that a job is due for a review, an hourly posting or the archive; zero: none.
func (m *Machine) nextOfJobs() (soonest time.Time) {
	for len(m.step.Wakes) > 0 && !m.step.Wakes[0].At.Equal(step.TimesOf(m.step.Wakes[0].Job).Wake) {
		m.step.Wakes.Pop()
	}
	if len(m.step.Wakes) > 0 {
		soonest = sooner(soonest, m.step.Wakes[0].At)
	}
	if len(m.step.Hours) > 0 {
		soonest = sooner(soonest, m.step.Hours[0].At)
	}
	for len(m.step.Archive) > 0 && !m.step.Archive[0].At.Equal(step.TimesOf(m.step.Archive[0].Job).Archive) {
		m.step.Archive.Pop()
	}
	if len(m.step.Archive) > 0 {
		soonest = sooner(soonest, m.step.Archive[0].At)
	}
	return soonest
}

// nextTry is when the core tries again to place a queued job; zero: it waits for something else to change.
func (m *Machine) nextTry() (soonest time.Time) {
	if !m.queue.Room() {
		return soonest
	}
	if m.queue.Queue.Untried(m.queue.Blocks()) {
		soonest = m.step.Now().Add(time.Second)
	}
	if m.queue.Queue.Len() > 0 {
		soonest = sooner(soonest, m.queue.Queue.RetryAt)
	}
	return soonest
}

// sooner is the earlier of two times, where zero is none.
func sooner(a, b time.Time) time.Time {
	switch {
	case b.IsZero():
		return a
	case a.IsZero() || b.Before(a):
		return b
	}
	return a
}
