package core_test

import (
	"iter"
	"testing"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

func each(list []ledger.Posting) iter.Seq2[ledger.Posting, error] {
	return func(yield func(ledger.Posting, error) bool) {
		for _, p := range list {
			if !yield(p, nil) {
				return
			}
		}
	}
}

// If a job repeats useful work from an older checkpoint, the core moves that work to lost, and the sums do not change.
func TestSettle_CountsRepeatedWorkAsLost(t *testing.T) {
	for _, from := range []int64{0, 25} {
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
		step(0, core.JobSubmitted{Job: "j", Terms: core.Terms{Name: "j", Currency: money.USD, Steps: 100, Saves: true, Priority: 1, Restart: time.Minute}})
		step(time.Second, core.LaunchDone{Launch: "j.1", Instance: "i1", Offer: spot.ID, Rate: 1e12, From: now})
		step(time.Minute, core.AttemptStarted{Attempt: "j.1", Message: 1})
		step(time.Hour, core.CheckpointSaved{Attempt: "j.1", Message: 2, Manifest: "m", Step: 50, Captured: now.Add(time.Hour)})
		step(time.Second, core.InstanceEnded{Instance: "i1", Until: now.Add(time.Second), Cause: "interrupted"})
		j, _ := m.Job("j")
		useful := j.Attempts()[0].Uses()[ledger.Useful]
		total := j.Attempts()[0].Cost(now)
		step(time.Second, core.LaunchDone{Launch: "j.2", Instance: "i2", Offer: spot.ID, Rate: 1e12, From: now})
		restored := ""
		if from > 0 {
			restored = "older"
		}
		step(time.Minute, core.AttemptStarted{Attempt: "j.2", Message: 1, Restored: restored, Step: from})
		left := j.Attempts()[0].Uses()[ledger.Useful]
		if want := useful.Float() * float64(from) / 50; left.Float() < want-1e-9 || left.Float() > want+1e-9 {
			t.Errorf("from step %d of 50: %v of %v are useful still", from, left, useful)
		}
		sum := money.Amount{}
		for _, u := range j.Attempts()[0].Uses() {
			sum = sum.Add(u)
		}
		if sum != total {
			t.Errorf("the uses of the first attempt are %v together, it cost %v", sum, total)
		}
		if err := ledger.Verify(each(postings)); err != nil {
			t.Error(err)
		}
	}
}
