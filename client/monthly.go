package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"scrimp/money"
)

// MonthlyCosts says what a month of each kind of workload costs, by the ledger's history.
type MonthlyCosts struct {
	Since     time.Time      `json:"since"`
	Until     time.Time      `json:"until"`
	Months    []CostMonth    `json:"months"`
	Workloads []WorkloadCost `json:"workloads"` // most expensive first
}

// CostMonth is a month of the report. Whole is false for the current month and for the one in which the ledger begins.
type CostMonth struct {
	Month string `json:"month"` // such as 2026-10
	Whole bool   `json:"whole"`
}

// WorkloadCost is the cost of one kind of workload in one currency.
type WorkloadCost struct {
	Workload string         `json:"workload"` // such as training, search or session
	Currency money.Currency `json:"currency"`
	Spent    money.Amount   `json:"spent"`
	Months   []money.Amount `json:"months"`  // of each month of the report
	AMonth   *money.Amount  `json:"a_month"` // mean of the whole months; null: there is none
	Runs     int            `json:"runs"`    // jobs with a cost; a trial of a search and a stage of a pipeline is one

	// Of the runs that began and ended within the report:
	Ended      int           `json:"ended"`
	Succeeded  int           `json:"succeeded"`
	Median     *money.Amount `json:"median_run"`
	P90        *money.Amount `json:"p90_run"`
	PerSuccess *money.Amount `json:"per_successful_run"` // cost of all of them by successful run; null: none

	GPUHours       float64       `json:"gpu_hours"`
	PerGPUHour     *money.Amount `json:"per_gpu_hour"`
	ListPerGPUHour *money.Amount `json:"on_demand_per_gpu_hour"` // of the same machines; null: no on-demand price is known
}

// MonthlyCosts returns what a month of each kind of workload costs, over the current month and those before it. Team
// and project may be "": all.
func (c *Client) MonthlyCosts(ctx context.Context, months int, team, project string) (MonthlyCosts, error) {
	q := url.Values{"months": {strconv.Itoa(months)}, "team": {team}, "project": {project}}
	return ask[MonthlyCosts](ctx, c, http.MethodGet, Path("/v1/costs/monthly", q), nil)
}
