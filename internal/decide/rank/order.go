package rank

import (
	"cmp"
	"slices"
)

// better orders options of one offer: feasible ones first, then those nearest to feasible.
func better(a, b *Plan) bool {
	if a.why != b.why {
		return order(a.why) < order(b.why)
	}
	if a.why == TooSlow && a.chance != b.chance { // prefer the one more likely in time
		return a.chance > b.chance
	}
	return cheaper(a, b) < 0
}

func order(why Reason) int {
	if why == "" {
		return -1
	}
	return slices.Index(Reasons, why)
}

// cheaper orders by expected cost, then finish, then ID, so that the result does not depend on the order of the
// input.
func cheaper(a, b *Plan) int {
	if a.Cost.Value != b.Cost.Value {
		return cmp.Compare(a.Cost.Value, b.Cost.Value)
	}
	return cmp.Or(cmp.Compare(a.Hours.Value, b.Hours.Value), cmp.Compare(a.ID, b.ID),
		cmp.Compare(a.Machines, b.Machines), cmp.Compare(a.Variant, b.Variant))
}

// finish sorts the weighed options into the answer.
func (r *ranking) finish() {
	a := &r.answer
	sorted := make([]*Plan, len(r.all))
	for i := range r.all {
		sorted[i] = &r.all[i]
	}
	slices.SortFunc(sorted, func(x, y *Plan) int {
		if x.why != y.why {
			return cmp.Compare(order(x.why), order(y.why))
		}
		return cheaper(x, y)
	})
	split := len(sorted)
	if i := slices.IndexFunc(sorted, func(p *Plan) bool { return p.why != "" }); i >= 0 {
		split = i
	}
	most := r.Most
	if most <= 0 {
		most = len(sorted)
	}
	for _, p := range sorted[:min(split, most)] {
		a.Plans = append(a.Plans, r.told(p))
	}
	for _, p := range sorted[split:min(len(sorted), split+most)] {
		a.Rejected = append(a.Rejected, Rejection{r.told(p), p.why})
	}
	if a.Feasible = split > 0; a.Feasible {
		feasible := a.Considered
		for _, n := range a.Counts {
			feasible -= n
		}
		a.Counts[CostsMore] = feasible - 1
	}
	a.Frontier = frontier(sorted)
	a.Recommendations = r.recommendations()
	if !a.Feasible {
		a.Nearest = r.nearest(sorted)
	}
}
