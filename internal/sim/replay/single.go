package replay

import (
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/policy"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/sim/tick"
)

const (
	spotID = market.OfferID("trace/zone/machine/spot")
	firmID = market.OfferID("trace/zone/machine/on-demand")
)

// single is the market of the one-zone benchmark.
type single struct {
	run tick.Run
	t   int // the current tick
}

// Single plays one run of the one-zone benchmark under the rule. With trace it records the held machine of each tick.
func Single(r tick.Run, mind *plan.Planner, rule policy.Rule, trace bool) Outcome {
	j := r.Job
	s := &single{run: r}
	w := newWorld(mind, s, j.Work, r.Nodes, trace)
	deadline := start.Add(time.Duration(j.Ticks()) * j.Gap)
	w.step(config(rule, j.Overhead, j.Gap, 0))
	w.step(core.MarketSeen{Offers: []market.Offer{s.offer(spotID), s.offer(firmID)}, Quotes: s.quotes(0, true, w.now)})
	w.step(core.JobSubmitted{Job: jobID, Terms: w.terms(j.Overhead, deadline)})
	w.act()
	w.note()
	for t := 1; ; t++ {
		w.advance(j.Gap)
		if w.finished(deadline) {
			return w.close()
		}
		s.t = t
		w.step(core.MarketSeen{Quotes: s.quotes(t, false, w.now)})
		if w.attempt != "" && w.offer.Capacity == market.Spot {
			w.takes(r.At(t), r.Alone.At(t))
		}
		w.act()
		w.note()
	}
}

func (s *single) offer(id market.OfferID) market.Offer {
	o := market.Offer{ID: id, Provider: "trace", Region: "region", Zone: "zone", Machine: "machine", Capacity: market.Spot,
		CPUs: 1, Speed: 1, Currency: money.USD}
	if id == firmID {
		o.Capacity = market.OnDemand
	}
	return o
}

func (s *single) rate(id market.OfferID) money.Rate {
	if id == spotID {
		return s.run.Job.Spot
	}
	return s.run.Job.OnDemand
}

func (s *single) overhead(string, string) (time.Duration, money.Amount) {
	return s.run.Job.Overhead, money.Amount{}
}

func (s *single) look(id market.OfferID) market.Quote {
	return market.Quote{Offer: id, Available: id == firmID || s.run.At(s.t)}
}

// quotes returns the market of tick t: all offers, or only those that changed since the previous tick.
func (s *single) quotes(t int, all bool, now time.Time) []market.Quote {
	var list []market.Quote
	if up := s.run.At(t); all || up != s.run.At(t-1) {
		list = append(list, market.Quote{Offer: spotID, Rate: s.run.Job.Spot, Priced: true, Available: up, At: now,
			Source: "trace"})
	}
	if all {
		list = append(list, market.Quote{Offer: firmID, Rate: s.run.Job.OnDemand, Priced: true, Available: true, At: now,
			Source: "trace"})
	}
	return list
}
