package core_test

import (
	"testing"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// A lost machine saved once more than it could report. The next attempt resumes from that checkpoint, so the time
// up to it was useful; the cost of the machine after it was given up was not. The program reports no steps other
// than those of its checkpoints.
func TestSilentMachine_LastSaveCountsAsUseful(t *testing.T) {
	m := core.New()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var postings []ledger.Posting
	step := func(after time.Duration, b core.Body) {
		now = now.Add(after)
		postings = append(postings, m.Step(core.Event{At: now, Schema: core.Schema, Tenant: "t", Body: b}).Postings...)
	}
	spot := market.Offer{ID: "p/z/m/spot", Provider: "p", Zone: "z", Machine: "m", Capacity: market.Spot, CPUs: 1, Speed: 1, Currency: money.USD}
	step(0, core.Configured{Config: core.DefaultConfig()})
	step(0, core.MarketSeen{Offers: []market.Offer{spot}, Quotes: []market.Quote{{Offer: spot.ID, Rate: 1e12, Priced: true, Available: true, At: now}}})
	step(0, core.JobSubmitted{Job: "j", Terms: core.Terms{Name: "j", Currency: money.USD, Steps: 1000, Saves: true, Priority: 1, Restart: time.Minute}})
	step(time.Second, core.LaunchDone{Launch: "j.1", Instance: "i1", Offer: spot.ID, Rate: 1e12, From: now})
	step(time.Minute, core.AttemptStarted{Attempt: "j.1", Message: 1})
	step(time.Hour, core.CheckpointSaved{Attempt: "j.1", Message: 2, Manifest: "m", Step: 60, Captured: now.Add(time.Hour)})
	step(20*time.Minute, core.InventorySeen{Provider: "p", AsOf: now.Add(20 * time.Minute)})
	step(time.Second, core.LaunchDone{Launch: "j.2", Instance: "i2", Offer: spot.ID, Rate: 1e12, From: now})
	step(time.Minute, core.AttemptStarted{Attempt: "j.2", Message: 1, Restored: "newer", Step: 70})
	step(time.Hour, core.InstanceEnded{Instance: "i1", Until: now.Add(30 * time.Minute), Cause: "terminated"})
	j, _ := m.Job("j")
	first := j.Attempts()[0]
	if first.Live() || len(j.Attempts()) != 2 {
		t.Fatalf("the first of %d attempts is not over", len(j.Attempts()))
	}
	if !first.Taken() {
		t.Error("that it was interrupted is forgotten once its machine is heard of again")
	}
	uses := first.Uses()
	// 60 steps took an hour, so the ten unreported ones took ten minutes: 70 minutes at $1 per hour.
	if got, want := uses[ledger.Useful].Float(), 70.0/60; got < want-1e-9 || got > want+1e-9 {
		t.Errorf("useful %v, want %v", got, want)
	}
	// It ended 51 minutes and a second after the reported checkpoint.
	if got, want := uses[ledger.Lost].Float(), (41*time.Minute + time.Second).Hours(); got < want-1e-9 || got > want+1e-9 {
		t.Errorf("lost %v, want %v", got, want)
	}
	sum := money.Amount{}
	for _, u := range uses {
		sum = sum.Add(u)
	}
	if sum != first.Cost(now) {
		t.Errorf("the uses of the first attempt are %v together, it cost %v", sum, first.Cost(now))
	}
	if err := ledger.Verify(each(postings)); err != nil {
		t.Error(err)
	}
}

// If a machine reports its end after the core ended it, that does not count as an interruption.
func TestRelease_IsNoInterruption(t *testing.T) {
	for name, noticed := range map[string]bool{"the notice is the provider's": true, "the notice is ours": false} {
		t.Run(name, func(t *testing.T) {
			m := core.New()
			now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			step := func(after time.Duration, list ...core.Body) {
				now = now.Add(after)
				for _, b := range list {
					m.Step(core.Event{At: now, Schema: core.Schema, Tenant: "t", Body: b})
				}
			}
			spot := market.Offer{ID: "p/z/m/spot", Provider: "p", Zone: "z", Machine: "m", Capacity: market.Spot, CPUs: 1, Speed: 1, Currency: money.USD}
			step(0, core.Configured{Config: core.DefaultConfig()},
				core.MarketSeen{Offers: []market.Offer{spot}, Quotes: []market.Quote{{Offer: spot.ID, Rate: 1e12, Priced: true, Available: true, At: now}}},
				core.JobSubmitted{Job: "j", Terms: core.Terms{Name: "j", Currency: money.USD, Steps: 1000, Saves: true, Priority: 1, Restart: time.Minute}})
			step(time.Second, core.LaunchDone{Launch: "j.1", Instance: "i1", Offer: spot.ID, Rate: 1e12, From: now})
			step(time.Minute, core.AttemptStarted{Attempt: "j.1", Message: 1})
			notice, ask := core.NoticeGiven{Attempt: "j.1", Message: 2}, core.JobEnded{Job: "j"}
			if noticed {
				step(time.Minute, notice, ask)
			} else {
				step(time.Minute, ask, notice)
			}
			step(time.Minute, core.InstanceEnded{Instance: "i1", Until: now.Add(time.Minute), Cause: "terminated"})
			if j, _ := m.Job("j"); j.Attempts()[0].Taken() != noticed || j.Attempts()[0].Live() {
				t.Errorf("it counts as interrupted: %v", !noticed)
			}
		})
	}
}
