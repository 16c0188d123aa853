package core_test

import (
	"testing"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// A running machine counts as served time: SpotHeld reports it before its end, the offer's hazard after it.
func TestSpotHeld_CountsRunningMachines(t *testing.T) {
	m := core.New()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	step := func(after time.Duration, b core.Body) {
		now = now.Add(after)
		m.Step(core.Event{At: now, Schema: core.Schema, Tenant: "t", Body: b})
	}
	spot := market.Offer{ID: "p/z/m/spot", Provider: "p", Zone: "z", Machine: "m", Capacity: market.Spot, CPUs: 1, Speed: 1, Currency: money.USD}
	step(0, core.Configured{Config: core.DefaultConfig()})
	step(0, core.MarketSeen{Offers: []market.Offer{spot}, Quotes: []market.Quote{{Offer: spot.ID, Rate: 1e12, Priced: true, Available: true, At: now}}})
	step(0, core.JobSubmitted{Job: "j", Terms: core.Terms{Name: "j", Currency: money.USD, Steps: 100, Priority: 1}})
	served := func() (ended, runs time.Duration) {
		for _, l := range m.Sale() {
			ended = l.Hazard.Served
		}
		return ended, m.SpotHeld(now)[spot.ID]
	}
	if ended, runs := served(); ended+runs != 0 {
		t.Errorf("asked for and not granted yet: %v and %v", ended, runs)
	}
	step(time.Second, core.LaunchDone{Launch: "j.1", Instance: "i1", Offer: spot.ID, Rate: 1e12, From: now.Add(time.Second)})
	step(time.Minute, core.AttemptStarted{Attempt: "j.1", Message: 1})
	now = now.Add(time.Hour)
	if ended, runs := served(); ended != 0 || runs != time.Hour+time.Minute {
		t.Errorf("after an hour and a minute: %v of machines that are gone, %v of one that runs", ended, runs)
	}
	step(0, core.InstanceEnded{Instance: "i1", Until: now, Cause: "interrupted"})
	if ended, runs := served(); ended != time.Hour+time.Minute || runs != 0 {
		t.Errorf("after its end: %v of machines that are gone, %v of what runs", ended, runs)
	}
}
