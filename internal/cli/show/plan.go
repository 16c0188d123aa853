package show

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"scrimp/internal/draw"
	"scrimp/internal/plan"
)

// Plan is a job played forward through the core: what it would cost, when it
// would be done, and why. Amounts are estimates; unknown is null.
type Plan struct {
	Name        string      `json:"name"`
	Feasible    bool        `json:"feasible"`
	Known       bool        `json:"known"`               // whether the work is known
	WorkS       *float64    `json:"work_s"`              // of an uninterrupted run on speed 1, market seconds
	WorkFrom    string      `json:"work_from,omitempty"` // what says so; "": the job file
	Market      string      `json:"market"`
	Speed       float64     `json:"market_speed"`
	Runs        int         `json:"runs"` // how many runs were simulated; 0: none
	Take        string      `json:"take"`
	Why         string      `json:"why"`
	Rejected    []Rejected  `json:"rejected"`
	CostUSD     *[3]float64 `json:"cost_usd"`      // 10 %, median, 90 %
	FinishS     *[3]float64 `json:"finish_s"`      // the same, market seconds
	InTime      *float64    `json:"odds"`          // of the deadline
	Interrupts  *float64    `json:"interruptions"` // expected
	OnDemandUSD *float64    `json:"on_demand_usd"`
	WorstUSD    *float64    `json:"worst_usd"` // what the budget lets it cost at most
	Reasons     []string    `json:"reasons"`
}

// Rejected is an offer that would not be taken now.
type Rejected struct {
	Offer string `json:"offer"`
	Why   string `json:"why"`
}

// Text is the plan for people.
func (v Plan) Text(p Place) string {
	var b strings.Builder
	head := v.Name + " on market " + v.Market
	if v.Speed != 1 {
		head += fmt.Sprintf(" at speed %g (a second here is %s there)", v.Speed, seconds(v.Speed))
	}
	if !v.Feasible {
		head += ": NOT FEASIBLE"
	}
	b.WriteString(draw.Wrap("", head, p.width()))
	if v.WorkS != nil && v.WorkFrom != "" {
		p.fact(&b, "work", "%s, %s", seconds(*v.WorkS), v.WorkFrom)
	}
	v.costs(&b, p)
	if !v.never() {
		v.odds(&b, p)
	}
	switch {
	case v.Take != "":
		p.fact(&b, "begins on", "%s: %s", v.Take, why(plan.Reason(v.Why)))
	case v.never():
		p.fact(&b, "begins", "not: %s", why(plan.Reason(v.Why)))
	default:
		p.fact(&b, "begins", "when it can: %s", why(plan.Reason(v.Why)))
	}
	for _, r := range v.Rejected {
		p.fact(&b, "", "not %s: %s", r.Offer, words(r.Why))
	}
	for _, r := range v.Reasons {
		p.fact(&b, "note", "%s", r)
	}
	return b.String()
}

// never reports whether the job ends where it begins.
func (v Plan) never() bool { return v.FinishS != nil && v.FinishS[2] <= 0 }

// costs writes what the job is expected to cost, and at most.
func (v Plan) costs(b *strings.Builder, p Place) {
	onDemand := v.OnDemandUSD
	switch {
	case v.never():
		p.fact(b, "cost", "nothing: it ends before it begins")
	case v.Known && v.CostUSD != nil:
		cost := span(usd(v.CostUSD[0]), usd(v.CostUSD[2]))
		if strings.Contains(cost, " to ") {
			cost += ", median " + usd(v.CostUSD[1])
		}
		p.fact(b, "cost", "%s", cost)
	default:
		p.fact(b, "cost", "unknown until the first steps: give work.time, or let scrimp profile measure it")
		onDemand = nil
	}
	if onDemand != nil {
		p.fact(b, "on-demand", "%s", usd(*onDemand))
	}
	if v.WorstUSD != nil {
		p.fact(b, "at most", "$%.2f: the budget stops it, after a checkpoint", *v.WorstUSD)
	}
}

// odds writes when the job is done, how likely in time, and after how many interruptions.
func (v Plan) odds(b *strings.Builder, p Place) {
	if v.FinishS != nil {
		p.fact(b, "finish", "in %s", span(seconds(v.FinishS[0]), seconds(v.FinishS[2])))
	}
	if v.InTime != nil {
		p.fact(b, "deadline", "met in %.0f %% of %d simulated runs", *v.InTime*100, v.Runs)
	}
	if v.Interrupts != nil {
		p.fact(b, "interruptions", "%.1f expected", *v.Interrupts)
	}
}

// usd writes an estimate: to the cent, or with three digits that count where it is less than a dime.
func usd(v float64) string {
	if v == 0 || v >= 0.1 {
		return fmt.Sprintf("$%.2f", v)
	}
	return "$" + strconv.FormatFloat(v, 'f', min(9, 2-int(math.Floor(math.Log10(v)))), 64)
}

// span writes a range, or one value where both ends read the same.
func span(low, high string) string {
	if low == high {
		return low
	}
	return low + " to " + high
}
