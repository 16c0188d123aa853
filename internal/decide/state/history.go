package state

import (
	"cmp"
	"time"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/money"
)

// History sums up the jobs that had a machine and have none now.
type History struct {
	Jobs int
	Open int // jobs among them that have not ended and wait for another machine

	// The other fields count only jobs that succeeded.
	Foreseen          int          // jobs whose first decision estimated their cost
	Estimated, Actual money.Amount // without the tax, credits and commitments of bills, which no estimate contains
	Compared          int          // jobs for which a suitable on-demand machine was for sale when they ended
	OnDemand, Saved   money.Amount
}

// Plus returns the sum of p and q.
func (p History) Plus(q History) History {
	return History{
		Jobs: p.Jobs + q.Jobs, Open: p.Open + q.Open,
		Foreseen: p.Foreseen + q.Foreseen, Estimated: p.Estimated.Add(q.Estimated), Actual: p.Actual.Add(q.Actual),
		Compared: p.Compared + q.Compared, OnDemand: p.OnDemand.Add(q.OnDemand), Saved: p.Saved.Add(q.Saved),
	}
}

// Minus negates p, so that Plus subtracts it.
func (p History) Minus() History {
	return History{
		Jobs: -p.Jobs, Open: -p.Open, Foreseen: -p.Foreseen, Estimated: p.Estimated.Neg(), Actual: p.Actual.Neg(),
		Compared: -p.Compared, OnDemand: p.OnDemand.Neg(), Saved: p.Saved.Neg(),
	}
}

// HistoryOwner is the owner of a job in the history, with the currency of its newest machine.
type HistoryOwner struct {
	ledger.Dimensions
	Currency money.Currency
}

// OwnerOf returns the team, project, user, kind and tags under which the history counts j.
func OwnerOf(j *Job) ledger.Dimensions {
	o := j.Terms().Owner
	return ledger.Dimensions{Team: o.Team, Project: o.Project, User: j.User(),
		Kind: cmp.Or(j.Terms().JobKind, "experiment"),
		Tags: ledger.TagText(o.Labels())}
}

// HistoryOf returns the history of j alone, and when its last machine ended. ok is false if j never had a machine
// or one still costs something.
func HistoryOf(j *Job) (w HistoryOwner, p History, last time.Time, ok bool) {
	if len(j.Attempts()) == 0 || j.Costs() {
		return w, p, last, false
	}
	for _, a := range j.Attempts() {
		if a.Instance() != "" {
			ok, w.Currency = true, a.Currency()
			if a.Until().After(last) {
				last = a.Until()
			}
		}
	}
	if !ok {
		return w, p, last, false
	}
	w.Dimensions, p.Jobs = OwnerOf(j), 1
	if !j.State().Over() {
		p.Open = 1
	}
	if j.State() == Succeeded {
		cost := j.Spent(last)
		for _, a := range j.Attempts() {
			cost = cost.Sub(a.Extras())
		}
		if j.Foreseen() != nil {
			p.Foreseen, p.Estimated, p.Actual = 1, *j.Foreseen(), cost
		}
		if j.OnDemand() != nil {
			p.Compared, p.OnDemand, p.Saved = 1, *j.OnDemand(), j.OnDemand().Sub(cost)
		}
	}
	return w, p, last, true
}
