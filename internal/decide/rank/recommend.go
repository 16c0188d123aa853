package rank

import (
	"cmp"
	"slices"

	"scrimp/internal/market"
)

// Point is a plan on the frontier: no other plan is both cheaper and sooner.
type Point struct {
	Offer    market.OfferID `json:"offer"`
	Machines int            `json:"machines"`
	Variant  string         `json:"variant,omitempty"`
	Hours    float64        `json:"hours"`
	Cost     float64        `json:"cost_usd"`
	Feasible bool           `json:"feasible"`
}

// frontier returns the plans for which no other is both cheaper and sooner, the soonest first. It includes plans
// that miss the deadline or the budget, to show what either costs.
func frontier(all []*Plan) []Point {
	var list []Point
	for _, p := range all {
		if (p.why == "" || p.why == TooSlow || p.why == OverBudget) && p.Hours.Value > 0 {
			list = append(list, Point{p.ID, p.Machines, p.Variant, p.Hours.Value, p.Cost.Value, p.why == ""})
		}
	}
	slices.SortFunc(list, func(a, b Point) int {
		return cmp.Or(cmp.Compare(a.Hours, b.Hours), cmp.Compare(a.Cost, b.Cost), cmp.Compare(a.Offer, b.Offer))
	})
	kept := []Point{}
	for _, p := range list {
		if len(kept) == 0 || p.Cost < kept[len(kept)-1].Cost {
			kept = append(kept, p)
		}
	}
	return kept
}

// Changes that a recommendation makes, besides the names of variants.
const (
	Elsewhere     = "elsewhere"      // another region
	OtherCapacity = "other_capacity" // spot although the job does not allow it, or the reverse
	LaterDeadline = "later"          // a later deadline
)

// Recommendation is a change that would make the job cheaper, or feasible.
type Recommendation struct {
	Name  string `json:"name"`
	Saves *Range `json:"saves_usd"` // null: no plan to compare with
	Plan  Plan   `json:"plan"`
	// Hours is the deadline that LaterDeadline needs.
	Hours float64 `json:"deadline_hours,omitempty"`
}

// recommendations returns the changes that would save something, the largest saving first.
func (r *ranking) recommendations() []Recommendation {
	list := []Recommendation{}
	add := func(name string, p Plan, hours float64) {
		l := Recommendation{Name: name, Plan: r.told(&p), Hours: hours}
		if len(r.answer.Plans) > 0 {
			now := r.answer.Plans[0].Cost
			if p.Cost.Value >= now.Value {
				return
			}
			// Both ends move together: what slows one run slows the other too.
			l.Saves = &Range{min(now.Low-p.Cost.Low, now.High-p.Cost.High), now.Value - p.Cost.Value,
				max(now.Low-p.Cost.Low, now.High-p.Cost.High)}
		}
		list = append(list, l)
	}
	for name, p := range r.relaxed { // sorted below
		switch Reason(name) {
		case WrongPlace:
			name = Elsewhere
		case WrongKind:
			name = OtherCapacity
		default:
		}
		add(name, p, 0)
	}
	if r.late.course != nil {
		add(LaterDeadline, r.late, r.needs(&r.late))
	}
	slices.SortFunc(list, func(a, b Recommendation) int {
		return cmp.Or(cmp.Compare(a.Plan.Cost.Value, b.Plan.Cost.Value), cmp.Compare(a.Name, b.Name))
	})
	return list
}

// needs returns the shortest deadline in hours that keeps the promise with a plan.
func (r *ranking) needs(p *Plan) float64 {
	return p.course.after(r.z)
}

// Nearest is the smallest change of a requirement that makes it feasible.
type Nearest struct {
	Wish  string  `json:"wish"`           // budget, deadline, or both
	Cost  float64 `json:"cost_usd"`       // budget that would be needed
	Hours float64 `json:"deadline_hours"` // deadline that would be needed; 0: unchanged, or none
	Plan  Plan    `json:"plan"`
}

// nearest returns the smallest budget for the deadline, the shortest deadline for the budget, and, if neither
// suffices, the cheapest plan of all.
func (r *ranking) nearest(all []*Plan) []Nearest {
	cost := func(p *Plan) float64 { return p.Cost.Value }
	inTime := func(p *Plan) bool { return !p.timed || p.chance >= r.Promise }
	list := []Nearest{}
	if p := least(all, inTime, cost); p != nil {
		list = append(list, Nearest{"budget", p.Cost.Value, 0, r.told(p)})
	}
	if p := least(all, func(p *Plan) bool { return !inTime(p) && r.affords(p) }, r.needs); p != nil {
		list = append(list, Nearest{"deadline", p.Cost.Value, r.needs(p), r.told(p)})
	}
	if len(list) > 0 {
		return list
	}
	if p := least(all, func(*Plan) bool { return true }, cost); p != nil {
		list = append(list, Nearest{"both", p.Cost.Value, r.needs(p), r.told(p)})
	}
	return list
}

// affords reports whether a plan is expected to stay within the budget.
func (r *ranking) affords(p *Plan) bool { return !r.Budget.OK || p.Cost.Value <= r.Budget.V }

// least returns the first plan with the lowest value among those that miss only the deadline or budget and satisfy
// fits.
func least(all []*Plan, fits func(*Plan) bool, value func(*Plan) float64) *Plan {
	var best *Plan
	for _, p := range all {
		if p.why != TooSlow && p.why != OverBudget || p.Hours.Value <= 0 || !fits(p) {
			continue
		}
		if best == nil || value(p) < value(best) {
			best = p
		}
	}
	return best
}
