package core

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"scrimp/internal/decide/core/placement"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/policy"
)

// The core records a decision if the choice or its reason changes. For a job that keeps its machine, it records the
// reasons against other offers once an hour. A change of their order, or a wait for a table, does not count.
func TestDecision_IsRecordedOnlyOnChange(t *testing.T) {
	base := func() plan.Decision {
		return plan.Decision{Take: "a", Why: plan.Stays, Speed: 1, Rejected: []plan.Rejection{
			{Offer: "b", Why: plan.CostsMore}, {Offer: "c", Why: plan.Unavailable},
		}}
	}
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, c := range map[string]struct {
		change     func(d *plan.Decision)
		now, later bool // recorded at once; recorded an hour later
	}{
		"nothing":              {func(*plan.Decision) {}, false, false},
		"order of reasons":     {func(d *plan.Decision) { slices.Reverse(d.Rejected) }, false, false},
		"a reason":             {func(d *plan.Decision) { d.Rejected[1].Why = plan.CostsMore }, false, true},
		"an offer":             {func(d *plan.Decision) { d.Rejected[1].Offer = "d" }, false, true},
		"one reason less":      {func(d *plan.Decision) { d.Rejected = d.Rejected[:1] }, false, true},
		"how strict it is":     {func(d *plan.Decision) { d.Mode = policy.Certain }, true, true},
		"what is taken":        {func(d *plan.Decision) { d.Take = "b" }, true, true},
		"why":                  {func(d *plan.Decision) { d.Why = plan.Cheapest }, true, true},
		"a table is missing":   {func(d *plan.Decision) { d.TableSince = since }, false, false},
		"missing, and reasons": {func(d *plan.Decision) { d.TableSince, d.Rejected = since, nil }, false, false},
		"missing, and moves":   {func(d *plan.Decision) { d.TableSince, d.Take = since, "b" }, true, true},
		"missing, and waits":   {func(d *plan.Decision) { d.TableSince, d.Take = since, "" }, true, true},
		"missing, and slower":  {func(d *plan.Decision) { d.TableSince, d.Speed = since, 0.5 }, true, true},
	} {
		for after, want := range map[time.Duration]bool{time.Minute: c.now, time.Hour: c.later} {
			h := newHall(t, 1)
			h.sells(2, true)
			h.submit("j", 2, 1)
			j, _ := h.Job("j")
			decide := func(d plan.Decision) []Fact {
				h.step.Event, h.step.Out = &Event{At: h.at, Body: Tick{}}, &Outcome{}
				h.step.State.Begin(h.step.Event)
				h.decider.Decided(j, d)
				return h.step.Out.Facts
			}
			decide(base())
			h.at = h.at.Add(after)
			d := base()
			c.change(&d)
			if got := len(decide(d)) > 0; got != want {
				t.Errorf("%s, %v later: recorded: %v, want %v", name, after, got, want)
			}
		}
	}
}

// When a quote changes the reasons of many jobs that keep their machines, at most 64 KB of them are recorded per
// minute; the others follow in turn.
func TestDecision_LimitsRecordsPerMinute(t *testing.T) {
	h := newHall(t, 1)
	h.sells(2, true)
	const jobs = placement.StaysAMinute + 20
	for i := range jobs {
		h.submit(fmt.Sprint("j", i), 2, 1)
	}
	all := func(why plan.Reason) int {
		h.step.Event, h.step.Out = &Event{At: h.at, Body: Tick{}}, &Outcome{}
		h.step.State.Begin(h.step.Event)
		for _, j := range h.step.State.Jobs() {
			h.decider.Decided(j, plan.Decision{Take: "a", Why: plan.Stays, Speed: 1, Rejected: []plan.Rejection{{Offer: "b", Why: why}}})
		}
		return len(h.step.Out.Facts)
	}
	all(plan.CostsMore)
	for _, c := range []struct {
		after time.Duration
		want  int
	}{{59 * time.Minute, 0}, {time.Hour, placement.StaysAMinute}, {time.Second, 0}, {time.Minute, jobs - placement.StaysAMinute}, {time.Minute, 0}} {
		h.at = h.at.Add(c.after)
		if n := all(plan.Unavailable); n != c.want {
			t.Errorf("%v later %d of %d jobs record why they stay, want %d", c.after, n, jobs, c.want)
		}
	}
}
