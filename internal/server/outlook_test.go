package server

import (
	"context"
	"testing"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/test/await"
	"scrimp/internal/wire/api"
)

// A running job without a deadline has a forecast: its remaining steps at its pace and price.
func TestOutlook_OfRunningJobIsRestTimesPrice(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, deaf{}, nil)
	w.event(core.MarketSeen{
		Offers: []market.Offer{{ID: "p/z/m/on-demand", Provider: "p", Zone: "z", Machine: "m", Capacity: market.OnDemand,
			Currency: money.USD, CPUs: 8, Memory: 1 << 40, Speed: 1}},
		Quotes: []market.Quote{{Offer: "p/z/m/on-demand", Rate: 1e12, Priced: true, Available: true, At: w.control.Now()}}}, 0)
	w.must("POST", "/v1/jobs", costing("lm", "", `,"work":{"steps":100}`), nil)
	w.until(func(m *core.Machine) bool { _, asked := m.Allocation("lm.1"); return asked })
	var events []core.Event
	var at time.Time
	w.control.Read(func(m *core.Machine) { at = m.Now() })
	tell := func(after time.Duration, b core.Body) {
		events = append(events, core.Event{At: at.Add(after), Schema: core.Schema, Tenant: "default", Body: b})
	}
	tell(0, core.LaunchDone{Launch: "lm.1", Instance: "i", Offer: "p/z/m/on-demand", Rate: 1e12, From: at})
	tell(0, core.AgentClaimed{Attempt: "lm.1"})
	tell(0, core.AttemptStarted{Attempt: "lm.1", Message: 1})
	for i := range int64(6) { // a step a minute
		tell(time.Duration(i+1)*10*time.Minute, core.Progressed{Attempt: "lm.1", Message: i + 2, Step: 10 * (i + 1), Total: 100})
	}
	if err := w.control.Propose(t.Context(), events...); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); w.odds.Run(ctx) }()
	await.True(t, "the job has a forecast", func() bool { return w.odds.Outlook("lm") != nil })
	cancel()
	<-done
	var j api.Job
	w.must("GET", "/v1/jobs/lm", nil, &j)
	if j.Outlook == nil || j.Odds != nil {
		t.Fatalf("outlook %+v, odds %v", j.Outlook, j.Odds)
	}
	minutes, usd := j.Outlook.FinishS[1]/60, j.Outlook.Cost[1]
	if minutes < 35 || minutes > 50 || usd < minutes/60*0.9 || usd > minutes/60*1.1 {
		t.Errorf("40 steps at a step a minute and a dollar an hour take %.1f min and cost %.3f", minutes, usd)
	}
}
