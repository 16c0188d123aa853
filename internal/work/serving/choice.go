package serving

import (
	"cmp"
	"slices"

	"scrimp/internal/lib/money"
	"scrimp/internal/market/catalog"
	"scrimp/internal/market/egress"
	"scrimp/internal/work/serving/simulation"
)

// A Choice is one rule on one offer and what it costs for the trace.
type Choice struct {
	Listing  *catalog.Listing // nil of a function
	Function *Function        // nil of a machine
	Engine   Engine
	Outcome  simulation.Outcome
	Met      bool
	Sure     bool          // the slow end of an estimate meets the targets too, or the time is measured
	Machines money.Amount  // or what the function costs
	Egress   *money.Amount // nil: unknown, or the trace does not say what answers send
	Total    money.Amount  // Machines, and Egress where it is known
	Complete bool          // nothing that the trace asks for is unknown
	run      *run
}

// Name returns what the offer is called.
func (c Choice) Name() string {
	if c.Function != nil {
		return c.Function.Name
	}
	return string(c.Listing.Offer.ID)
}

// Choices returns the outcomes of each kind on each offer, the best first: those that meet the targets before those
// that miss them. Of those that meet them, a choice that its whole estimate supports comes before one that only the
// middle supports, then one whose cost is known in full, then the cheapest. Of the others, the nearest comes first.
func (p *Plan) Choices() (list []Choice) {
	for _, r := range p.runs {
		if r.function != nil {
			for _, o := range r.outcomes {
				c := Choice{Function: r.function, Engine: r.engine, Outcome: o, Met: r.met, Sure: r.met, run: r}
				c.Machines = r.function.Cost(p.Ask.Trace, r.engine.Service, o)
				list = append(list, p.complete(c, r.function.Provider))
			}
			continue
		}
		for i := range r.offers {
			list = append(list, p.bestOf(r, &r.offers[i])...)
		}
	}
	slices.SortStableFunc(list, func(a, b Choice) int {
		if !a.Met && !b.Met {
			return cmp.Or(cmp.Compare(a.Outcome.Miss(p.Ask.Options.Targets), b.Outcome.Miss(p.Ask.Options.Targets)),
				cheaper(a, b))
		}
		return cmp.Or(trueFirst(a.Met, b.Met), trueFirst(a.Sure, b.Sure), trueFirst(a.Complete, b.Complete),
			a.Total.Cmp(b.Total), cheaper(a, b))
	})
	return list
}

// bestOf returns the cheapest outcome of each kind that an engine has, at the price of one of its offers. Where that is
// uncertain, the cheapest certain one of the kind is there too.
func (p *Plan) bestOf(r *run, l *catalog.Listing) (list []Choice) {
	best, sure := map[simulation.Kind]Choice{}, map[simulation.Kind]Choice{}
	for _, o := range r.outcomes {
		c := Choice{Listing: l, Engine: r.engine, Outcome: o, Met: r.met, Sure: r.met, run: r}
		if ends, ok := p.Range(c); ok && r.met {
			c.Sure = ends.Slow != nil && ends.Slow.Meets(p.Ask.Options.Targets)
		}
		c.Machines = o.Cost(l.Quote.Rate, l.Offer.Billing)
		keep(best, c)
		if c.Sure {
			keep(sure, c)
		}
	}
	for _, k := range simulation.Kinds {
		c, ok := best[k]
		s, certain := sure[k]
		if certain && (c.Sure || s.Machines.Cmp(c.Machines) == 0) { // one that costs the same is enough
			c = s
		} else if certain {
			list = append(list, p.complete(s, l.Offer.Provider))
		}
		if ok {
			list = append(list, p.complete(c, l.Offer.Provider))
		}
	}
	return list
}

// keep sets the choice of a kind, unless the one that is there is as cheap.
func keep(list map[simulation.Kind]Choice, c Choice) {
	kind := c.Outcome.Rule.Kind
	if was, ok := list[kind]; !ok || cheaper(c, was) < 0 {
		list[kind] = c
	}
}

// trueFirst orders what is true before what is false.
func trueFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// cheaper orders choices by the cost of machines, then by p99, then by name.
func cheaper(a, b Choice) int {
	return cmp.Or(a.Machines.Cmp(b.Machines), cmp.Compare(a.Outcome.Quantiles[990], b.Outcome.Quantiles[990]),
		cmp.Compare(a.Name(), b.Name()))
}

// complete adds what sending the answers costs.
func (p *Plan) complete(c Choice, provider string) Choice {
	c.Total, c.Complete = c.Machines, true
	if !p.Ask.Trace.Sized {
		return c
	}
	x, ok := p.catalog.TransferRate(provider, catalog.TransferOut)
	if ok = ok && x.Currency == money.USD || p.Ask.Trace.BytesOut == 0; !ok {
		c.Complete = false
		return c
	}
	sum := egress.Cost(p.Ask.Trace.BytesOut, x.Price)
	c.Egress, c.Total = &sum, c.Total.Add(sum)
	return c
}

// A Range is what a rule does at the ends of an estimate. An end that is nil does not answer the trace.
type Range struct{ Fast, Slow *simulation.Outcome }

// Range plays a choice at both ends of its estimate, once for all offers of its engine. It is false where the time is
// measured.
func (p *Plan) Range(c Choice) (r Range, ok bool) {
	if c.Engine.Fast == nil || c.Engine.Slow == nil {
		return r, false
	}
	at := played{c.run, c.Outcome.Rule}
	if r, ok := p.ranges[at]; ok {
		return r, true
	}
	for _, end := range []struct {
		s  simulation.Service
		to **simulation.Outcome
	}{{c.Engine.Fast, &r.Fast}, {c.Engine.Slow, &r.Slow}} {
		if o := simulation.NewSimulation(p.Ask.Trace, end.s, c.Engine.Slots, nil).Run(c.Outcome.Rule); !o.Stopped {
			*end.to = &o
		}
	}
	if p.ranges == nil {
		p.ranges = map[played]Range{}
	}
	p.ranges[at] = r
	return r, true
}

// played names a rule on an engine. Offers of one engine share its simulations.
type played struct {
	run  *run
	rule simulation.Rule
}
