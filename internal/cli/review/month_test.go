package review

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/decide/charge"
	"scrimp/internal/decide/focus"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
	"scrimp/internal/test/must"
)

var begin = time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC)

// drawn draws charges of a month, of jobs with and without a team, with odd names, tags and corrections of a bill.
func drawn(seed uint64) (list []charge.Charge) {
	rng := rand.New(rand.NewPCG(seed, 1))
	pick := func(of ...string) string { return of[rng.IntN(len(of))] }
	for range 400 {
		at := begin.Add(time.Duration(rng.IntN(700)) * time.Hour)
		n := rng.IntN(30)
		c := charge.Charge{Begin: at, End: at.Add(time.Hour), Amount: money.Picos(rng.Int64N(9e12)), Currency: "USD", Category: ledger.Compute,
			Use: ledger.Use(pick("useful", "lost", "start-up", "idle", "open")), Provider: "p",
			Owner: ledger.Owner{Team: fmt.Sprint("team-", n%3), Job: fmt.Sprint(2000 + n)}}
		switch rng.IntN(8) {
		case 0:
			c.Owner.Team, c.Owner.Job = "", ""
		case 1:
			c.Rule, c.Corrects = ledger.ReconciledRule(pick("tax", "credit", "commitment", "price")), true
			if rng.IntN(2) == 0 {
				c.Amount = c.Amount.Neg()
			}
		case 2:
			c.Currency = "EUR"
		}
		if n%2 == 0 {
			c.Owner.Project, c.Owner.Tags = "p1", map[string]string{"ticket": "T 1", "user": "nobody"}
		}
		list = append(list, c)
	}
	return list
}

// reviewed reads the charges as the command does, from a FOCUS file.
func reviewed(t *testing.T, list []charge.Charge, scopes ...string) *Review {
	t.Helper()
	var file bytes.Buffer
	w, out := focus.NewWriter(focus.V14), csv.NewWriter(&file)
	_ = out.Write(w.Header())
	for _, c := range list {
		_ = out.Write(w.Row(nil, c))
	}
	out.Flush()
	m := &month{tags: append(slices.Clone(tags), "ticket"), scopes: scopes, sums: map[money.Currency]*Sum{}}
	must.Do(t, m.read(&file))
	return &Review{Month: "2026-10", Since: begin, Until: begin.AddDate(0, 1, 0), Over: true, Whole: true, Sums: m.finish()}
}

// Every figure of the page is the sum of the charges, added up a second time with rational numbers.
func TestMonth_EveryFigureIsTheSumOfItsCharges(t *testing.T) {
	scopes := []string{"all", "team:team-1", "project:p1", "tag:ticket=T 1", "user:nobody"}
	for seed := range uint64(20) {
		list := drawn(seed)
		r := reviewed(t, list, scopes...)
		for _, s := range r.Sums {
			sum := func(of func(c *charge.Charge) bool) string {
				all := new(big.Rat)
				for i := range list {
					if c := &list[i]; c.Currency == s.Currency && of(c) {
						all.Add(all, new(big.Rat).SetFrac(c.Amount.Big(), big.NewInt(1e12)))
					}
				}
				return all.FloatString(12)
			}
			check := func(what string, a money.Amount, of func(c *charge.Charge) bool) {
				t.Helper()
				if got := new(big.Rat).SetFrac(a.Big(), big.NewInt(1e12)).FloatString(12); got != sum(of) {
					t.Errorf("seed %d: %s of %s is %s, the charges say %s", seed, what, s.Currency, got, sum(of))
				}
			}
			check("spending", s.Spent, func(*charge.Charge) bool { return true })
			for use, a := range s.Uses {
				check(use, a, func(c *charge.Charge) bool { return string(c.Use) == use })
			}
			for team, a := range s.Teams {
				check("team "+team, a, func(c *charge.Charge) bool { return c.Owner.Team == team })
			}
			for kind, rule := range map[string]string{"tax": "bill_tax", "credit": "bill_credit", "adjustment": "bill_commitment"} {
				check(kind, s.Extras[kind], func(c *charge.Charge) bool { return c.Rule == rule })
			}
			top := map[string]bool{}
			for i, j := range s.Top {
				top[j.Job] = true
				check("job "+j.Job, j.Cost, func(c *charge.Charge) bool { return c.Owner.Job == j.Job })
				check("lost by "+j.Job, j.Lost, func(c *charge.Charge) bool { return c.Owner.Job == j.Job && c.Use == ledger.Lost })
				if i > 0 && s.Top[i-1].Cost.Cmp(j.Cost) < 0 {
					t.Errorf("%s is dearer than the one before it", j.Job)
				}
			}
			check("the rest", s.Rest, func(c *charge.Charge) bool { return !top[c.Owner.Job] })
			for _, c := range s.Coverage {
				check("coverage of "+c.Tag, c.Amount, func(of *charge.Charge) bool {
					return map[string]bool{"team": of.Owner.Team != "", "project": of.Owner.Project != "", "ticket": len(of.Owner.Tags) > 0}[c.Tag]
				})
			}
			for scope, of := range map[string]func(c *charge.Charge) bool{"all": func(*charge.Charge) bool { return true },
				"team:team-1":    func(c *charge.Charge) bool { return c.Owner.Team == "team-1" },
				"project:p1":     func(c *charge.Charge) bool { return c.Owner.Project == "p1" },
				"tag:ticket=T 1": func(c *charge.Charge) bool { return c.Owner.Tags["ticket"] == "T 1" },
				"user:nobody":    func(*charge.Charge) bool { return false }} {
				check("budget "+scope, *s.Scopes[scope], of)
			}
			if len(s.Top) > 10 || len(s.Top) < 5 {
				t.Errorf("%d jobs are listed", len(s.Top))
			}
		}
	}
}

// Budgets have the spending of their scope in the month, and a forecast only while the month goes on. Incidents of the
// month and savings become at most three actions, the largest first; another currency comes after that of the budgets.
func TestReview_BudgetsAndActions(t *testing.T) {
	r := reviewed(t, drawn(7), "team:team-1", "all")
	limits := api.Budgets{Currency: "USD", Limits: []api.BudgetLine{
		{Limit: api.Limit{Scope: "team:team-1", Window: "month", Dollars: new(money.Picos(5e14))}, Outlook: &api.Outlook{Spent: money.Picos(4e14), Chance: 0.4}},
		{Limit: api.Limit{Scope: "all", Window: "day", Dollars: new(money.Picos(5e14))}}, {Limit: api.Limit{Scope: "all", Window: "month"}}}}
	usd := r.Sums[slices.IndexFunc(r.Sums, func(s *Sum) bool { return s.Currency == "USD" })]
	r.budgets(limits)
	if len(r.Budgets) != 1 || r.Budgets[0].Spent != usd.Teams["team-1"] || r.Budgets[0].Forecast != nil {
		t.Errorf("%+v", r.Budgets)
	}
	r.Over = false
	if r.budgets(limits); *r.Budgets[0].Forecast != money.Picos(4e14) || *r.Budgets[0].Chance != 0.4 {
		t.Errorf("%+v", r.Budgets[0])
	}
	later, ended := r.Until.Add(time.Hour), r.Since.Add(-time.Hour)
	r.anomalies([]api.Anomaly{{About: "a", Kind: "idle machine", Since: begin, Currency: "USD", AtStake: money.Picos(3e12)},
		{About: "b", Kind: "spend", Since: begin, Until: &later, Currency: "USD", AtStake: money.Picos(9e12)},
		{About: "c", Since: later, Currency: "USD", AtStake: money.Picos(99e12)}, {About: "d", Since: ended, Until: &ended, Currency: "USD"}})
	if len(r.Anomalies) != 2 || r.Anomalies[0].About != "b" {
		t.Errorf("%+v", r.Anomalies)
	}
	saves := func(about, currency string, amount int64) api.WasteFinding {
		return api.WasteFinding{Kind: "unused machine", Action: "stop", About: about, Command: "scrimp x", Currency: money.Currency(currency),
			Saving: new(money.Picos(amount))}
	}
	r.actions(api.Waste{Findings: []api.WasteFinding{saves("e", "EUR", 50e12), saves("f", "USD", 4e12), saves("g", "USD", 2e12), {About: "h", Currency: "USD"}}}, "USD")
	var got []string
	for _, a := range r.Actions {
		got = append(got, a.What+" "+a.Amount.String())
	}
	if text := strings.Join(got, "; "); text != "stop f: unused machine 4; look into a: idle machine 3; stop g: unused machine 2" {
		t.Error(text)
	}
	r.lost(api.Chargeback{})
	if usd.LostToInterruptions != nil {
		t.Error("cost without a team leaves unknown what interruptions cost")
	}
}

// Estimates of the month are those since its begin, less those since its end.
func TestMonth_EstimatesAreOfTheMonthAlone(t *testing.T) {
	m := &month{sums: map[money.Currency]*Sum{}}
	line := func(n int, estimated, actual int64) []api.CostLine {
		return []api.CostLine{{Currency: "USD", Foreseen: n, Estimated: new(money.Picos(estimated)), Actual: new(money.Picos(actual))}, {Currency: "EUR"}}
	}
	m.foresee(append(line(3, 300, 330), line(1, 10, 5)...), false)
	m.foresee(line(2, 100, 150), true)
	if s := m.sums["USD"]; s.Foreseen != 2 || *s.Estimated != money.Picos(210) || *s.Actual != money.Picos(185) || len(m.sums) != 1 {
		t.Errorf("%+v", s)
	}
	m.foresee(line(2, 210, 185), true)
	if s := m.sums["USD"]; s.Foreseen != 0 || s.Estimated != nil {
		t.Errorf("without a job the estimate is %v", s.Estimated)
	}
}

// The line of estimates counts every job of the month: those with an estimate, and those without with the reason.
func TestText_CountsTheJobsWithoutAnEstimate(t *testing.T) {
	for _, c := range []struct {
		jobs, foreseen int
		want, not      string
	}{{6, 1, "  without      5 jobs: no success, or no expected cost when they began", ""}, {2, 2, "of 2 jobs", "without"},
		{3, 0, "  without      3 jobs", "estimated"}} {
		s := &Sum{Currency: "USD", Jobs: c.jobs, Foreseen: c.foreseen}
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
	r := reviewed(t, drawn(3), "all")
	r.Actions = []Action{{"stop \x1b[31mi-1: idle machine", "scrimp release i-1", money.Picos(5e12), "USD"}}
	text := r.text(show.Place{Width: 80, Now: begin})
	for _, line := range strings.Split(text, "\n") {
		if draw.Width(line) > 80 || strings.Contains(line, "\x1b") {
			t.Errorf("%d columns: %s", draw.Width(line), line)
		}
	}
	for _, want := range []string{"Review of 2026-10: the whole month", "interruptions  - (some cost has no team)", "estimates      -", "more than 90 days ago", "next 1", "(the rest)", "model_version 0 %"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q:\n%s", want, text)
		}
	}
	if text := (&Review{Month: "2026-11", Since: begin}).text(show.Place{}); !strings.Contains(text, "Nothing was spent.") {
		t.Error(text)
	}
}

func TestMonth_RefusesAFileWithoutItsColumns(t *testing.T) {
	for text, want := range map[string]string{"": "EOF", "a,b\n1,2\n": "the column BilledCost is missing"} {
		m := &month{sums: map[money.Currency]*Sum{}}
		if err := m.read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
