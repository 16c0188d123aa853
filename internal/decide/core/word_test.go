package core_test

import (
	"testing"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// A report by a machine that runs a user's program affects only that user's job: others still rent from the offer,
// and its hazard does not change. The provider's report counts for all.
func TestAgentReport_AffectsOnlyItsJob(t *testing.T) {
	for name, c := range map[string]struct {
		says   []core.Body
		rents  bool // another job gets a machine of the offer at once
		losses float64
	}{
		"noticed until 2100": {[]core.Body{
			core.NoticeGiven{Attempt: "j.1", Message: 2, Source: "aws", Until: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)},
			core.AttemptEnded{Attempt: "j.1", Message: 3, Reason: "drained"},
			core.InstanceEnded{Instance: "i1", Cause: "terminated"},
		}, true, 0},
		"announced by the provider": {[]core.Body{
			core.NoticeGiven{Attempt: "j.1", Message: 2, Source: "aws"},
			core.InterruptionAnnounced{Instance: "i1"},
			core.AttemptEnded{Attempt: "j.1", Message: 3, Reason: "drained"},
			core.InstanceEnded{Instance: "i1", Cause: "terminated", Announced: true},
		}, false, 1},
		"the provider's announcement is seen afterwards": {[]core.Body{
			core.AttemptEnded{Attempt: "j.1", Message: 3, Reason: "failed", Exit: 1},
			core.InstanceEnded{Instance: "i1", Cause: "terminated", Announced: true},
		}, true, 1},
		"the agent is killed": {[]core.Body{
			core.AgentSilent{Attempt: "j.1"},
			core.InstanceEnded{Instance: "i1", Cause: "terminated"},
		}, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			m := core.New()
			now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			step := func(b core.Body) (launched bool) {
				now = now.Add(time.Second)
				switch x := b.(type) { // without a given time the report is an hour ahead
				case core.InterruptionAnnounced:
					x.At = now.Add(time.Hour)
					b = x
				case core.NoticeGiven:
					if x.Until.IsZero() {
						x.Until = now.Add(time.Hour)
					}
					b = x
				case core.InstanceEnded:
					x.Until = now
					b = x
				case core.AgentSilent:
					x.Since = now.Add(-time.Minute)
					b = x
				}
				for _, a := range m.Step(core.Event{At: now, Schema: core.Schema, Tenant: "t", Body: b}).Actions {
					l, ok := a.(core.Launch)
					launched = launched || ok && l.Job == "k"
				}
				return launched
			}
			spot := market.Offer{ID: "p/z/m/spot", Provider: "p", Zone: "z", Machine: "m", Capacity: market.Spot, CPUs: 1, Speed: 1, Currency: money.USD}
			step(core.Configured{Config: core.DefaultConfig()})
			step(core.MarketSeen{Offers: []market.Offer{spot}, Quotes: []market.Quote{{Offer: spot.ID, Rate: 1e12, Priced: true, Available: true, At: now}}})
			step(core.JobSubmitted{Job: "j", Terms: core.Terms{Name: "j", Currency: money.USD, Steps: 100, Priority: 1}})
			step(core.LaunchDone{Launch: "j.1", Instance: "i1", Offer: spot.ID, Rate: 1e12, From: now})
			step(core.AgentClaimed{Attempt: "j.1", By: "key"})
			for _, b := range c.says {
				step(b)
			}
			if got := step(core.JobSubmitted{Job: "k", Terms: core.Terms{Name: "k", Currency: money.USD, Steps: 100, Priority: 1}}); got != c.rents {
				t.Errorf("another job rents from the offer: %v, want %v", got, c.rents)
			}
			for _, l := range m.Sale() {
				if float64(l.Hazard.Lost) != c.losses {
					t.Errorf("its hazard counts %v losses, want %v", l.Hazard.Lost, c.losses)
				}
			}
		})
	}
}
