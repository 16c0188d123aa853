package plan

import (
	"slices"
	"time"

	"scrimp/internal/decide/policy"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// Decision is the offer taken and why; an empty Take means to wait.
type Decision struct {
	Take     market.OfferID `json:"take,omitempty"`
	Rate     money.Rate     `json:"rate,omitempty"`     // of one machine
	Reads    money.Amount   `json:"reads,omitzero"`     // for reading the inputs from elsewhere, on each machine
	Nodes    int            `json:"nodes,omitempty"`    // machines that the job takes at once; 0: one
	Variant  string         `json:"variant,omitempty"`  // variant of the work; empty: the job's own way
	Instance string         `json:"instance,omitempty"` // existing idle machine to take; empty: rent one
	Gets     Gets           `json:"gets,omitzero"`      // what the job has of a range of processors or accelerators
	Why      Reason         `json:"why"`
	Mode     policy.Mode    `json:"mode"`
	Slack    time.Duration  `json:"slack_ns,omitempty"`
	HasSlack bool           `json:"has_slack,omitempty"`
	Margin   time.Duration  `json:"margin_ns,omitempty"` // how much longer the work may take, within the promise
	Speed    float64        `json:"speed,omitempty"`     // speed of the machine that the slack is computed for; 0: 1
	// Rejected is why each other offer was not taken. If there are more than five, Rejected has the five that would
	// have been taken next, the cheapest per unit of work first, and Counts has the number of offers per reason,
	// sorted by reason.
	Rejected []Rejection   `json:"rejected,omitempty"`
	Counts   []ReasonCount `json:"counts,omitempty"`
	// Unschedulable is set for a waiting job if the market has nothing that meets its requirements. It then holds
	// for every job of its class, until the market changes.
	Unschedulable bool `json:"-"`
	// Retry is when the first of the offers that refused a launch may be tried again, for a waiting job; zero: none
	// refused.
	Retry time.Time `json:"-"`
	// Probe is an offer to probe before anything else is done.
	Probe market.OfferID `json:"probe,omitempty"`
	// Expect is the expected cost of each choice, if that was weighed.
	Expect *Expect `json:"expect,omitempty"`
	// Budget is set if a binding budget ruled an option out.
	Budget *BudgetCheck `json:"budget_check,omitempty"`
	// Table is a missing table that the planner needs to weigh the job's future: see Planner.Adopt. It is requested
	// but not recorded, because each one would add a KB to many decisions.
	Table *TableRequest `json:"-"`
	// TableSince is the time since which the job has been decided without its table.
	TableSince time.Time `json:"table_since,omitzero"`
	// Again is when the passing of time alone could change the decision; zero: never.
	Again time.Time `json:"again,omitzero"`
}

// Equal reports whether d and o are the same decision with equal figures. Expect, Budget and Table are equal only
// if they are the same pointers.
func (d *Decision) Equal(o *Decision) bool {
	if !slices.Equal(d.Rejected, o.Rejected) || !slices.Equal(d.Counts, o.Counts) {
		return false
	}
	return d.figures() == o.figures() && d.Expect == o.Expect && d.Budget == o.Budget && d.Table == o.Table
}

// figures are the fields of a decision that are neither lists nor pointers.
type figures struct {
	take, probe              market.OfferID
	rate                     money.Rate
	reads                    money.Amount
	nodes                    int
	gets                     Gets
	variant, instance        string
	why                      Reason
	mode                     policy.Mode
	slack, margin            time.Duration
	hasSlack, unschedulable  bool
	speed                    float64
	retry, tableSince, again time.Time
}

func (d *Decision) figures() figures {
	return figures{d.Take, d.Probe, d.Rate, d.Reads, d.Nodes, d.Gets,
		d.Variant, d.Instance, d.Why, d.Mode, d.Slack, d.Margin,
		d.HasSlack,
		d.Unschedulable, d.Speed, d.Retry, d.TableSince, d.Again}
}

// Rejection is an offer and the reason why it was not taken.
type Rejection struct {
	Offer  market.OfferID `json:"offer"`
	Rate   money.Rate     `json:"rate"`
	Priced bool           `json:"priced"`
	Why    Reason         `json:"why"`
	Reads  money.Amount   `json:"reads,omitzero"` // for reading the inputs from elsewhere, on each machine
}

// ReasonCount is the number of offers rejected for a reason.
type ReasonCount struct {
	Why   Reason `json:"why"`
	Count int    `json:"count"`
}

// mostShown is the number of rejected offers that a decision names.
const mostShown = 5
