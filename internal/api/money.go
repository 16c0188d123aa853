package api

import (
	"time"

	"scrimp/internal/ledger"
	"scrimp/internal/money"
)

// What was spent, and what may be:
//
//	GET /v1/costs?by=team&since=7d -> Costs

// Costs is what was spent until a moment, the seconds that run included. Times are market time.
type Costs struct {
	By    string     `json:"by"`    // team, project, user, kind, job or tag:KEY
	Since *time.Time `json:"since"` // null: from the beginning
	Until time.Time  `json:"until"`
	Lines []CostLine `json:"lines"` // the dearest first
}

// CostLine is the cost of one name in one currency: what was booked in the span,
// and of what runs what is not booked yet. Uses add up to Spent; within
// a span Open may be below zero: what was booked before it became useful or lost in it.
type CostLine struct {
	Name     string                      `json:"name"` // "": belongs to none
	Currency money.Currency              `json:"currency"`
	Spent    money.Amount                `json:"spent"`
	Uses     map[ledger.Use]money.Amount `json:"uses"`
	Jobs     int                         `json:"jobs"` // that held a machine
	Live     int                         `json:"live"` // of them, not over yet

	// Of the jobs that succeeded and were submitted within the span:
	Estimated *money.Amount `json:"estimated"` // expected cost at the first decision; null: of none
	Actual    *money.Amount `json:"actual"`    // what these have cost
	Foreseen  int           `json:"foreseen"`  // how many these are
	OnDemand  *money.Amount `json:"on_demand"` // what the useful work would have cost there; null: nobody can say
	Saved     *money.Amount `json:"saved"`     // against that; below zero: it cost more
	Compared  int           `json:"compared"`  // how many these are
}
