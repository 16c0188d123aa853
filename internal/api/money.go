package api

import (
	"time"

	"scrimp/internal/budget"
	"scrimp/internal/ledger"
	"scrimp/internal/money"
)

// What was spent, and what may be:
//
//	GET /v1/costs?by=team&since=7d -> Costs
//	GET /v1/budgets                -> Budgets
//	PUT /v1/budgets      SetBudget -> 204

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

	// Of the jobs that succeeded and whose last machine ended within the span:
	Estimated *money.Amount `json:"estimated"` // expected cost at the first decision; null: of none
	Actual    *money.Amount `json:"actual"`    // what these have cost
	Foreseen  int           `json:"foreseen"`  // how many these are
	OnDemand  *money.Amount `json:"on_demand"` // what the useful work would have cost there; null: nobody can say
	Saved     *money.Amount `json:"saved"`     // against that; below zero: it cost more
	Compared  int           `json:"compared"`  // how many these are
}

// Budgets are the limits that the caller may know of, and the tags that a job must have.
type Budgets struct {
	Limits   []BudgetLine   `json:"limits"`
	Tags     budget.Tags    `json:"tags"` // values that are allowed, by tag; none: any
	Currency money.Currency `json:"currency"`
}

// BudgetLine is a limit, what is used of it in the window that is open, and
// when it will be reached, market time.
type BudgetLine struct {
	Limit budget.Limit `json:"limit"`
	Use   budget.Use   `json:"use"`
	Burn  money.Rate   `json:"burn"` // dollars an hour
	// as expected of the jobs that run and wait, or, where it is reached already, now; null: not by these in this window
	Breach *time.Time `json:"breach"`
	// AtRate is when it would be reached if as much ran on as runs now; null: not in this window.
	AtRate *time.Time `json:"at_rate"`
	// Outlook is what the jobs that run and wait are expected to make of it; null: dollars are not limited.
	Outlook *budget.Outlook `json:"outlook"`
}

// SetBudget makes or changes a limit, removes one by name, or requires a tag. One of them is given.
type SetBudget struct {
	Limit  *budget.Limit `json:"limit,omitempty"`
	Remove string        `json:"remove,omitempty"` // SCOPE/WINDOW
	Tag    string        `json:"tag,omitempty"`
	Values []string      `json:"values,omitempty"` // that the tag may have; none: any
	Free   bool          `json:"free,omitempty"`   // the tag is not required any more
}

// BudgetWarning is what the webhook of a limit gets.
type BudgetWarning struct {
	Budget  string       `json:"budget"`
	Share   float64      `json:"share"` // that spending has reached; at 1 jobs are saved and stopped
	Spent   money.Amount `json:"spent"`
	Held    money.Amount `json:"held"`
	Dollars money.Amount `json:"dollars"`
	// Breach is when the limit is expected to be reached, market time, with what chance and
	// by which jobs; left out of a warning that a share is reached.
	Breach *time.Time       `json:"breach,omitempty"`
	Chance float64          `json:"chance,omitempty"`
	Jobs   []budget.Spender `json:"jobs,omitempty"`
}
