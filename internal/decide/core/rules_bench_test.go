package core

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/plan"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

var waiting = flag.Int("crowd", 20_000, "jobs in the queue of the benchmarks")

// crowded returns a hall with many jobs of ten teams that request an unavailable machine.
func crowded(b *testing.B) *hall {
	h := newHall(b, 10)
	h.sells(2, false)
	for i := range *waiting {
		id := fmt.Sprintf("j-%07d", i)
		h.tell(JobSubmitted{Job: id, Terms: Terms{
			Name: id, Owner: ledger.Owner{Tenant: "default", Team: fmt.Sprint("t", i%10)}, Need: plan.Need{Requirements: plan.Requirements{CPUs: 100_000}},
			Currency: money.USD, Priority: 1, Saves: true, Restart: time.Minute, Grace: 20 * time.Second, Nodes: 1, Promise: 0.9, HasBudget: true, Budget: money.FromMicros(5e6, 0),
		}})
	}
	return h
}

// BenchmarkSetLimits sets limits over many jobs (-crowd) in parts, as a server does. It reports the longest blocked
// time, in total and within the step.
func BenchmarkSetLimits(b *testing.B) {
	h := crowded(b)
	running, hours := 5, 500.0
	var longest, last time.Duration
	for n := 0; b.Loop(); n++ {
		running++
		rules := budget.Rules{Limits: []budget.Limit{
			{Scope: "all", Window: budget.Month, Dollars: new(money.Picos(9e18))},
			{Scope: budget.Scope(fmt.Sprint("team:t", n%10)), Window: budget.Week, Running: &running, GPUHours: &hours},
		}}
		for more := true; more; {
			begun := time.Now()
			more = h.admission.Prepare(&rules, 2048)
			longest = max(longest, time.Since(begun))
		}
		begun := time.Now()
		h.tell(BudgetsSet{Rules: rules})
		last = max(last, time.Since(begun))
		if h.queue.Queue.Len() != *waiting || len(h.admission.Usage) != 2 || h.admission.Usage[0].Outstanding.Use().Jobs != *waiting {
			b.Fatal("the limits do not hold")
		}
	}
	b.ReportMetric(float64(max(longest, last).Microseconds())/1e3, "ms-longest")
	b.ReportMetric(float64(last.Microseconds())/1e3, "ms-step")
}

// BenchmarkAJobThatFits measures, in market time, how long a fitting job waits behind many (-crowd) more urgent
// jobs that fit nowhere.
func BenchmarkAJobThatFits(b *testing.B) {
	h := crowded(b)
	h.submit("fits", 1, 0)
	h.at = h.at.Add(time.Hour)
	for b.Loop() {
		h.launched, h.looked = nil, 0
		h.at = h.at.Add(time.Hour)
		h.sells(2, true)
		b.ReportMetric(h.until(1).Seconds(), "s-market")
		b.ReportMetric(float64(h.looked), "looks")
		h.tell(LaunchRefused{Launch: h.step.State.Running()[0].Asked().ID(), Reason: "no_capacity"})
		h.sells(2, false)
	}
	var o market.OfferID
	if j, _ := h.Job("fits"); j.Attempt() != nil {
		o = j.Attempt().Offer()
	}
	if o != "m2" {
		b.Fatalf("it ran on %q", o)
	}
}
