package books

import (
	"slices"
	"time"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
)

// Past keeps the sums of those jobs by whose they are and by the hour in which their
// last machine ended, so that a million of them are not gone through. It is made again
// at a restart, as usage is.
type Past struct {
	Sums *ledger.Calendar[state.HistoryOwner, state.History]
	jobs map[int64]map[*state.Job]struct{} // by hour
	Were []Record                          // before this step
	// archived are those of the sums that no job here stands for, by hour.
	archived map[int64]map[state.HistoryOwner]state.History
}

// NewPast is a past without jobs.
func NewPast() Past {
	return Past{Sums: ledger.NewCalendar[state.HistoryOwner](state.History.Plus),
		jobs:     map[int64]map[*state.Job]struct{}{},
		archived: map[int64]map[state.HistoryOwner]state.History{}}
}

// Record is what HistoryOf says of a job.
type Record struct {
	owner   state.HistoryOwner
	history state.History
	last    time.Time
	ok      bool
}

// RecordOf is what j has come to.
func RecordOf(j *state.Job) (p Record) {
	p.owner, p.history, p.last, p.ok = state.HistoryOf(j)
	return p
}

// Rests reports whether j may be in the past: it had a machine, and none that still costs.
func Rests(j *state.Job) bool { return len(j.Attempts()) > 0 && !j.Costs() }

// Pass has j in the past as it is now, where it was in there as was; nil: it was not. A
// job that waits and was tried without result is as it was.
func (bk *Books) Pass(j *state.Job, was *Record) {
	if was == nil && !Rests(j) {
		return
	}
	is := RecordOf(j)
	if was != nil && *was == is {
		return
	}
	if was != nil && was.ok {
		hour := ledger.HourOf(was.last)
		delete(bk.Past.jobs[hour], j)
		bk.Past.Sums.Add(hour, was.owner, was.history.Minus())
	}
	if is.ok {
		hour := ledger.HourOf(is.last)
		in := bk.Past.jobs[hour]
		if in == nil {
			in = map[*state.Job]struct{}{}
			bk.Past.jobs[hour] = in
		}
		in[j] = struct{}{}
		bk.Past.Sums.Add(hour, is.owner, is.history)
	}
}

// History calls f with what those jobs come to whose last machine ended at since or later,
// in parts that add up, in no order; of the zero time with all. Archived jobs count with
// their hour, and with their day where that is far back.
func (bk *Books) History(since time.Time, f func(state.HistoryOwner, state.History)) {
	if since.IsZero() {
		bk.Past.Sums.All(f)
		return
	}
	hour := ledger.HourOf(since)
	for j := range bk.Past.jobs[hour] {
		if w, p, last, ok := state.HistoryOf(j); ok && !last.Before(since) {
			f(w, p)
		}
	}
	for w, p := range bk.Past.archived[hour] {
		f(w, p)
	}
	bk.Past.Sums.Since(hour+1, f)
}

// HistoryJobs calls f with each of those jobs that are not archived, in no order.
func (bk *Books) HistoryJobs(since time.Time, f func(*state.Job, state.History, money.Currency)) {
	for hour, jobs := range bk.Past.jobs {
		if !since.IsZero() && hour < ledger.HourOf(since) {
			continue
		}
		for j := range jobs {
			if w, p, last, ok := state.HistoryOf(j); ok && !last.Before(since) {
				f(j, p, w.Currency)
			}
		}
	}
}

// Price keeps beside a job that has succeeded what its work would have cost
// on-demand, at the prices of the moment at which its last machine was gone.
func (bk *Books) Price(j *state.Job) {
	if j.OnDemand() != nil || j.State() != state.Succeeded || j.Costs() {
		return
	}
	if p, ok := bk.onDemand(j); ok {
		bk.Fact(state.JobPriced{Job: j.ID(), OnDemand: p.Cost, Offer: p.Offer})
	}
}

// CostOnDemand is what the useful work of j would cost on the cheapest on-demand machine that
// could do it the way it was done, and on which offer: at the prices of its end, or of now where
// it has not ended; false where none is for sale.
func (bk *Books) CostOnDemand(j *state.Job) (plan.OnDemand, bool) {
	if cost := j.OnDemand(); cost != nil {
		return plan.OnDemand{Offer: j.OnDemandOffer(), Cost: *cost}, true
	}
	return bk.onDemand(j)
}

func (bk *Books) onDemand(j *state.Job) (plan.OnDemand, bool) {
	w := plan.Work{Span: j.SavedWork(), Nodes: j.Terms().Most(), Currency: bk.Config().Currency,
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
		for _, l := range bk.State.Sale() {
			if !yield(l.Plan()) {
				return
			}
		}
	})
}

// Archives takes a job from those that are gone through.
func (h *Past) Archives(p Record, j *state.Job) {
	if p.ok {
		hour := ledger.HourOf(p.last)
		delete(h.jobs[hour], j)
		h.AddArchived(hour, p.owner, p.history)
	}
}

// Rehydrates puts it back.
func (h *Past) Rehydrates(p Record, j *state.Job) {
	if !p.ok {
		return
	}
	hour := ledger.HourOf(p.last)
	if h.jobs[hour] == nil {
		h.jobs[hour] = map[*state.Job]struct{}{}
	}
	h.jobs[hour][j] = struct{}{}
	h.AddArchived(hour, p.owner, p.history.Minus())
}

// AddArchived adds to what archived jobs come to in an hour.
func (h *Past) AddArchived(hour int64, w state.HistoryOwner, p state.History) {
	if h.archived[hour] == nil {
		h.archived[hour] = map[state.HistoryOwner]state.History{}
	}
	h.archived[hour][w] = h.archived[hour][w].Plus(p)
}
