package review

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/charge"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/runhistory"
	"scrimp/internal/lib/money"
)

var begin = time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC)

// drawn draws charges of a month, of jobs with and without a team, with tags and corrections of a bill.
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
			c.Owner.Project, c.Owner.Tags, c.Owner.Environment = "p1", map[string]string{"ticket": "T 1", "user": "nobody"}, "production"
		}
		list = append(list, c)
	}
	return list
}

// sums adds charges, with every budget scope that they have.
func sums(list []charge.Charge, scopes ...budget.Scope) (*Month, []Sum) {
	m := New([]string{"ticket", "team"}, scopes)
	for i := range list {
		m.Add(&list[i])
	}
	all := m.Sums()
	return m, all
}

// Every figure is the sum of the charges, added up a second time with rational numbers.
func TestMonth_EveryFigureIsTheSumOfItsCharges(t *testing.T) {
	scopes := map[budget.Scope]func(c *charge.Charge) bool{
		"team:Team-1":    func(c *charge.Charge) bool { return c.Owner.Team == "team-1" }, // names ignore case
		"project:p1":     func(c *charge.Charge) bool { return c.Owner.Project == "p1" },
		"tag:ticket=T 1": func(c *charge.Charge) bool { return c.Owner.Tags["ticket"] == "T 1" },
		"user:nobody":    func(*charge.Charge) bool { return false },
		"team:team-0":    func(c *charge.Charge) bool { return c.Owner.Team == "team-0" },

		"tag:environment=production": func(c *charge.Charge) bool { return c.Owner.Environment != "" },
	}
	under := []budget.Scope{}
	for scope := range scopes {
		under = append(under, scope)
	}
	for seed := range uint64(20) {
		list := drawn(seed)
		m, all := sums(list, under...)
		if len(all) != 2 {
			t.Fatalf("%d currencies", len(all))
		}
		for _, s := range all {
			check := func(what string, a money.Amount, of func(c *charge.Charge) bool) {
				t.Helper()
				want := new(big.Rat)
				for i := range list {
					if c := &list[i]; c.Currency == s.Currency && of(c) {
						want.Add(want, new(big.Rat).SetFrac(c.Amount.Big(), big.NewInt(1e12)))
					}
				}
				if got := new(big.Rat).SetFrac(a.Big(), big.NewInt(1e12)); got.Cmp(want) != 0 {
					t.Errorf("seed %d: %s of %s is %s, the charges say %s", seed, what, s.Currency, got.FloatString(12), want.FloatString(12))
				}
			}
			check("spending", s.Spent, func(*charge.Charge) bool { return true })
			for use, a := range s.Uses {
				check(string(use), a, func(c *charge.Charge) bool { return c.Use == use })
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
			if len(s.Coverage) != 5 || len(s.Top) != mostTop {
				t.Errorf("%d tags, %d jobs", len(s.Coverage), len(s.Top))
			}
			for _, c := range s.Coverage {
				check("coverage of "+c.Tag, c.Amount, func(of *charge.Charge) bool {
					return map[string]bool{"team": of.Owner.Team != "", "project": of.Owner.Project != "", "ticket": len(of.Owner.Tags) > 0,
						"environment": of.Owner.Environment != ""}[c.Tag]
				})
			}
			for scope, of := range scopes {
				check("budget "+string(scope), m.Spent(s.Currency, scope), of)
			}
			check("what is under a budget", s.Budgeted, func(c *charge.Charge) bool {
				return c.Owner.Project == "p1" || c.Owner.Team == "team-1" || c.Owner.Team == "team-0"
			})
		}
	}
}

// Estimates of the month are those since its begin, less those since its end; without one they are unknown.
func TestMonth_EstimatesAreOfTheMonthAlone(t *testing.T) {
	m := New(nil, nil)
	m.Foresee("USD", 3, money.Picos(300), money.Picos(330))
	m.Foresee("USD", 1, money.Picos(10), money.Picos(5))
	m.Foresee("USD", -2, money.Picos(100), money.Picos(150))
	if s := m.Sums()[0]; s.Foreseen != 2 || *s.Estimated != money.Picos(210) || *s.Actual != money.Picos(185) {
		t.Errorf("%+v", s)
	}
	m.Foresee("USD", -2, money.Picos(210), money.Picos(185))
	if s := m.Sums()[0]; s.Foreseen != 0 || s.Estimated != nil {
		t.Errorf("without a job the estimate is %v", s.Estimated)
	}
}

// Cost without a team leaves unknown what interruptions cost.
func TestMonth_InterruptionsAreKnownOfTeamsAlone(t *testing.T) {
	c := charge.Charge{Amount: money.Picos(5), Currency: "USD", Owner: ledger.Owner{Team: "a"}}
	m, _ := sums([]charge.Charge{c})
	m.Interrupted(map[money.Currency]money.Amount{"USD": money.Picos(2), "EUR": money.Picos(9)})
	if s := m.Sums()[0]; s.LostToInterruptions == nil || *s.LostToInterruptions != money.Picos(2) {
		t.Errorf("%+v", s)
	}
	c.Owner.Team = ""
	m, _ = sums([]charge.Charge{c})
	if m.Interrupted(nil); m.Sums()[0].LostToInterruptions != nil {
		t.Error("cost of no team may have been lost to interruptions")
	}
}

// A mark follows from its share by the stated rule, and what is unknown has none.
func TestMarks_FollowFromTheirShares(t *testing.T) {
	part := func(share float64) money.Amount { return money.Picos(int64(math.Round(share * 1e12))) }
	sum := func(share float64) Sum {
		return Sum{Currency: "USD", Spent: part(1), Teams: map[string]money.Amount{"a": part(share), "": part(1 - share)}, Budgeted: part(share),
			Uses:     map[ledger.Use]money.Amount{ledger.Lost: part(share / 2), ledger.Idle: part(share / 2), ledger.Useful: part(1 - share)},
			Foreseen: 2, Estimated: new(part(1)), Actual: new(part(1 + share))}
	}
	for share, want := range map[float64]string{0: "crawl crawl run run", 0.1: "crawl crawl run run", 0.12: "crawl crawl run walk",
		0.15: "crawl crawl walk walk", 0.16: "crawl crawl crawl walk", 0.8: "crawl crawl crawl crawl", 0.81: "walk walk crawl crawl",
		0.9: "walk walk crawl crawl", 0.91: "run run crawl crawl", 1: "run run crawl crawl"} {
		got := ""
		for _, m := range Marks([]Sum{sum(share)}, nil)[:4] {
			if got += m.Mark + " "; m.Share == nil || math.Abs(*m.Share-share) > 1e-9 || m.Evidence == "" || m.Rule == "" || m.Currency != "USD" {
				t.Errorf("%g: %+v", share, m)
			}
		}
		if got != want+" " {
			t.Errorf("%g: %s, want %s", share, got, want)
		}
	}
	over := sum(0)
	over.Actual = new(part(0.8)) // an estimate that is too high is wrong too
	if m := Marks([]Sum{over}, nil)[2]; m.Mark != "crawl" || math.Abs(*m.Share-0.2) > 1e-9 {
		t.Errorf("%+v", m)
	}
	for answers, want := range map[Answers]string{{0, 0}: "", {4, 4}: "run", {20, 17}: "walk", {5, 4}: "crawl"} {
		if list := Marks(nil, &answers); len(list) != 1 || list[0].Mark != want || (want == "") != (list[0].Share == nil) {
			t.Errorf("%+v: %+v", answers, list)
		}
	}
	for _, m := range Marks([]Sum{{Currency: "USD"}}, nil) {
		if m.Mark != "" || m.Share != nil {
			t.Errorf("nothing was spent: %+v", m)
		}
	}
}

// The estimates compared are those of the runs that ended in the month, and of no others.
func TestAccuracy_IsThatOfTheMonth(t *testing.T) {
	run := func(job string, days int, expected, cost float64, hours ...float64) runhistory.Run {
		x := runhistory.Run{Job: job, Name: job, Kind: "experiment", State: "succeeded", Finished: begin.AddDate(0, 0, days),
			Submitted: begin.AddDate(0, 0, days-1), Currency: money.USD, Cost: money.Picos(int64(cost * 1e12)),
			ExpectedCost: new(money.Picos(int64(expected * 1e12)))}
		if len(hours) > 0 {
			x.ExpectedS, x.WorkS = new(hours[0]*3600), new(hours[1]*3600)
		}
		return x
	}
	failed := run("failed", 4, 50, 1)
	failed.State = "failed"
	all, furthest := Accuracy([]runhistory.Run{run("next", 31, 100, 1), run("d", 30, 2, 4), run("c", 20, 8, 10, 6, 4), failed, run("b", 3, 6, 4, 3, 4),
		run("a", 0, 5, 4), run("before", -1, 100, 1, 9, 1)}, begin, begin.AddDate(0, 1, 0))
	// By hand: dollars 2/4, 8/10, 6/4, 5/4 are off by 50, 20, 50 and 25 %; hours 6/4 and 3/4 by 50 and 25 %.
	want := map[string]runhistory.Missed{
		"dollars": {Runs: 4, Median: 0.375, Mean: 0.3625, Bias: 0.025}, "hours": {Runs: 2, Median: 0.375, Mean: 0.375, Bias: 0.125}}
	seen := 0
	for _, m := range all {
		w, near := want[m.What], func(a, b float64) bool { return math.Abs(a-b) < 1e-12 }
		if m.Kind != "all" {
			continue
		}
		if seen++; m.Runs != w.Runs || !near(m.Median, w.Median) || !near(m.Mean, w.Mean) || !near(m.Bias, w.Bias) || m.Within != nil {
			t.Errorf("%+v, want %+v", m, w)
		}
	}
	if seen != 2 || len(furthest) != 3 || furthest[0].Actual-furthest[0].Expected != 2 {
		t.Errorf("%+v, %+v", all, furthest)
	}
	if all, furthest = Accuracy(nil, begin, begin); all == nil || furthest == nil || len(all)+len(furthest) > 0 {
		t.Errorf("%v %v", all, furthest)
	}
}
