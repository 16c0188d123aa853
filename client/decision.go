package client

import (
	"time"

	"scrimp/money"
)

// Decision is one line of `scrimp explain`.
type Decision struct {
	At       time.Time `json:"at"` // wall
	MarketAt time.Time `json:"market_at"`
	Event    uint64    `json:"event"`
	Cause    string    `json:"cause"` // kind of the event that led to it
	Version  string    `json:"version"`
	// Refused is what was said when a launch of the job was refused, where that led to it
	Refused string `json:"refused,omitempty"`
	Choice
}

// Choice is what was taken and why; Take is "" for waiting.
type Choice struct {
	Take     string        `json:"take,omitempty"`
	Rate     money.Rate    `json:"rate,omitempty"`     // of one machine
	Nodes    int           `json:"nodes,omitempty"`    // machines of it that the job takes at once; 0: one
	Variant  string        `json:"variant,omitempty"`  // in which the work is done; "": the job's own way
	Instance string        `json:"instance,omitempty"` // a machine without a task that is taken; "": one is rented
	Why      string        `json:"why"`
	Mode     string        `json:"mode"`
	Slack    time.Duration `json:"slack_ns,omitempty"`
	HasSlack bool          `json:"has_slack,omitempty"`
	Margin   time.Duration `json:"margin_ns,omitempty"` // how much longer the work may take, within the promise
	Speed    float64       `json:"speed,omitempty"`     // of the machine on which the slack is counted; 0: 1
	// Rejected is why each other offer was not taken. Of more than five these are the
	// five that would have been taken next, the cheapest per unit of work first, and
	// Counts says how many were rejected for each reason, in the order of their names.
	Rejected []Rejection   `json:"rejected,omitempty"`
	Counts   []ReasonCount `json:"counts,omitempty"`
	// Probe is an offer to ask about before anything else is done.
	Probe string `json:"probe,omitempty"`
	// Expect is what each choice was expected to cost, where that was weighed.
	Expect *Expect `json:"expect,omitempty"`
	// Budget is set where a budget that comes first kept an option from being taken.
	Budget *BudgetCheck `json:"budget_check,omitempty"`
	// TableSince says since when the job has been decided without its table.
	TableSince time.Time `json:"table_since,omitzero"`
	// Again is when time alone could change the decision; zero: never.
	Again time.Time `json:"again,omitzero"`
}

// Rejection is an offer and why it was not taken.
type Rejection struct {
	Offer  string     `json:"offer"`
	Rate   money.Rate `json:"rate"`
	Priced bool       `json:"priced"`
	Why    string     `json:"why"`
}

// ReasonCount is how many offers were rejected for a reason.
type ReasonCount struct {
	Why   string `json:"why"`
	Count int    `json:"count"`
}

// Expect is what is expected to be paid from now to the end of the job, by what
// is done now, in dollars: a statistic. A choice that cannot be made has no number.
type Expect struct {
	Wait     *float64 `json:"wait_usd"`
	Spot     *float64 `json:"spot_usd"`
	OnDemand *float64 `json:"on_demand_usd"`
	// Up says whether spot can be had; Chance is that of its being there still, or
	// again, at the next poll. Where several zones were weighed it is that of the
	// best of those that can be had, or of any coming back.
	Up     bool    `json:"spot_up"`
	Chance float64 `json:"spot_chance"`
	// NextPoll is the time until then.
	NextPoll time.Duration `json:"look_ns"`
	// Zones is what was expected of each zone's spot, where several were weighed.
	Zones []ZoneExpect `json:"zones,omitempty"`
}

// ZoneExpect is what was expected of a zone's spot.
type ZoneExpect struct {
	Offer string `json:"offer"`
	// USD is what the job is expected to cost from now to its end where it is taken;
	// nil where it cannot be.
	USD *float64 `json:"usd"`
	// Up says whether it was seen to be for sale, Tried whether anybody asked.
	Up    bool `json:"up"`
	Tried bool `json:"tried"`
	// Chance is that of its lasting the next hour where it is up, of its coming back
	// within it where it is down, and of its being up now where nobody asked.
	Chance float64 `json:"chance_hour"`
}

// BudgetCheck is what a budget that comes first made of a decision: what is left of it,
// and what the rest of the work costs on the offer that does it for the least.
type BudgetCheck struct {
	Left  money.Amount `json:"left"`
	Needs money.Amount `json:"needs"`
	On    string       `json:"on"`
}
