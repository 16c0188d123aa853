package core

import (
	"slices"
	"testing"
	"time"

	"scrimp/internal/decide/core/placement"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/plan"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// A late job waits for the spot machine that it requested, and leaves it for other spot no sooner than any job's
// patience allows. It takes uninterruptible capacity as soon as it appears.
func TestPending_LateJobLeavesSpotForOnDemandOnly(t *testing.T) {
	for _, returns := range []bool{false, true} {
		h := newHall(t, 1)
		var asked []string
		tell := func(b Body) {
			h.step.Event = nil
			out := h.Step(Event{At: h.at, Schema: Schema, Tenant: "default", Body: b})
			for _, a := range out.Actions {
				if l, ok := a.(Launch); ok {
					asked = append(asked, string(l.Offer))
				}
			}
			h.wake = out.Wake
		}
		sells := func(id string, capacity market.Capacity, rate money.Rate, available bool) {
			tell(MarketSeen{
				Offers: []market.Offer{{ID: market.OfferID(id), Provider: "p", Region: "r", Zone: id, Machine: "m", CPUs: 2,
					Capacity: capacity, Currency: money.USD, Speed: 1}},
				Quotes: []market.Quote{{Offer: market.OfferID(id), Rate: rate, Priced: true, Available: available, At: h.at}},
			})
		}
		sells("spot-a", market.Spot, 1e12, true)
		sells("spot-b", market.Spot, 11e11, true)
		sells("sure", market.OnDemand, 3e12, false)
		tell(JobSubmitted{Job: "j", Terms: Terms{Name: "j", Owner: ledger.Owner{Team: "t"},
			Need: plan.Need{Requirements: plan.Requirements{CPUs: 2}}, Currency: money.USD, Priority: 1, Saves: true, Nodes: 1,
			Steps: 1000, Work: 10 * time.Hour, Restart: time.Minute, Deadline: h.at.Add(8 * time.Hour)}})
		if !slices.Equal(asked, []string{"spot-a"}) {
			t.Fatalf("asked for %v, want the cheaper spot", asked)
		}
		begun := h.at
		for h.at.Sub(begun) < placement.GrantPatience-time.Second {
			if h.wake.IsZero() || h.wake.After(begun.Add(placement.GrantPatience-time.Second)) {
				h.at = begun.Add(placement.GrantPatience - time.Second)
			} else {
				h.at = h.wake
			}
			if returns && h.at.Sub(begun) > 0 && len(asked) == 1 {
				h.at = begun.Add(max(h.at.Sub(begun), time.Minute))
				sells("sure", market.OnDemand, 3e12, true)
				break
			}
			tell(Tick{})
		}
		if returns {
			for range 20 { // the review may take steps of its own
				tell(Tick{})
			}
			if !slices.Equal(asked, []string{"spot-a", "sure"}) {
				t.Errorf("asked for %v once on-demand is there", asked)
			}
			continue
		}
		if len(asked) != 1 {
			t.Errorf("asked for %v within %v", asked, h.at.Sub(begun))
		}
		for len(asked) == 1 && h.at.Sub(begun) < 2*placement.GrantPatience {
			h.at = h.at.Add(time.Second)
			tell(Tick{})
		}
		if !slices.Equal(asked, []string{"spot-a", "spot-b"}) {
			t.Errorf("asked for %v after %v", asked, h.at.Sub(begun))
		}
	}
}

// The core gives a pending launch up at the job's wall-clock limit, however long a grant takes.
func TestPending_IsGivenUpAtTheWallClockLimit(t *testing.T) {
	w := newWarmWith(t, 0, func(c *Config) { c.Idle, c.GrantWait = 0, time.Hour })
	w.by("", 0, JobSubmitted{Job: "k", Terms: Terms{Name: "k", Currency: money.USD, Steps: 100, Priority: 1, WallClock: 5 * time.Minute}})
	out := w.step(5*time.Minute, Tick{})
	k, _ := w.Job("k")
	if !slices.ContainsFunc(out.Actions, func(a Action) bool { return a.Key() == "cancel/k.1" }) {
		t.Errorf("job k is %s (%s) at its wall-clock limit, and its launch stays: %v", k.State(), k.Why(), out.Actions)
	}
}
