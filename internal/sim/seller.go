package sim

import (
	"math/rand/v2"
	"time"

	"scrimp/internal/core"
	"scrimp/internal/market"
)

// seller is a provider of a world that has several: each behaves in its own way, and is
// swept at its own pace.
type seller struct {
	name  string
	lag   time.Duration // how long its list may lack a machine that runs
	grant time.Duration // how long it takes to grant a machine on-demand, besides what all take
	every time.Duration // between two sweeps
	next  time.Time     // of them
	away  time.Time     // until then it answers nothing
}

// drawSellers gives every second zone to a provider of its own.
func (w *World) drawSellers() {
	calm := w.calm5()
	rng := w.extra
	if calm {
		rng = rand.New(rand.NewPCG(w.seed, 0x5e11))
	}
	if len(w.zones) < 2 || rng.Float64() < 0.4 {
		return
	}
	minutes := func(least, spread int) time.Duration { return time.Duration(least+rng.IntN(spread)) * time.Minute }
	w.sellers = []*seller{
		{name: "sim", lag: minutes(1, 5), every: 5 * time.Minute},
		{name: "sim2", lag: minutes(4, 10), every: minutes(5, 20), grant: minutes(1, 40)},
	}
	if calm { // what is promised has to hold where nothing is granted soon
		w.sellers[0].grant = minutes(15, 30)
	}
	for n, z := range w.zones {
		if n%2 == 0 {
			continue
		}
		for _, o := range []*market.Offer{&z.offer, &z.firmOffer} {
			o.Provider = "sim2"
			o.ID = market.ID(*o)
		}
		z.spot, z.firm, z.firmRate = z.offer.ID, z.firmOffer.ID, z.firmRate*19/20 // slower, and cheaper
	}
	if !calm && rng.Float64() < 0.5 {
		s, from := w.sellers[rng.IntN(2)], minutes(10, 300)
		w.after(from, func() {
			w.saw("fault away × provider")
			w.tell("%s answers nothing", s.name)
			d := minutes(1, 90)
			s.away = w.now.Add(d)
			w.away += d // what only it could do waits meanwhile
		})
	}
}

// timings are those of the sellers, as the server is told.
func (w *World) timings(cfg *core.Config) {
	if len(w.sellers) == 0 {
		return
	}
	cfg.Providers = map[string]core.Timing{}
	for n, s := range w.sellers {
		t := cfg.Timing()
		t.Detect += time.Duration(n) * time.Minute
		if t.Consistency > 0 {
			t.Consistency = s.lag
		}
		if t.GrantWait = s.grant; s.grant > 0 {
			t.GrantWait += 5 * time.Minute // what all take, and an answer that is late
		}
		cfg.Providers[s.name] = t
	}
}

// sellerOf is the provider of an offer; nil where there is one only.
func (w *World) sellerOf(o *market.Offer) *seller {
	for _, s := range w.sellers {
		if s.name == o.Provider {
			return s
		}
	}
	return nil
}

// answers reports whether the offer's provider does; else do follows once it may.
func (w *World) answers(o *market.Offer, do func()) bool {
	s := w.sellerOf(o)
	if s == nil || !w.now.Before(s.away) {
		return true
	}
	w.at(s.away.Add(time.Second), do)
	return false
}

// longestGrant is the longest that a provider takes to grant what it has.
func (w *World) longestGrant() (d time.Duration) {
	for _, s := range w.sellers {
		d = max(d, s.grant)
	}
	return d
}

// sweepDue sweeps the providers whose turn it is.
func (w *World) sweepDue() {
	if len(w.sellers) == 0 {
		w.sweep()
		return
	}
	for _, s := range w.sellers {
		if !w.now.Before(s.next) {
			s.next = w.now.Add(s.every)
			w.sweepOf(s)
		}
	}
}
