package sim

import (
	"math/rand/v2"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/market"
)

// drawSellers moves every second zone to a provider of its own.
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
	if calm { // the promise must hold even if launches are granted slowly
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
		z.spot, z.firm, z.onDemandRate = z.offer.ID, z.firmOffer.ID, z.onDemandRate*19/20 // slower and cheaper
	}
	if !calm && rng.Float64() < 0.5 {
		s, from := w.sellers[rng.IntN(2)], minutes(10, 300)
		w.after(from, func() {
			w.saw("fault away × provider")
			w.tell("%s answers nothing", s.name)
			d := minutes(1, 90)
			s.away = w.now.Add(d)
			w.away += d // its own tasks wait meanwhile
		})
	}
}

// timings adds the sellers' timings to the server's configuration.
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
			t.GrantWait += 5 * time.Minute // the usual delay, and a late answer
		}
		cfg.Providers[s.name] = t
	}
}

// longestGrant returns the longest time that a provider takes to grant a launch.
func (w *World) longestGrant() (d time.Duration) {
	for _, s := range w.sellers {
		d = max(d, s.grant)
	}
	return d
}

// sweepDue sweeps the providers that are due.
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
