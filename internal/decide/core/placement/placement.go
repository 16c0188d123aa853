// Package placement decides which machines a job should have: the offers for sale to it, the choice among them, its
// bids for reserved offers, and the use of idle machines.
package placement

import (
	"scrimp/money"
	"time"

	"scrimp/internal/decide/core/accounting"
	"scrimp/internal/decide/core/admission"
	"scrimp/internal/decide/core/queue"
	"scrimp/internal/decide/core/step"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/state"
)

// Market is the offers for sale, sorted by the requirements of jobs.
type Market struct {
	*step.Context
	books   *accounting.Books
	decider *Decider
	bids    *Bids

	Planner   *plan.Planner
	OneTiming bool                // all providers have the default timing
	listings  *plan.Listings      // offers in the currency of the configuration
	Needs     map[string]*Need    // by key
	built     []*Need             // needs that have their class
	seq       int                 // number of dropped classes
	Tables    map[string]*Awaited // requested tables, by key
	Prepaid   []*state.Listing    // reserved offers
	stock     stock
	Review    Backlog // jobs with a machine that need a review
}

// Decider decides for jobs.
type Decider struct {
	*step.Context
	books     *accounting.Books
	admission *admission.Admission
	queue     *queue.Quotas
	market    *Market
	bids      *Bids

	stayedAt time.Time // start of the minute in which staying jobs recorded their reasons
	stayed   int       // how many did
}

// Bids are what jobs would pay for reserved offers. Rounds assign them.
type Bids struct {
	*step.Context
	queue   *queue.Quotas
	market  *Market
	decider *Decider

	Rounds Rounds
}

// New returns the parts of this package. The market owns the planner from then on.
func New(b *accounting.Books, a *admission.Admission, q *queue.Quotas, planner *plan.Planner) (*Market, *Decider,
	*Bids) {
	mk := &Market{Context: b.Context, books: b, Planner: planner, Needs: map[string]*Need{}, Tables: map[string]*Awaited{}}
	dc := &Decider{Context: b.Context, books: b, admission: a, queue: q, market: mk}
	rs := &Bids{Context: b.Context, queue: q, market: mk, decider: dc}
	mk.decider, mk.bids, dc.bids = dc, rs, rs
	q.Cheapest = func(j *state.Job) (money.Rate, bool) { return mk.listings.LowestRate(&j.Terms().Need) }
	return mk, dc, rs
}
