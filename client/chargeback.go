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

// Chargeback divides the costs of a month among teams: their own costs, and their shares of costs that belong to no
// team. The totals of the statements and what is left of the pools add up exactly to the total of the month, in each
// currency.
type Chargeback struct {
	Month      string             `json:"month"`
	Since      time.Time          `json:"since"`
	Until      time.Time          `json:"until"` // end of the month, or now if it has not ended
	Over       bool               `json:"over"`
	Rule       string             `json:"rule"`
	Whole      bool               `json:"whole"` // false: you may not see all teams, so totals and pools are missing
	Totals     []ChargebackTotal  `json:"totals"`
	Pools      []SharedCost       `json:"pools"`
	Statements []ChargebackOfTeam `json:"statements"`
}

// ChargebackTotal is the sum of the month in one currency.
type ChargebackTotal struct {
	Currency money.Currency `json:"currency"`
	Own      money.Amount   `json:"own"`    // the teams' own costs
	Shared   money.Amount   `json:"shared"` // the part of the pools that teams pay
	Left     money.Amount   `json:"left"`   // the part of the pools that no team pays
	Total    money.Amount   `json:"total"`
}

// SharedCost is a pool: a cost that belongs to no single team. Divided and Left add up to Amount.
type SharedCost struct {
	Name     string         `json:"name"`
	Currency money.Currency `json:"currency"`
	Amount   money.Amount   `json:"amount"`
	Divided  money.Amount   `json:"divided"`
	Left     money.Amount   `json:"left"`
	Method   string         `json:"method"`
}

// ChargebackShare is a team's share of a pool.
type ChargebackShare struct {
	Name   string       `json:"name"`
	Amount money.Amount `json:"amount"`
	Method string       `json:"method"`
}

// ChargebackOfTeam is the statement of a team in one currency. Null is unknown.
type ChargebackOfTeam struct {
	Team     string               `json:"team"`
	Currency money.Currency       `json:"currency"`
	Own      money.Amount         `json:"own"`
	Uses     map[Use]money.Amount `json:"uses"` // parts of Own
	Shares   []ChargebackShare    `json:"shares"`
	Shared   money.Amount         `json:"shared"`
	Total    money.Amount         `json:"total"`

	Accrued   money.Amount `json:"accrued"` // part of Own without the machine's bill
	Billed    money.Amount `json:"billed"`  // part of Own with the machine's bill
	Estimated money.Amount `json:"estimated"`

	OnDemand *money.Amount `json:"on_demand"` // on-demand price of the machine time for which it is known
	Saved    *money.Amount `json:"saved"`     // OnDemand less what that time cost
	Unlisted money.Amount  `json:"unlisted"`  // cost of machine time without a known on-demand price

	Runs             int           `json:"runs"` // jobs with costs in the month
	Succeeded        int           `json:"succeeded"`
	PerRun           *money.Amount `json:"per_run"`
	PerSuccess       *money.Amount `json:"per_successful_run"` // cost of all runs per successful run
	GPUHours         float64       `json:"gpu_hours"`
	PerGPUHour       *money.Amount `json:"per_gpu_hour"`
	LostToInterrupts money.Amount  `json:"lost_to_interruptions"`
	PerEpoch         *money.Amount `json:"per_epoch"` // of runs that ended in the month and reported epochs
	PerMillion       *money.Amount `json:"per_million_samples"`
}

// Fee is a shared cost that belongs to no machine, such as a subscription or a surcharge.
type Fee struct {
	Name     string         `json:"name"`
	Amount   money.Amount   `json:"amount"` // per month; 0 removes the fee
	Currency money.Currency `json:"currency"`
	Since    string         `json:"since,omitempty"` // first month, such as 2026-10; "": from the beginning
	Until    string         `json:"until,omitempty"` // last month; "": for ever
	// Spread is the rule that divides the fee: proportional, even or fixed; "": the rule of the statement. Shares are
	// TEAM=WEIGHT, for fixed only.
	Spread string   `json:"spread,omitempty"`
	Shares []string `json:"shares,omitempty"`
}

// Chargeback divides the costs of a month among teams. The rule is proportional, even or fixed; shares are
// TEAM=WEIGHT, for the rule fixed only.
func (c *Client) Chargeback(ctx context.Context, month, rule string, shares []string) (Chargeback, error) {
	q := url.Values{"month": {month}, "rule": {rule}}
	if len(shares) > 0 {
		q["share"] = shares
	}
	return ask[Chargeback](ctx, c, http.MethodGet, Path("/v1/chargeback", q), nil)
}

// Fees lists the fees.
func (c *Client) Fees(ctx context.Context) ([]Fee, error) {
	return ask[[]Fee](ctx, c, http.MethodGet, "/v1/chargeback/fees", nil)
}

// SetFee creates, changes or removes a fee from its first month on.
func (c *Client) SetFee(ctx context.Context, f Fee) error {
	return c.Do(ctx, http.MethodPut, "/v1/chargeback/fees", f, nil)
}

// NameColumns is the number of columns of a Table that hold names, which a spreadsheet could take for formulas.
const NameColumns = 4

// Table returns the chargeback as rows, header first. The columns own, shared and total add up: the row of a pool
// has in shared the negative of what teams pay of it.
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
			if method = cmp.Or(method, p.Method); method != p.Method {
				method = "mixed"
				break
			}
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
