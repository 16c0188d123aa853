package client

import (
	"time"

	"scrimp/money"
)

// Decision is a line of `scrimp explain`.
type Decision struct {
	At       time.Time `json:"at"` // wall time
	MarketAt time.Time `json:"market_at"`
	Event    uint64    `json:"event"`
	Cause    string    `json:"cause"` // kind of the event that caused it
	Version  string    `json:"version"`
	// Refused is why a launch of the job was refused, if that caused the decision.
	Refused string `json:"refused,omitempty"`
	Choice
}

// Gets is the number of processors, or of accelerators, that a job with a range of them has on a machine, and why.
type Gets struct {
	Field string `json:"field"` // cpus or accelerator
	Units int    `json:"units"`
	Least int    `json:"least"`          // lower end of the range
	Most  int    `json:"most,omitempty"` // upper end; 0: none
	// Faster is the speed of the work relative to the lower end; 1 if Units is Least, or if nothing shows a gain.
	Faster float64 `json:"faster"`
	// Shown is set if work.parallel or measured runs show that more of them are faster.
	Shown bool `json:"shown,omitempty"`
}

// Choice is the option taken and the reason; an empty Take means to wait.
type Choice struct {
	Take     string       `json:"take,omitempty"`
	Rate     money.Rate   `json:"rate,omitempty"`     // per hour of one machine
	Reads    money.Amount `json:"reads,omitzero"`     // of each machine, for reading inputs from another region
	Nodes    int          `json:"nodes,omitempty"`    // machines that the job takes at once; 0: one
	Variant  string       `json:"variant,omitempty"`  // variant of the work; "": the job's own
	Instance string       `json:"instance,omitempty"` // an idle machine to reuse; "": rent one
	// Gets is what the job has of a range of processors or accelerators; without one it is absent.
	Gets     Gets          `json:"gets,omitzero"`
	Why      string        `json:"why"`
	Mode     string        `json:"mode"`
	Slack    time.Duration `json:"slack_ns,omitempty"`
	HasSlack bool          `json:"has_slack,omitempty"`
	Margin   time.Duration `json:"margin_ns,omitempty"` // how much longer the work may take, within the promise
	Speed    float64       `json:"speed,omitempty"`     // speed of the machine for which the slack is computed; 0: 1
	// Rejected lists the other offers with the reasons. If there are more than five, it has the next best five,
	// cheapest per unit of work first, and Counts has the number of offers per reason, in order of the reasons'
	// names.
	Rejected []Rejection   `json:"rejected,omitempty"`
	Counts   []ReasonCount `json:"counts,omitempty"`
	// Probe is an offer to probe before anything else.
	Probe string `json:"probe,omitempty"`
	// Expect compares the expected costs of the choices, if they were weighed.
	Expect *Expect `json:"expect,omitempty"`
	// Budget is set if a budget ruled out an option.
	Budget *BudgetCheck `json:"budget_check,omitempty"`
	// TableSince is the time since which the job's decisions lack its table.
	TableSince time.Time `json:"table_since,omitzero"`
	// Again is when the passage of time alone could change the decision; zero: never.
	Again time.Time `json:"again,omitzero"`
}

// Rejection is an offer with the reason against it.
type Rejection struct {
	Offer  string     `json:"offer"`
	Rate   money.Rate `json:"rate"`
	Priced bool       `json:"priced"`
	Why    string     `json:"why"`
	// Reads is what each machine pays for reading the job's inputs from another region.
	Reads money.Amount `json:"reads,omitzero"`
}

// ReasonCount is the number of offers rejected for a reason.
type ReasonCount struct {
	Why   string `json:"why"`
	Count int    `json:"count"`
}

// Expect holds the expected cost from now to the end of the job for each choice, in dollars: a statistic. An
// impossible choice has no number.
type Expect struct {
	Wait     *float64 `json:"wait_usd"`
	Spot     *float64 `json:"spot_usd"`
	OnDemand *float64 `json:"on_demand_usd"`
	// Up reports whether spot is available. Chance is the probability that it still is, or is again, at the next
	// poll. If several zones were weighed, it is that of the best available zone, or of any zone's return.
	Up     bool    `json:"spot_up"`
	Chance float64 `json:"spot_chance"`
	// NextPoll is the time until the next poll.
	NextPoll time.Duration `json:"look_ns"`
	// Zones lists the expectations for each zone's spot, if several were weighed.
	Zones []ZoneExpect `json:"zones,omitempty"`
}

// ZoneExpect is the expectation for a zone's spot.
type ZoneExpect struct {
	Offer string `json:"offer"`
	// USD is the expected cost from now to the end of the job with this choice; nil if it is impossible.
	USD *float64 `json:"usd"`
	// Up reports whether the offer was seen for sale, Tried whether it was probed.
	Up    bool `json:"up"`
	Tried bool `json:"tried"`
	// Chance is a probability: if up, that the offer stays up for an hour; if down, that it returns within one; if
	// never probed, that it is up now.
	Chance float64 `json:"chance_hour"`
}

// BudgetCheck compares what is left of a budget with the lowest cost of the remaining work.
type BudgetCheck struct {
	Left  money.Amount `json:"left"`
	Needs money.Amount `json:"needs"`
	On    string       `json:"on"`
}
