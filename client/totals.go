package client

import "scrimp/money"

// JobTotals sums jobs by a property.
type JobTotals struct {
	By string `json:"by"` // team, project, state, engine, user or tag:KEY
	// Lines have the sums by value of the property and currency: those first whose jobs spent most, at most 1000.
	Lines []JobTotal `json:"lines"`
	More  int        `json:"more"`  // lines that are left out
	Total []JobTotal `json:"total"` // sums of all lines, for each currency, without a name
}

// JobTotal sums jobs in one currency.
type JobTotal struct {
	Name     string         `json:"name"` // value of the property; (none): the jobs have none
	Currency money.Currency `json:"currency"`
	Jobs     int            `json:"jobs"`
	States   map[string]int `json:"states"` // number of jobs by state
	Spent    money.Amount   `json:"spent"`  // as of the jobs
	Rate     money.Rate     `json:"rate"`   // an hour, of the machines that jobs hold now
	// WillCost sums what the jobs still cost, besides Spent: the 10 %, and the 90 %. null: no job has a forecast.
	WillCost *[2]float64 `json:"will_cost"`
	Foreseen int         `json:"foreseen"` // jobs that WillCost sums
	Unknown  int         `json:"unknown"`  // jobs that are not over and have no forecast
	// Bounded is how many of the Unknown have a budget, and AtMost the sum of what is left of it; null: none has one.
	Bounded int           `json:"bounded"`
	AtMost  *money.Amount `json:"at_most"`
}

// Live is the number of jobs that are not over.
func (t JobTotal) Live() int { return t.Foreseen + t.Unknown }
