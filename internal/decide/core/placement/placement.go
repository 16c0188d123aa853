// Package placement decides which machines a job is to have: what is for sale to it, what of it is taken, what it bids
// for what is reserved, and which warm machine does.
package placement

import (
	"time"

	"scrimp/internal/decide/core/admission"
	"scrimp/internal/decide/core/books"
	"scrimp/internal/decide/core/queue"
	"scrimp/internal/decide/core/step"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/state"
)

// Market is what is for sale, sorted for what jobs ask for.
type Market struct {
	*step.Context
	books   *books.Books
	decider *Decider
	bids    *Bids

	Planner   *plan.Planner
	OneTiming bool                // all providers have the timing of those that are not named
	listings  *plan.Listings      // what is for sale in the currency of the configuration
	Needs     map[string]*Need    // by key
	built     []*Need             // those that have their class
	seq       int                 // how many classes were dropped
	Tables    map[string]*Awaited // that were asked for, by key
	Prepaid   []*state.Listing    // what is for sale and reserved
	Review    Backlog             // of the jobs that hold a machine
}

// Decider takes the decisions for jobs.
type Decider struct {
	*step.Context
	books     *books.Books
	admission *admission.Admission
	queue     *queue.Quotas
	market    *Market
	bids      *Bids

	stayedAt time.Time // begin of the minute in which jobs that stay recorded why
	stayed   int       // how many did
}

// Bids are what jobs would give for what is reserved. Rounds share it out.
type Bids struct {
	*step.Context
	queue   *queue.Quotas
	market  *Market
	decider *Decider

	Rounds Rounds
}

// New are the parts over a planner, which is the market's own from now on.
func New(b *books.Books, a *admission.Admission, q *queue.Quotas, planner *plan.Planner) (*Market, *Decider, *Bids) {
	mk := &Market{Context: b.Context, books: b, Planner: planner, Needs: map[string]*Need{}, Tables: map[string]*Awaited{}}
	dc := &Decider{Context: b.Context, books: b, admission: a, queue: q, market: mk}
	rs := &Bids{Context: b.Context, queue: q, market: mk, decider: dc}
	mk.decider, mk.bids, dc.bids = dc, rs, rs
	return mk, dc, rs
}
