package replay

import (
	"fmt"
	"slices"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/policy"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/sim/tick"
	"scrimp/internal/sim/tick/multizone"
)

// several is the market of a run over several zones.
type several struct {
	run    *multizone.Run
	offers []market.Offer // spot of each zone, then on-demand of each
	index  map[market.OfferID]int
	t      int
	now    time.Time
}

func newSeveral(r *multizone.Run) *several {
	s := &several{run: r, index: map[market.OfferID]int{}}
	for _, c := range []market.Capacity{market.Spot, market.OnDemand} {
		for i, z := range r.Job.Zones {
			id := market.OfferID(fmt.Sprintf("trace/%02d-%s/machine/%s", i, z.Name, c))
			s.index[id] = i
			s.offers = append(s.offers, market.Offer{ID: id, Provider: "trace", Region: z.Region, Zone: z.Name,
				Machine: "machine", Capacity: c, CPUs: 1, Speed: 1, Currency: money.USD})
		}
	}
	return s
}

// Zones plays one run of the benchmark with several zones under the rule.
func Zones(r *multizone.Run, mind *plan.Planner, rule policy.Rule, trace bool) Outcome {
	return zones(r, mind, rule, trace, func(m *core.Machine) *core.Machine { return m })
}

// zones plays a run and replaces the machine in each tick by the one that next returns.
func zones(r *multizone.Run, mind *plan.Planner, rule policy.Rule, trace bool,
	next func(*core.Machine) *core.Machine) Outcome {
	j := &r.Job
	s := newSeveral(r)
	w := newWorld(mind, s, j.Work, r.Nodes, trace)
	s.now = w.now
	deadline := start.Add(j.Deadline)
	// The rest of the deadline after its last whole tick does not count.
	w.step(config(rule, j.Restart+j.Transfer, j.Tick, j.Deadline%j.Tick))
	w.step(core.MarketSeen{Offers: s.offers, Quotes: s.quotes("", true)})
	t := w.terms(j.Restart, deadline)
	t.Transfer, t.Carry, t.Egress = j.Transfer, tick.Times(j.Carry, w.nodes), slices.Clone(j.Egress)
	for i := range t.Egress {
		t.Egress[i].Cost = tick.Times(t.Egress[i].Cost, w.nodes)
	}
	w.step(core.JobSubmitted{Job: jobID, Terms: t})
	w.act()
	w.note()
	for s.t = 1; ; s.t++ {
		w.advance(j.Tick)
		w.m = next(w.m)
		s.now = w.now
		if w.finished(start.Add(time.Duration(j.Ticks()) * j.Tick)) {
			return w.close()
		}
		held := market.OfferID("")
		if w.attempt != "" {
			held = w.offer.ID
		}
		w.step(core.MarketSeen{Quotes: s.quotes(held, false)})
		if held != "" && w.offer.Capacity == market.Spot {
			w.takes(s.up(s.index[held]), r.AloneAt(s.index[held], s.t))
		}
		w.act()
		w.note()
	}
}

// up reports whether spot is available in tick t. After the trace's end it is not.
func (s *several) up(z int) bool {
	up := s.run.Traces[z].Up
	return s.t < len(up) && up[s.t]
}

func (s *several) offer(id market.OfferID) market.Offer {
	for _, o := range s.offers {
		if o.ID == id {
			return o
		}
	}
	return market.Offer{}
}

func (s *several) rate(id market.OfferID) money.Rate { return s.look(id).Rate }

func (s *several) overhead(from, to string) (time.Duration, money.Amount) {
	if from != to && from != "" {
		return s.run.Job.Restart + s.run.Job.Transfer, s.run.Job.Moving(from, to)
	}
	return s.run.Job.Restart, money.Amount{}
}

// look returns the quote of an offer in this tick, regardless of the sight.
func (s *several) look(id market.OfferID) market.Quote {
	z := s.index[id]
	q := market.Quote{Offer: id, Rate: s.run.Job.Zones[z].OnDemand, Priced: true, Available: true, At: s.now,
		Source: "trace"}
	if s.offer(id).Capacity == market.Spot {
		prices := s.run.Traces[z].Price
		q.Rate, q.Available = prices[min(s.t, len(prices)-1)], s.up(z)
	}
	return q
}

// quotes returns what the core sees of this tick without a probe.
func (s *several) quotes(held market.OfferID, all bool) []market.Quote {
	list := make([]market.Quote, 0, len(s.offers))
	for _, o := range s.offers {
		if o.Capacity != market.Spot && !all {
			continue
		}
		q := s.look(o.ID)
		if s.run.Job.Looks && o.Capacity == market.Spot && o.ID != held {
			q.Available, q.Untried = false, true
		}
		list = append(list, q)
	}
	return list
}
