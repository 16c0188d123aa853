package client

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"scrimp/money"
)

// MonthReview is a month on one page. Null is unknown.
type MonthReview struct {
	Month string    `json:"month"`
	Since time.Time `json:"since"`
	Until time.Time `json:"until"` // end of the month, or now if it is not over
	Over  bool      `json:"over"`
	Whole bool      `json:"whole"` // false: you may not see all teams, and the figures are of those that you may
	// Sums are by currency.
	Sums []ReviewSum `json:"sums"`
	// Budgets are the limits of dollars per month.
	Budgets   []ReviewBudget `json:"budgets"`
	Anomalies []Anomaly      `json:"anomalies"` // of the month, the dearest first; null: it is too long ago
	Proposals []Proposal     `json:"proposals"` // proposed or decided in the month, newest first
	// Taken lists the recommendations that were taken and whose 30 days of measurement touch the month, newest first.
	Taken []TakenRecommendation `json:"taken"`
	// Accuracy is how far the estimates of the runs that ended in the month were from what came out, and Furthest has
	// the runs whose dollars were furthest from it, at most three.
	Accuracy []EstimateError `json:"accuracy"`
	Furthest []EstimatePair  `json:"furthest"`
	// Maturity marks the capabilities of FinOps by what the month shows.
	Maturity []ReviewMark `json:"maturity"`

	Actions []ReviewAction `json:"actions"` // at most three
}

// ReviewSum is what the month cost in one currency.
type ReviewSum struct {
	Currency money.Currency       `json:"currency"`
	Spent    money.Amount         `json:"spent"` // of the ledger; fees are not in it
	Uses     map[Use]money.Amount `json:"uses"`  // useful, lost, start-up, idle and open: they add up to Spent
	// Extras are the tax, credits and adjustments of bills that Spent contains.
	Extras   map[string]money.Amount `json:"bill_extras"`
	Teams    map[string]money.Amount `json:"teams"`    // they add up to Spent; "" is of no team
	Budgeted money.Amount            `json:"budgeted"` // the part of Spent that a limit of dollars per month counts
	Jobs     int                     `json:"jobs"`     // jobs with costs
	Losing   int                     `json:"jobs_that_lost_work"`
	Top      []ReviewJob             `json:"top"`  // at most ten
	Rest     money.Amount            `json:"rest"` // all other cost, so that Top and Rest add up to Spent
	Coverage []ReviewCoverage        `json:"coverage"`

	// LostToInterruptions is the lost work of interrupted attempts; null if some cost has no team.
	LostToInterruptions *money.Amount `json:"lost_to_interruptions"`
	// Of the jobs that succeeded and whose last machine ended in the month: their expected cost at the first decision
	// and their actual one, without the tax and credits of bills.
	Foreseen  int           `json:"foreseen"`
	Estimated *money.Amount `json:"estimated"`
	Actual    *money.Amount `json:"actual"`
}

// ReviewJob is a job with its cost in the month.
type ReviewJob struct {
	Job  string       `json:"job"`
	Team string       `json:"team"`
	Cost money.Amount `json:"cost"`
	Lost money.Amount `json:"lost"`
}

// ReviewCoverage is how much of the spending has a tag. Share is null if nothing was spent.
type ReviewCoverage struct {
	Tag    string       `json:"tag"`
	Amount money.Amount `json:"amount"`
	Share  *float64     `json:"share"`
}

// ReviewBudget is a limit of dollars per month with what its scope spent in this month.
type ReviewBudget struct {
	Scope    string         `json:"scope"`
	Currency money.Currency `json:"currency"`
	Limit    money.Amount   `json:"limit"`
	Spent    money.Amount   `json:"spent"`
	// Forecast is the expected spending by the end of the month, and Chance that of reaching the limit; null in a
	// month that is over.
	Forecast *money.Amount `json:"forecast"`
	Chance   *float64      `json:"chance"`
}

// ReviewMark says how mature a capability of FinOps is: crawl, walk or run. Spending of several currencies has a mark
// in each.
type ReviewMark struct {
	Capability string         `json:"capability"`
	Currency   money.Currency `json:"currency,omitempty"` // "": it is not about an amount
	Mark       string         `json:"mark"`               // "": unknown
	Share      *float64       `json:"share"`              // what the mark rests on; null: unknown
	Evidence   string         `json:"evidence"`
	Rule       string         `json:"rule"` // the shares of each mark
}

// ReviewAction is something to do next. Amount is a saving a month, or the cost of an anomaly so far.
type ReviewAction struct {
	What     string         `json:"what"`
	Command  string         `json:"command"`
	Amount   money.Amount   `json:"amount"`
	Currency money.Currency `json:"currency"`
}

// EstimateError summarizes the errors of the estimates for one kind of run, as fractions.
type EstimateError struct {
	What   string   `json:"what"` // throughput, hours or dollars
	Kind   string   `json:"kind"` // "all" covers every run
	Runs   int      `json:"runs"`
	Median float64  `json:"median"` // median relative error
	Mean   float64  `json:"mean"`
	Bias   float64  `json:"bias"`         // median of expected / actual - 1; above 0 means overestimated
	Within *float64 `json:"within_share"` // share of the stated ranges that held; null if none was stated
}

// EstimatePair compares one estimate made at the submission of a run with its measured value.
type EstimatePair struct {
	Job      string    `json:"job"`
	Name     string    `json:"name"`
	Finished time.Time `json:"finished"`
	What     string    `json:"what"` // throughput, hours or dollars
	Kind     string    `json:"kind"` // model family for throughput, otherwise kind of the job
	Unit     string    `json:"unit"`
	Expected float64   `json:"expected"`
	Actual   float64   `json:"actual"`
	Within   *bool     `json:"within"` // whether Actual lies in the stated range; null without one
}

// MonthReview reviews the spending of a month, such as 2026-10; of this month if it is empty.
func (c *Client) MonthReview(ctx context.Context, month string) (MonthReview, error) {
	return ask[MonthReview](ctx, c, http.MethodGet, Path("/v1/review", url.Values{"month": {month}}), nil)
}
