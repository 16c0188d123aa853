package accounting

import (
	"slices"
	"time"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
)

// Past keeps the sums of jobs without a machine, by owner and by the hour in which their last machine ended, so that no
// query visits a million of them. It is recomputed at a restart, like usage.
type Past struct {
	Sums *ledger.Calendar[state.HistoryOwner, state.History]
	jobs map[int64]map[*state.Job]struct{} // by hour
	Were []Record                          // records before this step
	// archived has the part of the sums that comes from archived jobs, by hour.
	archived map[int64]map[state.HistoryOwner]state.History
}

// NewPast returns a Past without jobs.
func NewPast() Past {
	return Past{Sums: ledger.NewCalendar[state.HistoryOwner](state.History.Plus),
		jobs:     map[int64]map[*state.Job]struct{}{},
		archived: map[int64]map[state.HistoryOwner]state.History{}}
}

// Record is the result of state.HistoryOf for a job.
type Record struct {
	owner   state.HistoryOwner
	history state.History
	last    time.Time
	ok      bool
}

// RecordOf returns the record of j.
func RecordOf(j *state.Job) (p Record) {
	p.owner, p.history, p.last, p.ok = state.HistoryOf(j)
	return p
}

// Rests reports whether j may be in the past: it had a machine, and none still costs anything.
func Rests(j *state.Job) bool { return len(j.Attempts()) > 0 && !j.Costs() }

// Pass puts j into the past as it is now, in place of the record was (nil: none). A job that waits and was tried
// without success is unchanged.
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

// History calls f with sums, in parts that add up and in no order, over the jobs whose last machine ended at since
// or later; the zero time covers all. Archived jobs count by their hour, or by their day if that is long ago.
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

// HistoryJobs calls f with each of those jobs that is not archived, in no order.
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

// Price records, for a job that has succeeded, what its work would have cost on-demand at the prices when its last
// machine ended.
func (bk *Books) Price(j *state.Job) {
	if j.OnDemand() != nil || j.State() != state.Succeeded || j.Costs() {
		return
	}
	if p, ok := bk.onDemand(j); ok {
		bk.Fact(state.JobPriced{Job: j.ID(), OnDemand: p.Cost, Offer: p.Offer})
	}
}

// CostOnDemand returns what the useful work of j would cost on the cheapest on-demand machine that could do it the
// way it was done, and the offer: at the prices of its end, or at current prices if it has not ended. ok is false
// if none is for sale.
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

// Archives moves a job from the visited jobs to the archived sums.
func (h *Past) Archives(p Record, j *state.Job) {
	if p.ok {
		hour := ledger.HourOf(p.last)
		delete(h.jobs[hour], j)
		h.AddArchived(hour, p.owner, p.history)
	}
}

// Rehydrates undoes Archives.
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

// AddArchived adds to the archived sums of an hour.
func (h *Past) AddArchived(hour int64, w state.HistoryOwner, p state.History) {
	if h.archived[hour] == nil {
		h.archived[hour] = map[state.HistoryOwner]state.History{}
	}
	h.archived[hour][w] = h.archived[hour][w].Plus(p)
}
