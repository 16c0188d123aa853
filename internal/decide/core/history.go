package core

import (
	"slices"
	"time"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
)

// history keeps the sums of those jobs by whose they are and by the hour in which their
// last machine ended, so that a million of them are not gone through. It is made again
// at a restart, as usage is.
type history struct {
	sums *ledger.Calendar[HistoryOwner, History]
	jobs map[int64]map[*Job]struct{} // by hour
	were []record                    // before this step
	// archived are those of the sums that no job here stands for, by hour.
	archived map[int64]map[HistoryOwner]History
}

func newHistory() history {
	return history{sums: ledger.NewCalendar[HistoryOwner](History.Plus), jobs: map[int64]map[*Job]struct{}{},
		archived: map[int64]map[HistoryOwner]History{}}
}

// record is what HistoryOf says of a job.
type record struct {
	owner   HistoryOwner
	history History
	last    time.Time
	ok      bool
}

func recordOf(j *Job) (p record) {
	p.owner, p.history, p.last, p.ok = HistoryOf(j)
	return p
}

// rests reports whether j may be in the past: it had a machine, and none that still costs.
func rests(j *Job) bool { return len(j.Attempts()) > 0 && !j.Costs() }

// pass has j in the past as it is now, where it was in there as was; nil: it was not. A
// job that waits and was tried without result is as it was.
func (m *Machine) pass(j *Job, was *record) {
	if was == nil && !rests(j) {
		return
	}
	is := recordOf(j)
	if was != nil && *was == is {
		return
	}
	if was != nil && was.ok {
		hour := ledger.HourOf(was.last)
		delete(m.history.jobs[hour], j)
		m.history.sums.Add(hour, was.owner, was.history.Minus())
	}
	if is.ok {
		hour := ledger.HourOf(is.last)
		in := m.history.jobs[hour]
		if in == nil {
			in = map[*Job]struct{}{}
			m.history.jobs[hour] = in
		}
		in[j] = struct{}{}
		m.history.sums.Add(hour, is.owner, is.history)
	}
}

// History calls f with what those jobs come to whose last machine ended at since or later,
// in parts that add up, in no order; of the zero time with all. Archived jobs count with
// their hour, and with their day where that is far back.
func (m *Machine) History(since time.Time, f func(HistoryOwner, History)) {
	if since.IsZero() {
		m.history.sums.All(f)
		return
	}
	hour := ledger.HourOf(since)
	for j := range m.history.jobs[hour] {
		if w, p, last, ok := HistoryOf(j); ok && !last.Before(since) {
			f(w, p)
		}
	}
	for w, p := range m.history.archived[hour] {
		f(w, p)
	}
	m.history.sums.Since(hour+1, f)
}

// HistoryJobs calls f with each of those jobs that are not archived, in no order.
func (m *Machine) HistoryJobs(since time.Time, f func(*Job, History, money.Currency)) {
	for hour, jobs := range m.history.jobs {
		if !since.IsZero() && hour < ledger.HourOf(since) {
			continue
		}
		for j := range jobs {
			if w, p, last, ok := HistoryOf(j); ok && !last.Before(since) {
				f(j, p, w.Currency)
			}
		}
	}
}

// price keeps beside a job that has succeeded what its work would have cost
// on-demand, at the prices of the moment at which its last machine was gone.
func (m *Machine) price(j *Job) {
	if j.OnDemand() != nil || j.State() != Succeeded || j.Costs() {
		return
	}
	if p, ok := m.onDemand(j); ok {
		m.fact(state.JobPriced{Job: j.ID(), OnDemand: p.Cost, Offer: p.Offer})
	}
}

// CostOnDemand is what the useful work of j would cost on the cheapest on-demand machine that
// could do it the way it was done, and on which offer: at the prices of its end, or of now where
// it has not ended; false where none is for sale.
func (m *Machine) CostOnDemand(j *Job) (plan.OnDemand, bool) {
	if cost := j.OnDemand(); cost != nil {
		return plan.OnDemand{Offer: j.OnDemandOffer(), Cost: *cost}, true
	}
	return m.onDemand(j)
}

func (m *Machine) onDemand(j *Job) (plan.OnDemand, bool) {
	w := plan.Work{Span: j.SavedWork(), Nodes: j.Terms().Most(), Currency: m.cfg().Currency,
		Unsaving: !j.Terms().Saves && !j.HasSaved()}
	for _, a := range j.Attempts() {
		if a.Started().IsZero() {
			continue
		}
		if len(w.Ways) == 0 {
			w.StartUp = a.Started().Sub(a.From())
		}
		if !slices.Contains(w.Ways, a.Variant()) {
			w.Ways = append(w.Ways, a.Variant())
		}
	}
	return j.Terms().Need.OnDemand(w, func(yield func(*plan.Listing) bool) {
		for _, l := range m.s.Sale() {
			if !yield(l.Plan()) {
				return
			}
		}
	})
}
