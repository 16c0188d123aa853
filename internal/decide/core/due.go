package core

import (
	"time"

	"scrimp/internal/decide/core/lifecycle"
	"scrimp/internal/decide/core/step"
)

// follow does everything else that is due.
func (m *Machine) follow(b Body) {
	m.attempts.Reviews()
	m.jobs.Due()
	m.books.PostHours()
	ended := m.mover.SeatsFreed()
	m.jobs.GuardLimits()
	most := lifecycle.TriesAfter(b)
	if m.jobs.Added != nil && m.jobs.TryNew(m.jobs.Added) {
		most = 0
	}
	m.jobs.Consider(most)
	m.instances.Tend()
	m.instances.TendSeats()
	m.market.SettleReserved(ended)
	m.mover.AsksRound()
	m.members.TendGroups()
	m.jobs.Archives()
}

func (m *Machine) nextWake() time.Time {
	var soonest time.Time
	sooner := func(t time.Time) {
		if !t.IsZero() && (soonest.IsZero() || t.Before(soonest)) {
			soonest = t
		}
	}
	for len(m.step.Wakes) > 0 && !m.step.Wakes[0].At.Equal(step.TimesOf(m.step.Wakes[0].Job).Wake) {
		m.step.Wakes.Pop()
	}
	if len(m.step.Wakes) > 0 {
		sooner(m.step.Wakes[0].At)
	}
	if len(m.step.Hours) > 0 {
		sooner(m.step.Hours[0].At)
	}
	for len(m.step.Archive) > 0 && !m.step.Archive[0].At.Equal(step.TimesOf(m.step.Archive[0].Job).Archive) {
		m.step.Archive.Pop()
	}
	if len(m.step.Archive) > 0 {
		sooner(m.step.Archive[0].At)
	}
	if m.market.Review.Left() {
		sooner(m.step.Now())
	}
	sooner(m.queue.WakeForQuotas())
	sooner(m.instances.WakeForIdle())
	sooner(m.instances.WakeForSeats())
	sooner(m.jobs.WakeForLimits())
	sooner(m.mover.WakeForRound())
	sooner(m.members.WakeForGroups())
	if m.queue.Room() && m.queue.Queue.Untried(m.queue.Blocks()) {
		sooner(m.step.Now().Add(time.Second))
	}
	if m.queue.Room() && m.queue.Queue.Len() > 0 {
		sooner(m.queue.Queue.RetryAt)
	}
	return soonest
}
