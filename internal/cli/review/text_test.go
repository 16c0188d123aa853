package review

import (
	"strings"
	"testing"
	"time"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
)

var begin = time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC)

// The line of estimates counts every job of the month: those with an estimate, and those without with the reason.
func TestText_CountsTheJobsWithoutAnEstimate(t *testing.T) {
	for _, c := range []struct {
		jobs, foreseen int
		want, not      string
	}{{6, 1, "  without      5 jobs: no success, or no expected cost when they began", ""}, {2, 2, "of 2 jobs", "without"},
		{3, 0, "  without      3 jobs", "estimated"}} {
		s := &sum{api.ReviewSum{Currency: "USD", Jobs: c.jobs, Foreseen: c.foreseen}}
		if c.foreseen > 0 {
			s.Estimated, s.Actual = new(money.Picos(2e12)), new(money.Picos(1e12))
		}
		var b strings.Builder
		s.estimates(&b, show.Place{Width: 80, Now: begin})
		if !strings.Contains(b.String(), c.want) || c.not != "" && strings.Contains(b.String(), c.not) {
			t.Errorf("%d of %d: %s", c.foreseen, c.jobs, b.String())
		}
	}
}

func TestText_FitsTheTerminalAndNamesTheUnknown(t *testing.T) {
	usd := api.ReviewSum{Currency: "USD", Spent: money.Picos(9e12), Uses: map[api.Use]money.Amount{"useful": money.Picos(6e12), "lost": money.Picos(3e12)},
		Extras: map[string]money.Amount{"tax": money.Picos(1e12)}, Jobs: 1, Losing: 1, Top: []api.ReviewJob{{Job: "lm", Cost: money.Picos(9e12)}},
		Coverage: []api.ReviewCoverage{{Tag: "team", Share: new(0.25)}, {Tag: "model_version"}}}
	r := page{Month: "2026-10", Since: begin, Until: begin.AddDate(0, 1, 0), Over: true, Whole: true, Sums: []api.ReviewSum{usd},
		Maturity: []api.ReviewMark{{Capability: "allocation", Mark: "walk", Evidence: "$8.50 of $9.00 has a team", Rule: "walk above 80 %"},
			{Capability: "anomaly management", Evidence: "the incidents are unknown"}},
		Actions: []api.ReviewAction{{What: "stop \x1b[31mi-1: idle machine" + strings.Repeat(" that waits", 12), Command: "scrimp release i-1", Amount: money.Picos(5e12), Currency: "USD"}}}
	text := r.text(show.Place{Width: 80, Now: begin})
	for _, line := range strings.Split(text, "\n") {
		if draw.Width(line) > 80 || strings.Contains(line, "\x1b") {
			t.Errorf("%d columns: %s", draw.Width(line), line)
		}
	}
	for _, want := range []string{"Review of 2026-10: the whole month", "interruptions  - (some cost has no team)", "estimates      -", "more than 90 days ago",
		"next 1", "(the rest)", "team 25 %, model_version -", "tax", "allocation: walk ($8.50 of $9.00 has a team;", "anomaly management: - (the"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q:\n%s", want, text)
		}
	}
	if text := (page{Month: "2026-11", Since: begin}).text(show.Place{}); !strings.Contains(text, "Nothing was spent.") {
		t.Error(text)
	}
}

// The page says how far the estimates were off, and by how much those that were furthest.
func TestText_SaysHowFarEstimatesWere(t *testing.T) {
	r := page{Accuracy: []api.EstimateError{{What: "dollars", Kind: "all", Runs: 4, Median: 0.375, Bias: 0.025}, {What: "hours", Kind: "all", Runs: 2, Median: 0.375, Bias: -0.125, Within: new(0.5)},
		{What: "hours", Kind: "experiment"}},
		Furthest: []api.EstimatePair{{Job: "d", Expected: 2, Actual: 4}, {Job: "b", Expected: 6, Actual: 4}}}
	text := r.text(show.Place{})
	for _, line := range []string{"dollars of 4 runs: median error 37.5 %, median 2.5 % too much\n", "hours of 2 runs: median error 37.5 %, median 12.5 % too little, 50 % of the ranges held\n",
		"d: $2.00 expected, $4.00 came out (50.0 % too little)", "b: $6.00 expected, $4.00 came out (50.0 % too much)"} {
		if !strings.Contains(text, line) {
			t.Errorf("%s lacks %q", text, line)
		}
	}
	if strings.Contains((page{}).text(show.Place{}), "estimated") {
		t.Error("a line about nothing")
	}
}

// The page says what each recommendation and each proposal has given.
func TestText_SaysWhatWasGained(t *testing.T) {
	given := api.Proposal{ID: "given", State: "succeeded", Currency: "USD", Spent: money.Picos(7e12), Cost: &[3]money.Amount{{}, money.Picos(6e12), {}},
		Approval: &api.Approval{Approved: new(true)}, Outcome: &api.ProposalOutcome{Text: "2 points", Value: new(money.Picos(40e12))}}
	given.Value = new(money.Picos(50e12))
	refused := api.Proposal{ID: "refused", State: "cancelled", Currency: "USD", Approval: &api.Approval{Approved: new(false)}}
	first := api.Proposal{ID: "first", State: "held", Currency: "USD", Proposing: api.Proposing{ValueText: "a paper"}}
	left := api.Proposal{ID: "left", State: "stopped", Currency: "USD", Approval: &api.Approval{}}
	r := page{Proposals: []api.Proposal{first, refused, left, given}, Taken: []api.TakenRecommendation{
		{Name: "idle stop", Team: "vision", Currency: "USD", At: begin, Days: 30, Expected: new(money.Picos(12e12)), Saved: new(money.Picos(9e12))},
		{Name: "idle stop", Currency: "USD", At: begin, Days: 2}}}
	text := r.text(show.Place{})
	for _, want := range []string{"4: 1 approved, 1 rejected, 1 wait, 1 ended without a decision",
		"given (succeeded): $6.00 planned, $7.00 spent, $50.00 expected, gave $40.00 2 points",
		"first (held): unknown planned, $0.00 spent, a paper expected, no outcome recorded", "2 recommendations",
		"idle stop of vision: $9.00 saved, $12.00 expected, in the 30.0 days since 2026-10-01", "idle stop: - saved, - expected, in the 2.0 days"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s lacks %q", text, want)
		}
	}
}
