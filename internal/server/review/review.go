// Package review answers with the review of a month's spending. It reads the charges of the month from the ledger, and
// everything else as the caller would, from the other handlers of the API.
package review

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"scrimp/client"
	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/charge"
	"scrimp/internal/decide/review"
	"scrimp/internal/decide/runhistory"
	"scrimp/internal/lib/identity"
	"scrimp/internal/lib/money"
	"scrimp/internal/server/ask"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/reply"
	"scrimp/internal/view/convert"
)

// Service answers the requests.
type Service struct {
	Now func() time.Time // of the market
	// EachCharge calls f with each charge of a span that the caller may see.
	EachCharge func(ctx context.Context, caller identity.Caller, span charge.Span, f func(charge.Charge) error) error
	// Unread answers that the ledger was not read.
	Unread func(w http.ResponseWriter, title string, err error)
	// The other handlers of the API.
	Chargeback, Budgets, Costs, Measured, Anomalies, Proposals, Taken, Waste http.HandlerFunc
}

// Get answers with the review of a month.
func (d *Service) Get(w http.ResponseWriter, r *http.Request) {
	in, no := d.read(r)
	if no != nil {
		no.Send(w)
		return
	}
	scopes := []budget.Scope{}
	for _, l := range in.limits() {
		scopes = append(scopes, budget.Scope(l.Limit.Scope))
	}
	m := review.New(slices.Collect(maps.Keys(in.budgets.Tags)), scopes)
	in.foresee(m)
	month := charge.Span{Since: in.statements.Since, Until: charge.NextMonth(in.statements.Since)}
	err := d.EachCharge(r.Context(), auth.CallerOf(r), month, func(c charge.Charge) error {
		m.Add(&c)
		return nil
	})
	if err != nil {
		d.Unread(w, "cannot read the ledger", err)
		return
	}
	reply.JSON(w, in.review(m))
}

// input is what a review rests on besides the charges.
type input struct {
	statements client.Chargeback
	budgets    client.Budgets
	from       client.Costs // since the month began
	after      client.Costs // since the month ended; without lines if it goes on
	past       []client.Run
	incidents  *client.Anomalies // with those that are dismissed, planned or snoozed; nil: it is too long ago
	proposals  client.Proposals
	taken      []client.TakenRecommendation
	waste      client.Waste
}

// anomaliesMost is how far back the server finds anomalies.
const anomaliesMost = 90 * 24 * time.Hour

// read asks the other handlers as the caller of r. It returns the first refusal.
func (d *Service) read(r *http.Request) (*input, *ask.Answer) {
	in := &input{}
	month := url.Values{"month": {r.URL.Query().Get("month")}, "rule": {"proportional"}}
	if no := ask.Get(r, d.Chargeback, "/v1/chargeback?"+month.Encode(), "", &in.statements); no != nil {
		return nil, no
	}
	now, of := d.Now(), in.statements
	costs := func(since time.Time) string {
		return "/v1/costs?" + url.Values{"by": {"team"}, "since": {spanOf(now.Sub(since))}}.Encode()
	}
	all := []question{
		{d.Budgets, "/v1/budgets", &in.budgets}, {d.Costs, costs(of.Since), &in.from},
		{d.Measured, "/v1/measured?expected=1&limit=1000", &in.past}, {d.Proposals, "/v1/proposals", &in.proposals},
		{d.Taken, "/v1/recommend/taken", &in.taken}, {d.Waste, "/v1/waste?since=30d", &in.waste},
	}
	if of.Over {
		all = append(all, question{d.Costs, costs(of.Until), &in.after})
	}
	if back := now.Sub(of.Since); back <= anomaliesMost && back > 0 {
		in.incidents = &client.Anomalies{}
		all = append(all, question{d.Anomalies, "/v1/anomalies?all=1&since=" + spanOf(back), in.incidents})
	}
	for _, q := range all {
		if no := ask.Get(r, q.of, q.path, "", q.out); no != nil {
			return nil, no
		}
	}
	return in, nil
}

// question is a request to a handler.
type question struct {
	of   http.HandlerFunc
	path string
	out  any
}

// spanOf formats a span until now in whole seconds.
func spanOf(d time.Duration) string { return max(d, 0).Truncate(time.Second).String() }

// limits returns the limits of dollars per month.
func (in *input) limits() (list []client.BudgetLine) {
	for _, l := range in.budgets.Limits {
		if l.Limit.Window == string(budget.Month) && l.Limit.Dollars != nil {
			list = append(list, l)
		}
	}
	return list
}

// foresee adds the estimates of the jobs that ended in the month: of those since its begin, less those since its end.
func (in *input) foresee(m *review.Month) {
	add := func(lines []client.CostLine, sign int) {
		for _, l := range lines {
			if l.Foreseen > 0 && l.Estimated != nil && l.Actual != nil {
				m.Foresee(l.Currency, sign*l.Foreseen, *l.Estimated, *l.Actual)
			}
		}
	}
	add(in.from.Lines, 1)
	add(in.after.Lines, -1)
}

// review makes the page of the charges of the month.
func (in *input) review(m *review.Month) client.MonthReview {
	of := in.statements
	lost := map[money.Currency]money.Amount{}
	for _, s := range of.Statements {
		lost[s.Currency] = lost[s.Currency].Add(s.LostToInterrupts)
	}
	m.Interrupted(lost)
	sums := m.Sums()
	accuracy, furthest := review.Accuracy(convert.To[[]runhistory.Run](in.past), of.Since, of.Until)
	v := client.MonthReview{Month: of.Month, Since: of.Since, Until: of.Until, Over: of.Over, Whole: of.Whole,
		Sums: convert.To[[]client.ReviewSum](sums), Budgets: in.budgeted(m), Proposals: in.proposed(), Taken: in.measured(),
		Accuracy: convert.To[[]client.EstimateError](accuracy), Furthest: convert.To[[]client.EstimatePair](furthest)}
	answers := in.anomalies(&v)
	v.Maturity = convert.To[[]client.ReviewMark](review.Marks(sums, answers))
	v.Actions = in.actions(v.Anomalies)
	return v
}

// budgeted lists the limits of dollars per month with the spending of their scopes.
func (in *input) budgeted(m *review.Month) []client.ReviewBudget {
	list := []client.ReviewBudget{}
	for _, l := range in.limits() {
		one := client.ReviewBudget{Scope: l.Limit.Scope, Currency: in.budgets.Currency, Limit: *l.Limit.Dollars,
			Spent: m.Spent(in.budgets.Currency, budget.Scope(l.Limit.Scope))}
		if l.Outlook != nil && !in.statements.Over {
			one.Forecast, one.Chance = &l.Outlook.Spent, &l.Outlook.Chance
		}
		list = append(list, one)
	}
	return list
}

// within reports whether a time is in the month.
func (in *input) within(t *time.Time) bool {
	return t != nil && !t.Before(in.statements.Since) && t.Before(in.statements.Until)
}

// proposed keeps the proposals that were made, decided or given an outcome within the month, newest first.
func (in *input) proposed() []client.Proposal {
	list := []client.Proposal{}
	for _, p := range in.proposals.Proposals {
		if in.within(&p.At) || p.Approval != nil && in.within(p.Approval.At) || in.within(p.OutcomeAt) {
			list = append(list, p)
		}
	}
	slices.SortStableFunc(list, func(a, b client.Proposal) int { return b.At.Compare(a.At) })
	return list
}

// measured keeps the recommendations that were measured within the month: in the 30 days since they were taken.
func (in *input) measured() []client.TakenRecommendation {
	list := []client.TakenRecommendation{}
	for _, t := range in.taken {
		if t.At.Before(in.statements.Until) && t.At.Add(30*24*time.Hour).After(in.statements.Since) {
			list = append(list, t)
		}
	}
	return list
}

// hidden are the answers that take an incident out of lists.
var hidden = []string{client.AnomalyPlanned, client.AnomalyDismissed, client.AnomalySnoozed}

// anomalies sets the incidents that went on within the month, the dearest of each currency first, and counts those
// that people have said something about.
func (in *input) anomalies(v *client.MonthReview) *review.Answers {
	if in.incidents == nil {
		return nil
	}
	v.Anomalies = []client.Anomaly{}
	answers := &review.Answers{}
	for _, a := range in.incidents.Anomalies {
		if !a.Since.Before(v.Until) || a.Until != nil && !a.Until.After(v.Since) {
			continue
		}
		answers.Incidents++
		if a.State != "" && a.State != client.AnomalySnoozed {
			answers.Answered++
		}
		if !slices.Contains(hidden, a.State) {
			v.Anomalies = append(v.Anomalies, a)
		}
	}
	slices.SortStableFunc(v.Anomalies, func(a, b client.Anomaly) int {
		return cmp.Or(strings.Compare(string(a.Currency), string(b.Currency)), b.AtStake.Cmp(a.AtStake))
	})
	return answers
}

const mostActions = 3

// actions lists what to do next: the largest saving that waste has, and the dearest incidents that go on. Amounts of
// the budgets' currency come first, because amounts of two currencies do not compare.
func (in *input) actions(incidents []client.Anomaly) []client.ReviewAction {
	list, first := []client.ReviewAction{}, in.budgets.Currency
	for _, f := range in.waste.Findings {
		if f.Saving != nil && f.Saving.Sign() > 0 {
			list = append(list, client.ReviewAction{What: f.Action + " " + f.About + ": " + f.Kind, Command: f.Command,
				Amount: *f.Saving, Currency: f.Currency})
		}
	}
	for _, a := range incidents {
		if a.Until == nil && a.AtStake.Sign() > 0 {
			list = append(list, client.ReviewAction{What: "look into " + a.About + ": " + a.Kind,
				Command: "scrimp anomalies", Amount: a.AtStake, Currency: a.Currency})
		}
	}
	slices.SortStableFunc(list, func(a, b client.ReviewAction) int {
		if (a.Currency == first) != (b.Currency == first) {
			return map[bool]int{true: -1, false: 1}[a.Currency == first]
		}
		return cmp.Or(strings.Compare(string(a.Currency), string(b.Currency)), b.Amount.Cmp(a.Amount))
	})
	return list[:min(len(list), mostActions)]
}
