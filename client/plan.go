package client

import "scrimp/money"

// PlanRequest asks for the plan of a job that is not submitted.
type PlanRequest struct {
	Spec Raw `json:"spec"` // the job file, as in Submission
}

// Plan is the result of simulating a job on the market: its cost, its finish, and the reasons. Amounts are estimates;
// unknown values are null.
type Plan struct {
	Name     string        `json:"name"`
	Feasible bool          `json:"feasible"`
	Known    bool          `json:"known"`               // the amount of work is known
	WorkS    *float64      `json:"work_s"`              // of an uninterrupted run at speed 1, in market seconds
	WorkFrom string        `json:"work_from,omitempty"` // source of the work; empty for the job file
	Market   string        `json:"market"`
	Speed    float64       `json:"market_speed"`
	Runs     int           `json:"runs"` // number of simulated runs; 0 for none
	Take     string        `json:"take"`
	Why      string        `json:"why"`
	Gets     *Gets         `json:"gets,omitempty"` // what the job has of a range of processors or accelerators
	Rejected []PlanRefusal `json:"rejected"`
	CostUSD  *[3]float64   `json:"cost_usd"` // 10 %, median, 90 %
	// MarginalUSD is CostUSD without the part of own machines that is paid anyway. Decisions use it.
	MarginalUSD *[3]float64 `json:"marginal_usd"`
	// ReadsUSD is what reading the job's inputs from another region costs besides CostUSD, with the same quantiles; null
	// if they are not read from another region, or the cost is unknown.
	ReadsUSD    *[3]float64 `json:"reads_usd,omitempty"`
	FinishS     *[3]float64 `json:"finish_s"`      // quantiles as CostUSD, in market seconds
	InTime      *float64    `json:"odds"`          // of meeting the deadline
	Interrupts  *float64    `json:"interruptions"` // expected number
	Nodes       int         `json:"nodes"`         // machines at once, at the start
	OnDemandUSD *float64    `json:"on_demand_usd"` // cost of the same work on-demand
	// OnDemandOffer is the offer for OnDemandUSD; empty if no suitable one is for sale.
	OnDemandOffer string   `json:"on_demand_offer"`
	WorstUSD      *float64 `json:"worst_usd"` // highest cost within the budget
	// DeadlineS is the span until the deadline in market seconds; null without one.
	DeadlineS *float64 `json:"deadline_s,omitempty"`
	// WallClockS and GPUHours are limits of the job's own besides its dollars; null without one.
	WallClockS *float64 `json:"wall_clock_s,omitempty"` // from the first machine on
	GPUHours   *float64 `json:"gpu_hours,omitempty"`
	Window     string   `json:"window,omitempty"`  // hours of the day in which the job may run
	Session    string   `json:"session,omitempty"` // shell or notebook; empty for other jobs
	Reasons    []string `json:"reasons"`
	Unsold     bool     `json:"unsold,omitempty"` // no offer has the accelerator
	RateUSD    *float64 `json:"rate_usd"`         // hourly price of one machine of the chosen offer
	// WaitsFor is the reserved offer that the job waits for. InUse of its machines are in use, and BeginS is the
	// expected wait in market seconds, also until the window opens; null if unknown.
	WaitsFor string   `json:"waits_for,omitempty"`
	InUse    int      `json:"in_use,omitempty"`
	BeginS   *float64 `json:"begin_s,omitempty"`
	// Engines holds the plan on each engine separately, if the job may run on several.
	Engines []EnginePlan `json:"engines,omitempty"`
	// Array holds the totals if the plan is for a member of an array; null otherwise.
	Array *ArrayPlan `json:"array,omitempty"`
}

// ArrayPlan holds an array's totals. null means unknown.
type ArrayPlan struct {
	Members int           `json:"members"`
	AtOnce  int           `json:"at_once"`
	CostUSD *float64      `json:"cost_usd"` // median of a member times the number of members
	Budget  *money.Amount `json:"budget"`   // of all members together
}

// EnginePlan is the plan of a job on one engine or zone. null means unknown or impossible there.
type EnginePlan struct {
	Engine      string      `json:"engine"`
	Feasible    bool        `json:"feasible"`
	Why         string      `json:"why"`             // reason of the first decision
	Error       string      `json:"error,omitempty"` // the engine does not answer and has no offers
	CostUSD     *[3]float64 `json:"cost_usd"`
	MarginalUSD *[3]float64 `json:"marginal_usd"`
	FinishS     *[3]float64 `json:"finish_s"`
	InTime      *float64    `json:"odds"`
	WaitsFor    string      `json:"waits_for,omitempty"`
	BeginS      *float64    `json:"begin_s,omitempty"`
}

// PlanRefusal is an offer that a plan does not take, with the reason. null means unknown.
type PlanRefusal struct {
	Offer   string   `json:"offer"`
	Why     string   `json:"why"`
	RateUSD *float64 `json:"rate_usd"` // hourly price of one machine
	// WorkS is the time that the work takes there without interruptions, in market seconds, and WorkUSD its price on
	// all machines of the job.
	WorkS   *float64 `json:"work_s"`
	WorkUSD *float64 `json:"work_usd"`
	// ReadsUSD is what reading the job's inputs from another region costs on all machines of the job, once.
	ReadsUSD *float64 `json:"reads_usd,omitempty"`
}
