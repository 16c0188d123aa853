package pages

import (
	"strings"
	"testing"

	"scrimp/client"
	"scrimp/internal/lib/money"
)

// The review shows each part of the answer of the API, with every amount to the last digit.
func TestReview_ShowsEachPartOfTheMonth(t *testing.T) {
	t.Parallel()
	f, s := newFake(t)
	last := int64(0)
	next := func() money.Amount { // each amount is another
		last++
		return money.Picos(1_000_000_000_001 * last)
	}
	pointer := func() *money.Amount { return new(next()) }
	sum := client.ReviewSum{Currency: "USD", Spent: next(), Uses: map[client.Use]money.Amount{"useful": next(), "lost": next(), "idle": next(),
		"start-up": next(), "open": next()}, Extras: map[string]money.Amount{"tax": next()}, Jobs: 12, Losing: 1, Rest: next(),
		Top: []client.ReviewJob{{Job: "lm", Team: "vision", Cost: next(), Lost: next()}}, Foreseen: 3, Estimated: pointer(), Actual: pointer(),
		Coverage: []client.ReviewCoverage{{Tag: "ticket", Amount: next(), Share: new(0.42)}}, LostToInterruptions: pointer()}
	given := client.Proposal{ID: "given", State: "succeeded", Currency: "USD", Spent: next(), Cost: &[3]money.Amount{{}, next(), {}},
		Outcome: &client.ProposalOutcome{Text: "2 points", Value: pointer()}}
	given.Value = pointer()
	v := client.MonthReview{Month: "2026-10", Since: now, Until: now, Over: true, Whole: true, Sums: []client.ReviewSum{sum},
		Budgets:   []client.ReviewBudget{{Scope: "team:vision", Currency: "USD", Limit: next(), Spent: next(), Forecast: pointer(), Chance: new(0.31)}},
		Anomalies: []client.Anomaly{{Kind: "idle machine", About: "i-1", Since: now, Currency: "USD", AtStake: next()}}, Proposals: []client.Proposal{given},
		Taken:    []client.TakenRecommendation{{Name: "idle stop", Currency: "USD", At: now, Saved: pointer(), Expected: pointer()}},
		Accuracy: []client.EstimateError{{What: "dollars", Kind: "all", Runs: 7, Median: 0.17, Bias: -0.08, Within: new(0.73)}, {What: "hours", Kind: "x", Runs: 991}},
		Furthest: []client.EstimatePair{{Job: "off", Expected: 3.5, Actual: 8.25}},
		Maturity: []client.ReviewMark{{Capability: "allocation", Currency: "USD", Mark: "walk", Share: new(0.86), Evidence: "most has a team", Rule: "walk above 80 %"}},
		Actions:  []client.ReviewAction{{What: "stop i-1: idle machine", Command: "scrimp release i-1", Amount: next(), Currency: "USD"}}}
	f.answers["/v1/review"] = v
	text := asks(s, "GET", "/review?month=2026-10", "").Body.String()
	for _, want := range []string{"2026-10: the whole month", "by 12 jobs", "of 1 job", "Start-up", "Tax", `href="/jobs/lm"`, "42 %", "team:vision", "31 %", "idle machine", "2 points",
		"idle stop", "17 %", "-8 %", "73 %", "$3.50 expected and $8.25 actual", "allocation", "walk above 80 %", "86 %", "most has a team",
		"scrimp release i-1", "scrimp review --month 2026-10", "/data/review?month=2026-10", `<option value="2026-10" selected>`} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for n := range last {
		if want := `value="` + money.Picos(1_000_000_000_001*(n+1)).String() + `"`; !strings.Contains(text, want) {
			t.Errorf("the page lacks the amount %s", want)
		}
	}
	if strings.Contains(text, "991") || strings.Contains(text, "You see the teams") {
		t.Error("the page shows one kind of run, or leaves out teams")
	}
	v.Anomalies, v.Over, v.Sums, v.Whole = nil, false, nil, false
	f.answers["/v1/review"] = v
	for _, want := range []string{"Unknown: the month began more than 90 days ago", "Nothing was spent.", "You see the teams in which you have a role"} {
		if text := asks(s, "GET", "/review", "").Body.String(); !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}
