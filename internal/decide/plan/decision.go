package plan

import (
	"slices"
	"time"

	"scrimp/internal/decide/policy"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// Decision is what was taken and why; Take is "" for waiting.
type Decision struct {
	Take     market.OfferID `json:"take,omitempty"`
	Rate     money.Rate     `json:"rate,omitempty"`     // of one machine
	Nodes    int            `json:"nodes,omitempty"`    // machines of it that the job takes at once; 0: one
	Variant  string         `json:"variant,omitempty"`  // in which the work is done; "": the job's own way
	Instance string         `json:"instance,omitempty"` // a machine without a task that is taken; "": one is rented
	Why      Reason         `json:"why"`
	Mode     policy.Mode    `json:"mode"`
	Slack    time.Duration  `json:"slack_ns,omitempty"`
	HasSlack bool           `json:"has_slack,omitempty"`
	Margin   time.Duration  `json:"margin_ns,omitempty"` // how much longer the work may take, within the promise
	Speed    float64        `json:"speed,omitempty"`     // of the machine on which the slack is counted; 0: 1
	// Rejected is why each other offer was not taken. Of more than five these are the
	// five that would have been taken next, the cheapest per unit of work first, and
	// Counts says how many were rejected for each reason, in the order of their names.
	Rejected []Rejection   `json:"rejected,omitempty"`
	Counts   []ReasonCount `json:"counts,omitempty"`
	// Unschedulable says of a job that waits that the market has nothing for what it asks:
	// so it is for every job of its class, until the market changes.
	Unschedulable bool `json:"-"`
	// Retry is when the first of the offers may be asked again that refused a launch, for
	// a job that waits; zero: none did.
	Retry time.Time `json:"-"`
	// Probe is an offer to ask about before anything else is done.
	Probe market.OfferID `json:"probe,omitempty"`
	// Expect is what each choice was expected to cost, where that was weighed.
	Expect *Expect `json:"expect,omitempty"`
	// Budget is set where a budget that comes first kept an option from being taken.
	Budget *BudgetCheck `json:"budget_check,omitempty"`
	// Table is what the job's future is weighed with and the planner lacks: see
	// Planner.Adopt. It is asked for, and not recorded: a KB for each of many decisions.
	Table *TableRequest `json:"-"`
	// TableSince says since when the job has been decided without its table.
	TableSince time.Time `json:"table_since,omitzero"`
	// Again is when time alone could change the decision; zero: never.
	Again time.Time `json:"again,omitzero"`
}

// Equal reports whether d and o are the same decision, with equal figures. What was weighed
// (Expect, Budget, Table) is equal only where it is the same value.
func (d *Decision) Equal(o *Decision) bool {
	if !slices.Equal(d.Rejected, o.Rejected) || !slices.Equal(d.Counts, o.Counts) {
		return false
	}
	return d.figures() == o.figures() && d.Expect == o.Expect && d.Budget == o.Budget && d.Table == o.Table
}

// figures are what of a decision is no list.
type figures struct {
	take, probe              market.OfferID
	rate                     money.Rate
	nodes                    int
	variant, instance        string
	why                      Reason
	mode                     policy.Mode
	slack, margin            time.Duration
	hasSlack, unschedulable  bool
	speed                    float64
	retry, tableSince, again time.Time
}

func (d *Decision) figures() figures {
	return figures{d.Take, d.Probe, d.Rate, d.Nodes, d.Variant, d.Instance, d.Why, d.Mode, d.Slack, d.Margin,
		d.HasSlack,
		d.Unschedulable, d.Speed, d.Retry, d.TableSince, d.Again}
}

// Rejection is an offer and why it was not taken.
type Rejection struct {
	Offer  market.OfferID `json:"offer"`
	Rate   money.Rate     `json:"rate"`
	Priced bool           `json:"priced"`
	Why    Reason         `json:"why"`
}

// ReasonCount is how many offers were rejected for a reason.
type ReasonCount struct {
	Why   Reason `json:"why"`
	Count int    `json:"count"`
}

// mostShown is how many rejected offers a decision names.
const mostShown = 5
