package client

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"scrimp/money"
)

// Chargeback is what a month cost each team: by itself, and its share of what no team had by itself. The totals of
// statements and what is left of the pools add up to the total of the month exactly, in each currency.
type Chargeback struct {
	Month      string             `json:"month"`
	Since      time.Time          `json:"since"`
	Until      time.Time          `json:"until"` // the end of the month, or now where it is not over
	Over       bool               `json:"over"`
	Rule       string             `json:"rule"`
	Whole      bool               `json:"whole"` // false: there are teams that you may not see; no totals, no pools
	Totals     []ChargebackTotal  `json:"totals"`
	Pools      []SharedCost       `json:"pools"`
	Statements []ChargebackOfTeam `json:"statements"`
}

// ChargebackTotal is the whole month in one currency.
type ChargebackTotal struct {
	Currency money.Currency `json:"currency"`
	Own      money.Amount   `json:"own"`    // of teams by themselves
	Shared   money.Amount   `json:"shared"` // of pools, as far as teams pay it
	Left     money.Amount   `json:"left"`   // of pools, as far as nobody does
	Total    money.Amount   `json:"total"`
}

// SharedCost is a cost that belongs to no team by itself. Divided and Left add up to the amount.
type SharedCost struct {
	Name     string         `json:"name"`
	Currency money.Currency `json:"currency"`
	Amount   money.Amount   `json:"amount"`
	Divided  money.Amount   `json:"divided"`
	Left     money.Amount   `json:"left"`
	Method   string         `json:"method"`
}

// ChargebackShare is what a team pays of a pool.
type ChargebackShare struct {
	Name   string       `json:"name"`
	Amount money.Amount `json:"amount"`
	Method string       `json:"method"`
}

// ChargebackOfTeam is the statement of a team in one currency. What is null is unknown.
type ChargebackOfTeam struct {
	Team     string               `json:"team"`
	Currency money.Currency       `json:"currency"`
	Own      money.Amount         `json:"own"`
	Uses     map[Use]money.Amount `json:"uses"` // of Own
	Shares   []ChargebackShare    `json:"shares"`
	Shared   money.Amount         `json:"shared"`
	Total    money.Amount         `json:"total"`

	Accrued   money.Amount `json:"accrued"` // of Own: no bill of the machine has come
	Billed    money.Amount `json:"billed"`  // of Own: the bill of the machine has come
	Estimated money.Amount `json:"estimated"`

	OnDemand *money.Amount `json:"on_demand"` // the machine time whose on-demand price is known, at that price
	Saved    *money.Amount `json:"saved"`     // how much less it cost
	Unlisted money.Amount  `json:"unlisted"`  // cost of machine time whose on-demand price is unknown

	Runs             int           `json:"runs"` // jobs that cost something in the month
	Succeeded        int           `json:"succeeded"`
	PerRun           *money.Amount `json:"per_run"`
	PerSuccess       *money.Amount `json:"per_successful_run"` // the cost of all runs, over those that succeeded
	GPUHours         float64       `json:"gpu_hours"`
	PerGPUHour       *money.Amount `json:"per_gpu_hour"`
	LostToInterrupts money.Amount  `json:"lost_to_interruptions"`
	PerEpoch         *money.Amount `json:"per_epoch"` // of runs that ended in the month and reported epochs
	PerMillion       *money.Amount `json:"per_million_samples"`
}

// Fee is a shared cost that no machine has: a subscription, a surcharge.
type Fee struct {
	Name     string         `json:"name"`
	Amount   money.Amount   `json:"amount"` // a month; 0 removes the fee
	Currency money.Currency `json:"currency"`
	Since    string         `json:"since,omitempty"` // first month, such as 2026-10; "": from the beginning
	Until    string         `json:"until,omitempty"` // last month; "": for ever
}

// Chargeback divides what a month cost among teams. The rule is proportional, even or fixed; shares are TEAM=WEIGHT,
// for fixed alone.
func (c *Client) Chargeback(ctx context.Context, month, rule string, shares []string) (Chargeback, error) {
	q := url.Values{"month": {month}, "rule": {rule}}
	if len(shares) > 0 {
		q["share"] = shares
	}
	return ask[Chargeback](ctx, c, http.MethodGet, "/v1/chargeback?"+q.Encode(), nil)
}

// Fees lists the fees.
func (c *Client) Fees(ctx context.Context) ([]Fee, error) {
	return ask[[]Fee](ctx, c, http.MethodGet, "/v1/chargeback/fees", nil)
}

// SetFee makes, changes or removes a fee from its first month on.
func (c *Client) SetFee(ctx context.Context, f Fee) error {
	return c.Do(ctx, http.MethodPut, "/v1/chargeback/fees", f, nil)
}

// NameColumns is how many columns of a Table have names, which a spreadsheet may take for something else.
const NameColumns = 4

// Table is the chargeback as rows, the header first. The columns own, shared and total add up: a pool takes back in
// shared what teams pay of it.
func (v Chargeback) Table() [][]string {
	rows := [][]string{{"month", "team", "currency", "method", "own", "shared", "total", "useful", "lost", "start_up",
		"idle", "open", "accrued", "billed", "estimated", "on_demand", "saved", "runs", "succeeded", "per_run",
		"per_successful_run", "gpu_hours", "per_gpu_hour", "lost_to_interruptions", "per_epoch", "per_million_samples"}}
	width := len(rows[0])
	add := func(cells ...string) { rows = append(rows, append(cells, make([]string, width-len(cells))...)) }
	known := func(a *money.Amount) string {
		if a == nil {
			return ""
		}
		return a.String()
	}
	for _, s := range v.Statements {
		method := ""
		for _, p := range s.Shares {
			method = cmp.Or(method, p.Method)
		}
		add(v.Month, s.Team, string(s.Currency), cmp.Or(method, v.Rule), s.Own.String(), s.Shared.String(),
			s.Total.String(), s.Uses[Useful].String(), s.Uses[Lost].String(), s.Uses[StartUp].String(),
			s.Uses[Idle].String(), s.Uses[Open].String(), s.Accrued.String(), s.Billed.String(), s.Estimated.String(),
			known(s.OnDemand), known(s.Saved), strconv.Itoa(s.Runs), strconv.Itoa(s.Succeeded), known(s.PerRun),
			known(s.PerSuccess), strconv.FormatFloat(s.GPUHours, 'f', -1, 64), known(s.PerGPUHour),
			s.LostToInterrupts.String(), known(s.PerEpoch), known(s.PerMillion))
	}
	for _, p := range v.Pools {
		add(v.Month, p.Name, string(p.Currency), p.Method, p.Amount.String(), p.Divided.Neg().String(), p.Left.String())
	}
	return rows
}
