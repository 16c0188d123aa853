package server

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"scrimp/client"
	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/core"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/test/eventually"
	"scrimp/internal/test/must"
	"scrimp/internal/wire/api"
)

// A running job without a deadline has a forecast: its remaining steps at its pace and price.
func TestOutlook_OfRunningJobIsRestTimesPrice(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, deaf{}, nil)
	w.runsAt60Of100()
	w.forecasts(func() bool { return w.odds.Outlook("lm") != nil })
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

// A job that waits for the only place costs what its plan says, and starts when the job before it ends. One whose work
// nobody states has no estimate.
func TestEstimate_OfWaitingJobIsItsPlan(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, deaf{}, nil)
	w.limit(budget.Limit{Scope: budget.All, Window: budget.Month, Running: new(1)})
	w.runsAt60Of100()
	spec := costing("next", "", `,"checkpoint":{"dir":"c"},"work":{"steps":100,"time":"10h"}`)
	w.must("POST", "/v1/jobs", strings.TrimSuffix(spec, "}")+`,"accept_unproven":true}`, nil)
	w.must("POST", "/v1/jobs", costing("last", "", ""), nil)
	w.forecasts(func() bool { e := w.odds.Estimate("next"); return e != nil && e.StartS != nil })
	var before, next, last api.Job
	w.must("GET", "/v1/jobs/lm", nil, &before)
	w.must("GET", "/v1/jobs/next", nil, &next)
	w.must("GET", "/v1/jobs/last", nil, &last)
	var planned client.Plan
	w.must("POST", "/v1/plan", spec, &planned)
	if next.Estimate == nil || next.Estimate.StartS == nil || planned.CostUSD == nil {
		t.Fatalf("%+v, and the plan is %+v", next, planned)
	}
	usd := next.Estimate.Cost[1]
	if math.Abs(usd-planned.CostUSD[1]) > 0.02*usd || usd < 10 || usd > 10.5 {
		t.Errorf("10 h at a dollar an hour cost $%.3f, and the plan says $%.3f", usd, planned.CostUSD[1])
	}
	if start := next.Estimate.StartS[1] / 60; start < 30 || start > 60 {
		t.Errorf("it starts in %.1f min, and the job before it needs 40", start)
	}
	if next.Outlook != nil || before.Estimate != nil || last.Estimate != nil {
		t.Errorf("of a waiting job %+v, of a running one %+v, of one of unknown length %+v", next.Outlook,
			before.Estimate, last.Estimate)
	}
}

// The list of jobs that need attention has those that wait, and running ones that may miss their deadline or have missed
// it, and no others.
func TestList_AttentionHasJobsThatWaitOrMayBeLate(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, deaf{}, nil)
	w.limit(budget.Limit{Scope: budget.All, Window: budget.Month, Running: new(1)})
	w.runsAt60Of100()
	w.must("POST", "/v1/jobs", costing("next", "", ""), nil)
	w.must("POST", "/v1/jobs", costing("over", "", ""), nil)
	w.must("POST", "/v1/jobs/over/end", api.End{}, nil)
	w.until(func(m *core.Machine) bool { j, ok := m.Job("over"); return !ok || j.State().Over() })
	lists := func(when string, want ...string) {
		t.Helper()
		var all, some []api.Job
		w.must("GET", "/v1/jobs?attention=1", nil, &some)
		w.must("GET", "/v1/jobs", nil, &all)
		var got, plain []string
		for _, j := range some {
			got = append(got, j.ID)
		}
		for _, j := range all {
			if j.State == "queued" || j.Finished == nil && (j.Odds != nil && *j.Odds < 0.9 || j.TimeLeft != nil && *j.TimeLeft < 0) {
				plain = append(plain, j.ID)
			}
		}
		var sums client.JobTotals
		if w.must("GET", "/v1/totals?attention=1", nil, &sums); len(sums.Total) != 1 || sums.Total[0].Jobs != len(want) {
			t.Errorf("%s: the totals are %+v", when, sums.Total)
		}
		if len(all) != 3 || !slices.Equal(got, want) || !slices.Equal(plain, want) {
			t.Errorf("%s: %v of %d need attention, by their properties %v, want %v", when, got, len(all), plain, want)
		}
	}
	lists("a job runs without a deadline", "next")
	for _, c := range []struct {
		deadline string
		late     bool
	}{{"in 200h", false}, {"in 20m", true}} {
		w.must("PATCH", "/v1/jobs/lm", api.Changes{Deadline: &c.deadline, AcceptLate: c.late}, nil)
		w.forecasts(func() bool { return w.odds.InTime("lm") != nil })
		if c.late {
			lists("it ends too late", "lm", "next")
		} else {
			lists("it has time", "next")
		}
	}
}

// forecasts runs the forecaster until a condition holds.
func (w *world) forecasts(until func() bool) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan struct{})
	go func() { defer close(done); w.odds.Run(ctx) }()
	eventually.True(w.t, "the job has a forecast", until)
	cancel()
	<-done
}

// runsAt60Of100 makes the job lm, which has run for an hour on the only offer, for a dollar an hour: a step a minute.
func (w *world) runsAt60Of100() {
	w.t.Helper()
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
		p := core.Progressed{Attempt: "lm.1", Message: i + 2, Step: 10 * (i + 1), Total: 100, Metrics: map[string]float64{}}
		for n := range int64(10) {
			p.Metrics[fmt.Sprint("m", n)] = float64(n+1) / float64(i+1)
		}
		tell(time.Duration(i+1)*10*time.Minute, p)
	}
	must.Do(w.t, w.control.Propose(w.t.Context(), events...))
}
