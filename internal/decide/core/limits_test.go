package core

import (
	"testing"

	"scrimp/internal/decide/plan"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// limitRig offers one machine of eight processors to jobs that use at most two, shared by the given number of
// tasks.
func limitRig(t *testing.T, seats int) (w *warmRig, submit func(job string) Outcome) {
	t.Helper()
	w = &warmRig{Machine: New(), t: t, cost: map[string]money.Amount{}, most: money.Picos(50e12)}
	o := market.Offer{ID: "p/z/m/on-demand", Provider: "p", Zone: "z", Machine: "m", Capacity: market.OnDemand, CPUs: 8,
		Memory: 16 << 30, Speed: 1, Currency: money.USD}
	w.step(0, Configured{Config: seated(seats)})
	w.step(0, MarketSeen{Offers: []market.Offer{o},
		Quotes: []market.Quote{{Offer: o.ID, Rate: 1e12, Priced: true, Available: true, At: agentsStart}}})
	return w, func(job string) Outcome {
		return w.step(0, JobSubmitted{Job: job, Terms: Terms{Name: job, Currency: money.USD, Steps: 100, Priority: 1,
			Need: plan.Need{Requirements: plan.Requirements{CPUs: 2, MaxCPUs: 2}}}})
	}
}

func seated(n int) Config {
	cfg := DefaultConfig()
	cfg.Seats = n
	return cfg
}

// The upper end of a job's processors applies to its part of a machine. A larger machine is not rented whole, but
// is taken if the engine shares machines. A change of the engine's setting applies at once.
func TestPart_ObeysTheUpperEndOfItsJob(t *testing.T) {
	w, submit := limitRig(t, 4)
	if out := submit("a"); launches(out) != 1 {
		t.Fatalf("no machine is rented for a part of it: %+v", out.Actions)
	}
	a, _ := w.Job("a")
	if p := a.Asked().Portion(); p == nil || p.CPUs != 2 {
		t.Errorf("the job gets %+v of the machine", p)
	}

	w, submit = limitRig(t, 0)
	out := submit("a")
	if a, _ = w.Job("a"); launches(out) != 0 || a.Last().Why != plan.NoOffer || len(a.Last().Rejected) != 1 ||
		a.Last().Rejected[0].Why != plan.TooLarge {
		t.Fatalf("all of a machine that is too large: %+v", a.Last())
	}
	if out := w.step(0, Configured{Config: seated(4)}); launches(out) != 1 {
		t.Errorf("the engine shares its machines now, and none is rented: %+v", a.Last())
	}
	if out := submit("b"); launches(out) != 1 {
		t.Error("a second job gets no part")
	}
	w.step(0, Configured{Config: seated(0)})
	if out := submit("c"); launches(out) != 0 {
		t.Error("the engine shares no machine any more, and one that is too large is rented")
	}
}
