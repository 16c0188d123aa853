package core

import (
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/fair"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/plan/assign"
	"scrimp/internal/decide/state"
	"scrimp/internal/market"
	"scrimp/internal/work/groups"
	"scrimp/money"
)

// Accounts is books.Books.Accounts.
func (m *Machine) Accounts(t time.Time) []Account { return m.books.Accounts(t) }

// Count is books.Books.Count.
func (m *Machine) Count(sees func(team string) bool) (jobs, open int) { return m.books.Count(sees) }

// Pending is step.Context.Pending.
func (m *Machine) Pending() []Action { return m.step.Pending() }

// Admit is admission.Admission.Admit.
func (m *Machine) Admit(events []Event) error { return m.admission.Admit(events) }

// Refuses is admission.Admission.Refuses.
func (m *Machine) Refuses(e Event) *Refusal { return m.admission.Refuses(e) }

// Stays is placement.Market.Stays.
func (m *Machine) Stays(i *state.Instance) bool { return m.market.Stays(i) }

// Tasks is placement.Market.Tasks.
func (m *Machine) Tasks(i *state.Instance) []*Task { return m.market.Tasks(i) }

// Missing is lifecycle.Jobs.Missing.
func (m *Machine) Missing(events ...Event) (jobs []string) { return m.jobs.Missing(events...) }

// ArchivedAt is lifecycle.Jobs.ArchivedAt.
func (m *Machine) ArchivedAt() uint64 { return m.jobs.ArchivedAt() }

// MissingGroup is members.Members.MissingGroup.
func (m *Machine) MissingGroup(b Body) string { return m.members.MissingGroup(b) }

// RoundInputs is placement.Bids.RoundInputs.
func (m *Machine) RoundInputs() assign.Inputs { return m.bids.RoundInputs() }

// TakesBill is books.Books.TakesBill.
func (m *Machine) TakesBill(instance, launch string) bool { return m.books.TakesBill(instance, launch) }

// GPUTime is members.Members.GPUTime.
func (m *Machine) GPUTime(g *state.Group, t time.Time) (used time.Duration, gpus int) {
	return m.members.GPUTime(g, t)
}

// Interval is placement.Decider.Interval.
func (m *Machine) Interval(j *Job) time.Duration { return m.decider.Interval(j) }

// Unheard is lifecycle.Instances.Unheard.
func (m *Machine) Unheard(r Rented) bool { return m.instances.Unheard(r) }

// Awaits is lifecycle.Instances.Awaits.
func (m *Machine) Awaits(instance string) bool { return m.instances.Awaits(instance) }

// Knows is lifecycle.Instances.Knows.
func (m *Machine) Knows(instance string) bool { return m.instances.Knows(instance) }

// Break is step.Context.Break.
func (m *Machine) Break(f Faults) { m.step.Break(f) }

// Frees is placement.Market.Frees.
func (m *Machine) Frees(o *market.Offer, t time.Time) (used int, at []time.Time) {
	return m.market.Frees(o, t)
}

// History is books.Books.History.
func (m *Machine) History(since time.Time, f func(HistoryOwner, History)) { m.books.History(since, f) }

// HistoryJobs is books.Books.HistoryJobs.
func (m *Machine) HistoryJobs(since time.Time, f func(*Job, History, money.Currency)) {
	m.books.HistoryJobs(since, f)
}

// CostOnDemand is books.Books.CostOnDemand.
func (m *Machine) CostOnDemand(j *Job) (plan.OnDemand, bool) { return m.books.CostOnDemand(j) }

// GroupSnapshot is members.Members.GroupSnapshot.
func (m *Machine) GroupSnapshot(name string) (s groups.Snapshot, ok bool) {
	return m.members.GroupSnapshot(name)
}

// GroupSpent is members.Members.GroupSpent.
func (m *Machine) GroupSpent(g *state.Group, t time.Time) money.Amount {
	return m.members.GroupSpent(g, t)
}

// Courses is placement.Decider.Courses.
func (m *Machine) Courses(t time.Time, most int) (list []budget.Course, places int, beyond bool) {
	return m.decider.Courses(t, most)
}

// Exhausted is lifecycle.Jobs.Exhausted.
func (m *Machine) Exhausted(j *Job, t Terms) plan.Reason { return m.jobs.Exhausted(j, t) }

// Unused is placement.Decider.Unused.
func (m *Machine) Unused(since, until time.Time) (list []Unused) {
	return m.decider.Unused(since, until)
}

// WorstOf is admission.Admission.WorstOf.
func (m *Machine) WorstOf(t state.GroupTerms) money.Amount { return m.admission.WorstOf(t) }

// LeastOfTrial is members.Members.LeastOfTrial.
func (m *Machine) LeastOfTrial(t *state.Terms) money.Amount { return m.members.LeastOfTrial(t) }

// Runs is members.Members.Runs.
func (m *Machine) Runs(g *state.Group) []*state.Group { return m.members.Runs(g) }

// TooLate is lifecycle.Jobs.TooLate.
func (m *Machine) TooLate(j *Job, t time.Time) (by time.Duration, ok bool) {
	return m.jobs.TooLate(j, t)
}

// Adopt is placement.Market.Adopt.
func (m *Machine) Adopt(t plan.Table) { m.market.Adopt(t) }

// Prepare is admission.Admission.Prepare.
func (m *Machine) Prepare(rules *budget.Rules, most int) (more bool) {
	return m.admission.Prepare(rules, most)
}

// Books is admission.Admission.Books.
func (m *Machine) Books(t time.Time) (b budget.Accounts, burn map[string]money.Rate) {
	return m.admission.Books(t)
}

// Full is queue.Quotas.Full.
func (m *Machine) Full() (running, most int, full bool) { return m.queue.Full() }

// Shares returns the places of the teams at t, which must not be before the last event; ok is false if teams do not
// share the queue.
func (m *Machine) Shares(t time.Time) (list []fair.Share, ok bool) {
	if !m.queue.Shared() {
		return nil, false
	}
	s := m.queue.Shares(t)
	return s.List(), true
}

// Waits is queue.Quotas.Waits.
func (m *Machine) Waits(j *Job) (limit, detail string, ok bool) { return m.queue.Waits(j) }

// Waiting is queue.Quotas.Waiting.
func (m *Machine) Waiting() map[string]int { return m.queue.Waiting() }

// Cleans is lifecycle.Instances.Cleans.
func (m *Machine) Cleans(instance string) bool { return m.instances.Cleans(instance) }

// IdleAfter is lifecycle.Instances.IdleAfter.
func (m *Machine) IdleAfter(j *Job, t time.Time) *money.Amount { return m.instances.IdleAfter(j, t) }

// OnWork is step.Context.OnWork.
func (m *Machine) OnWork(f func(*Job)) { m.step.OnWork(f) }
