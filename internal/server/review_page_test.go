package server

import (
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"
	"strings"
	"testing"
	"time"

	"scrimp/client"
	"scrimp/internal/decide/core"
	"scrimp/internal/lib/identity"
	"scrimp/internal/lib/money"
	"scrimp/internal/test/must"
	"scrimp/internal/wire/api"
)

// reviewed is a world with spending of two teams that is useful, lost and idle, a budget, and a proposal.
func reviewed(t *testing.T) *world {
	w := newWorldOf(t, &firm{}, func(o *Options) { o.Rate = 1e6 })
	w.idles(8 * time.Hour)
	w.must("POST", "/v1/groups", inArray("sweep", "team-1", "0-1", ""), nil)
	w.began("sweep", 2)
	for n, id := range w.booting(2) {
		w.event(core.AttemptStarted{Attempt: id, Message: 1}, 35*time.Hour)
		w.event(core.AttemptEnded{Attempt: id, Message: 2, Reason: []string{"completed", "failed"}[n]}, 38*time.Hour)
		w.event(core.InstanceEnded{Instance: w.instance(id), Until: w.control.Now().Add(38 * time.Hour), Cause: "terminated"}, 38*time.Hour)
	}
	w.must("PUT", "/v1/budgets", `{"limit":{"scope":"team:team-0","window":"month","dollars":"5000"}}`, nil)
	return w
}

// shownAmount finds an amount of a page with its exact value.
var shownAmount = regexp.MustCompile(`<data class="money[^"]*" value="([^"]*)"`)

// The review has the sums of the ledger, of a FOCUS file, of scrimp costs and of the statements, and its page shows
// each of its figures to the last digit, and no amount besides.
func TestReviewPage_ShowsTheSumsOfTheLedger(t *testing.T) {
	t.Parallel()
	w := reviewed(t)
	ann := w.signedIn(w.user("ann", identity.Grant{Team: "*", Role: identity.Admin}))
	month := w.control.Now().UTC().Format("2006-01")
	text := ann.shows("/review?month="+month, 200, "scrimp review --month "+month, "/data/review?month="+month, "Maturity", "<h1>Review</h1>")
	var v client.MonthReview
	must.Do(t, json.Unmarshal([]byte(ann.shows("/data/review?month="+month, 200)), &v))
	if len(v.Sums) != 1 || len(v.Budgets) != 1 || len(v.Maturity) != 5 || len(v.Sums[0].Top) < 3 || v.Month != month || !v.Whole || v.Over {
		t.Fatalf("%+v", v)
	}
	s := v.Sums[0]
	figures := map[string]bool{}
	add := func(list ...money.Amount) {
		for _, a := range list {
			figures[a.String()] = true
		}
	}
	add(s.Spent, s.Rest, v.Budgets[0].Spent, v.Budgets[0].Limit, *v.Budgets[0].Forecast, s.Uses["useful"], s.Uses["lost"], s.Uses["idle"],
		s.Uses["start-up"], s.Uses["open"])
	for _, a := range []*money.Amount{s.LostToInterruptions, s.Estimated, s.Actual} {
		if a != nil {
			add(*a)
		}
	}
	for _, j := range s.Top {
		add(j.Cost, j.Lost)
	}
	for _, c := range s.Coverage {
		add(c.Amount)
	}
	for _, a := range v.Actions {
		add(a.Amount)
	}
	for _, a := range v.Anomalies {
		add(a.AtStake)
	}
	shown := map[string]bool{}
	for _, m := range shownAmount.FindAllStringSubmatch(text, -1) {
		if shown[m[1]] = true; !figures[m[1]] {
			t.Errorf("the page shows %s, the review has no such amount", m[1])
		}
	}
	for a := range figures {
		if !shown[a] {
			t.Errorf("the page lacks %s", a)
		}
	}
	for _, m := range v.Maturity {
		for _, want := range []string{m.Capability, m.Evidence, m.Rule} {
			if !strings.Contains(text, want) {
				t.Errorf("the page lacks %s", want)
			}
		}
	}
	w.addsUp(t, v)
	ann.shows("/costs", 200, `href="/review"`) // the navigation
	ann.shows("/review?month=1999-01", 200, "Nothing was spent in this month")
	ann.shows("/review?month=9999-01", 400, "has not begun")
	vic := w.signedIn(w.user("vic", identity.Grant{Team: "team-1", Role: identity.Viewer}))
	text = vic.shows("/review?month="+month, 200, "You see the teams in which you have a role", "sweep.0")
	if strings.Contains(text, "/jobs/fit") {
		t.Error("a viewer of one team sees the jobs of another")
	}
}

// addsUp compares a review with a FOCUS file of its month, with scrimp costs and with the statements.
func (w *world) addsUp(t *testing.T, v client.MonthReview) {
	t.Helper()
	s, end := v.Sums[0], v.Since.AddDate(0, 1, 0).Format("2006-01")
	file := w.focus("1.4", fmt.Sprintf("&since=%s&until=%s", v.Month, end))
	by := map[string]*big.Rat{}
	for key, sum := range file.By { // by team and outcome
		team, use, _ := strings.Cut(key, ",")
		for _, name := range []string{"team " + team, "use " + use} {
			if by[name] == nil {
				by[name] = new(big.Rat)
			}
			by[name].Add(by[name], sum)
		}
	}
	same := func(what string, a money.Amount, want *big.Rat) {
		t.Helper()
		if want == nil && !a.IsZero() || want != nil && rat(a).Cmp(want) != 0 {
			t.Errorf("%s is %v in the review, and %v in the file", what, a, want)
		}
	}
	same("spending", s.Spent, file.Cost)
	for team, a := range s.Teams {
		same("team "+team, a, by["team "+team])
	}
	for use, a := range s.Uses {
		same("use "+string(use), a, by["use "+string(use)])
	}
	same("the budget's spending", v.Budgets[0].Spent, by["team team-0"])
	same("what is under a budget", s.Budgeted, by["team team-0"])
	var costs api.Costs
	w.must("GET", "/v1/costs?by=job", nil, &costs)
	all := money.Amount{}
	for _, l := range costs.Lines {
		all = all.Add(l.Spent)
		for _, j := range s.Top {
			if j.Job == l.Name && j.Cost != l.Spent {
				t.Errorf("%s cost %v by the review, and %v by scrimp costs", j.Job, j.Cost, l.Spent)
			}
		}
	}
	if all != s.Spent {
		t.Errorf("%v by the review, and %v by scrimp costs", s.Spent, all)
	}
	var statements client.Chargeback
	w.must("GET", "/v1/chargeback?month="+v.Month, nil, &statements)
	for _, of := range statements.Statements {
		if s.Teams[of.Team] != of.Own {
			t.Errorf("%s: %v by the review, and %v by its statement", of.Team, s.Teams[of.Team], of.Own)
		}
	}
}
