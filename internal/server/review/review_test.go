package review

import (
	"slices"
	"strings"
	"testing"
	"time"

	"scrimp/client"
	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/charge"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/review"
	"scrimp/internal/lib/money"
)

var begin = time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC)

func day(d int) time.Time { return begin.AddDate(0, 0, d) }

// october returns the input of a month that is over.
func october() *input {
	return &input{statements: client.Chargeback{Month: "2026-10", Since: begin, Until: day(31), Over: true},
		budgets: client.Budgets{Currency: "USD"}, incidents: &client.Anomalies{}}
}

// Budgets have the spending of their scope in the month, and a forecast only while the month goes on.
func TestReview_BudgetsOfTheMonth(t *testing.T) {
	in := october()
	in.budgets.Limits = []client.BudgetLine{{Limit: client.Limit{Scope: "team:a", Window: "month", Dollars: new(money.Picos(5e14))},
		Outlook: &client.Outlook{Spent: money.Picos(4e14), Chance: 0.4}},
		{Limit: client.Limit{Scope: "all", Window: "day", Dollars: new(money.Picos(5e14))}}, {Limit: client.Limit{Scope: "all", Window: "month"}}}
	m := review.New(nil, []budget.Scope{"team:a"})
	for _, team := range []string{"a", "b", "A"} {
		m.Add(&charge.Charge{Amount: money.Picos(7), Currency: "USD", Owner: ledger.Owner{Team: team}})
	}
	m.Add(&charge.Charge{Amount: money.Picos(9), Currency: "EUR", Owner: ledger.Owner{Team: "a"}})
	if v := in.review(m); len(v.Budgets) != 1 || v.Budgets[0].Spent != money.Picos(14) || v.Budgets[0].Forecast != nil {
		t.Errorf("%+v", v.Budgets)
	}
	in.statements.Over = false
	if v := in.review(m); *v.Budgets[0].Forecast != money.Picos(4e14) || *v.Budgets[0].Chance != 0.4 {
		t.Errorf("%+v", v.Budgets[0])
	}
}

// Incidents of the month and savings become at most three actions, the largest first; another currency comes after
// that of the budgets. An incident that somebody dismissed counts as answered, and is no longer listed.
func TestReview_AnomaliesAndActions(t *testing.T) {
	in := october()
	later, ended := day(32), day(-1)
	in.incidents.Anomalies = []client.Anomaly{{About: "a", Kind: "idle machine", Since: begin, Currency: "USD", AtStake: money.Picos(3e12)},
		{About: "b", Kind: "spend", Since: begin, Until: &later, Currency: "USD", AtStake: money.Picos(9e12), State: client.AnomalyConfirmed},
		{About: "no", Since: begin, Currency: "USD", State: client.AnomalyDismissed, AtStake: money.Picos(90e12)},
		{About: "plan", Since: begin, Currency: "USD", State: client.AnomalyPlanned}, {About: "snooze", Since: begin, State: client.AnomalySnoozed},
		{About: "c", Since: later, Currency: "USD", AtStake: money.Picos(99e12)}, {About: "d", Since: ended, Until: &ended, Currency: "USD"}}
	saves := func(about, currency string, amount int64) client.WasteFinding {
		return client.WasteFinding{Kind: "unused machine", Action: "stop", About: about, Command: "scrimp x", Currency: money.Currency(currency),
			Saving: new(money.Picos(amount))}
	}
	in.waste.Findings = []client.WasteFinding{saves("e", "EUR", 50e12), saves("f", "USD", 4e12), saves("g", "USD", 2e12), {About: "h", Currency: "USD"}}
	v := in.review(review.New(nil, nil))
	if len(v.Anomalies) != 2 || v.Anomalies[0].About != "b" {
		t.Errorf("%+v", v.Anomalies)
	}
	if m := v.Maturity[len(v.Maturity)-1]; m.Evidence != "3 of 5 incidents confirmed, dismissed or planned" || m.Mark != "crawl" {
		t.Errorf("%+v", m)
	}
	var got []string
	for _, a := range v.Actions {
		got = append(got, a.What+" "+a.Amount.String())
	}
	if text := strings.Join(got, "; "); text != "stop f: unused machine 4; look into a: idle machine 3; stop g: unused machine 2" {
		t.Error(text)
	}
	in.incidents = nil
	if v := in.review(review.New(nil, nil)); v.Anomalies != nil || v.Maturity[0].Mark != "" {
		t.Errorf("incidents of a month too long ago: %+v", v)
	}
}

// The review has the proposals that something happened to in its month.
func TestReview_ProposalsOfTheMonth(t *testing.T) {
	made := func(id string, d int) client.Proposal { return client.Proposal{ID: id, State: "held", At: day(d)} }
	decided, given := made("decided", -9), made("given", -9)
	decided.Approval = &client.Approval{At: new(day(3)), Approved: new(true)}
	given.Approval, given.OutcomeAt = &client.Approval{At: new(day(-8))}, new(day(30))
	in := october()
	in.proposals.Proposals = []client.Proposal{made("before", -1), made("first", 0), decided, given, made("next", 31)}
	var ids []string
	for _, p := range in.review(review.New(nil, nil)).Proposals {
		ids = append(ids, p.ID)
	}
	if want := []string{"first", "decided", "given"}; !slices.Equal(ids, want) {
		t.Errorf("%v, want %v", ids, want)
	}
}

// The review has the recommendations whose measurement touches its month.
func TestReview_RecommendationsOfTheMonth(t *testing.T) {
	in := october()
	for _, d := range []int{31, 30, 2, -29, -30, -60} {
		in.taken = append(in.taken, client.TakenRecommendation{Name: "idle stop", At: day(d)})
	}
	v := in.review(review.New(nil, nil))
	if len(v.Taken) != 3 || !v.Taken[0].At.Equal(day(30)) || !v.Taken[2].At.Equal(day(-29)) {
		t.Errorf("%+v", v.Taken)
	}
}

// Estimates are those of the lines since the month began, less those since it ended.
func TestReview_EstimatesAreOfTheMonthAlone(t *testing.T) {
	line := func(n int, estimated, actual int64) []client.CostLine {
		return []client.CostLine{{Currency: "USD", Foreseen: n, Estimated: new(money.Picos(estimated)), Actual: new(money.Picos(actual))}, {Currency: "EUR"}}
	}
	in, m := october(), review.New(nil, nil)
	in.from.Lines, in.after.Lines = append(line(3, 300, 330), line(1, 10, 5)...), line(2, 100, 150)
	in.foresee(m)
	if v := in.review(m); len(v.Sums) != 1 || v.Sums[0].Foreseen != 2 || *v.Sums[0].Estimated != money.Picos(210) || *v.Sums[0].Actual != money.Picos(185) {
		t.Errorf("%+v", v.Sums)
	}
}
