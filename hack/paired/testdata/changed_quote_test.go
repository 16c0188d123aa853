package core_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/market"
)

// BenchmarkChangedQuote measures one changed quote with 1,000 running jobs and 1,000 offers: the longest step, the
// time until nothing more is due at that moment, and the size of the log records.
func BenchmarkChangedQuote(b *testing.B) {
	const jobs, offers = 1000, 1000
	m, now := core.New(), start
	longest, reviewed, logged := time.Duration(0), time.Duration(0), 0
	count := false
	step := func(body core.Body) core.Outcome {
		e := core.Event{At: now, Schema: core.Schema, Tenant: "default", Body: body}
		begun := time.Now()
		out := m.Step(e)
		took := time.Since(begun)
		if count {
			longest, reviewed = max(longest, took), reviewed+took
			text, err := json.Marshal([]any{e, out.Decisions, out.Actions, out.Postings})
			if err != nil {
				b.Fatal(err)
			}
			logged += len(text)
		}
		return out
	}
	cfg := core.DefaultConfig()
	cfg.MaxRunning = jobs
	step(core.Configured{Config: cfg})
	seen := core.MarketSeen{}
	for n := range offers {
		o := market.Offer{
			Provider: "p", Region: fmt.Sprint("r", n/100), Zone: fmt.Sprint("z", n/20), Machine: fmt.Sprint("m", n%10),
			Capacity: market.Spot, CPUs: 4, Memory: size.GiB, Speed: 1, Currency: money.USD,
		}
		rate := money.Rate(1e12 + int64(n)*1e9)
		if n/10%2 == 1 {
			o.Capacity, rate = market.OnDemand, 3*rate
		}
		o.ID = market.ID(o)
		seen.Offers = append(seen.Offers, o)
		seen.Quotes = append(seen.Quotes, market.Quote{Offer: o.ID, Rate: rate, Priced: true, Available: true, At: now})
	}
	step(seen)
	for n := range jobs {
		id := fmt.Sprintf("job%05d", n)
		out := step(core.JobSubmitted{Job: id, Terms: core.Terms{
			Currency: money.USD, Priority: 1, Restart: 3 * time.Minute, Grace: time.Minute, Saves: true, Promise: 0.99,
		}})
		for _, a := range out.Actions {
			if l, ok := a.(core.Launch); ok {
				step(core.LaunchDone{Launch: l.Attempt, Instance: "i-" + l.Attempt, Offer: l.Offer, Rate: 1e12, From: now})
				step(core.AttemptStarted{Attempt: l.Attempt, Message: 1})
			}
		}
	}
	if n := len(m.Live()); n != jobs {
		b.Fatalf("%d jobs run", n)
	}
	count = true
	for b.Loop() {
		now = now.Add(time.Minute)
		q := seen.Quotes[0]
		q.Rate, q.At = q.Rate*101/100, now
		seen.Quotes[0] = q
		out := step(core.MarketSeen{Quotes: []market.Quote{q}})
		for n := 0; n < 10*jobs && !out.Wake.IsZero() && !out.Wake.After(now); n++ {
			out = step(core.Tick{})
		}
	}
	b.ReportMetric(longest.Seconds()*1e3, "ms-longest")
	b.ReportMetric(reviewed.Seconds()*1e3/float64(b.N), "ms-reviewed")
	b.ReportMetric(float64(logged)/1e3/float64(b.N), "KB-logged")
}
