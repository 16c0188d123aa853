package review

import (
	"math"
	"strings"
	"testing"
	"time"

	"scrimp/internal/cli/show"
	"scrimp/internal/decide/measured"
	"scrimp/internal/lib/money"
)

// The review compares the estimates of the runs that ended in its month, and of no others.
func TestReview_SaysHowFarEstimatesWere(t *testing.T) {
	begin := time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC)
	r := &Review{Month: "2026-10", Since: begin, Until: begin.AddDate(0, 1, 0), Over: true}
	run := func(job string, days int, expected, cost float64, hours ...float64) measured.Run {
		x := measured.Run{Job: job, Name: job, Kind: "experiment", State: "succeeded", Finished: begin.AddDate(0, 0, days),
			Submitted: begin.AddDate(0, 0, days-1), Currency: money.USD, Cost: money.Picos(int64(cost * 1e12)),
			ExpectedCost: new(money.Picos(int64(expected * 1e12)))}
		if len(hours) > 0 {
			x.ExpectedS, x.WorkS = new(hours[0]*3600), new(hours[1]*3600)
		}
		return x
	}
	failed := run("failed", 4, 50, 1)
	failed.State = "failed"
	r.accuracy([]measured.Run{run("next", 31, 100, 1), run("d", 30, 2, 4), run("c", 20, 8, 10, 6, 4), failed, run("b", 3, 6, 4, 3, 4),
		run("a", 0, 5, 4), run("before", -1, 100, 1, 9, 1)})
	// By hand: dollars 2/4, 8/10, 6/4, 5/4 are off by 50, 20, 50 and 25 %; hours 6/4 and 3/4 by 50 and 25 %.
	want := map[string]measured.Missed{
		"dollars": {Runs: 4, Median: 0.375, Mean: 0.3625, Bias: 0.025}, "hours": {Runs: 2, Median: 0.375, Mean: 0.375, Bias: 0.125}}
	seen := 0
	for _, m := range r.Accuracy {
		w, near := want[m.What], func(a, b float64) bool { return math.Abs(a-b) < 1e-12 }
		if m.Kind != "all" {
			continue
		}
		if seen++; m.Runs != w.Runs || !near(m.Median, w.Median) || !near(m.Mean, w.Mean) || !near(m.Bias, w.Bias) || m.Within != nil {
			t.Errorf("%+v, want %+v", m, w)
		}
	}
	if seen != 2 || len(r.Furthest) != 3 {
		t.Errorf("%+v, %+v", r.Accuracy, r.Furthest)
	}
	text := r.text(show.Place{})
	for _, line := range []string{"dollars of 4 runs: median error 37.5 %, median 2.5 % too much\n",
		"hours of 2 runs: median error 37.5 %, median 12.5 % too much\n", "d: $2.00 expected, $4.00 came out (50.0 % too little)",
		"b: $6.00 expected, $4.00 came out (50.0 % too much)"} {
		if !strings.Contains(text, line) {
			t.Errorf("%s lacks %q", text, line)
		}
	}
	if r.accuracy(nil); r.Accuracy == nil || strings.Contains(r.text(show.Place{}), "estimated") {
		t.Errorf("a line about nothing: %s", r.text(show.Place{}))
	}
}
