package core_test

import (
	"testing"
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/core/admission"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// A job whose launch stays unanswered tries another offer after a while. If a lowered quota leaves no room for
// that, it keeps waiting until there is room. Its own pending launch does not count against it.
func TestLoweredQuota_BlocksASecondRequest(t *testing.T) {
	gpu := budget.Limit{Scope: "all", Window: budget.Day, GPUs: ptr(3)}
	for name, c := range map[string]struct {
		lowered []budget.Limit
		moves   bool
	}{
		"no quota":       {nil, true},
		"room for one":   {[]budget.Limit{{Scope: "all", Window: budget.Day, Running: ptr(1)}}, true},
		"room for none":  {[]budget.Limit{{Scope: "all", Window: budget.Day, Running: ptr(0)}}, false},
		"of its GPUs":    {[]budget.Limit{gpu}, true},
		"of fewer GPUs":  {[]budget.Limit{{Scope: "all", Window: budget.Day, GPUs: ptr(2)}}, false},
		"another team's": {[]budget.Limit{{Scope: "team:b", Window: budget.Day, Running: ptr(0)}}, true},
	} {
		m, now := core.New(), time.Date(2026, 11, 2, 0, 0, 0, 0, time.UTC)
		var asked []market.OfferID
		step := func(b core.Body) {
			for _, a := range m.Step(core.Event{At: now, Schema: core.Schema, Tenant: "t", Body: b}).Actions {
				if l, ok := a.(core.Launch); ok {
					asked = append(asked, l.Offer)
				}
			}
		}
		wait := func(most time.Duration) {
			for end := now.Add(most); now.Before(end); step(core.Tick{}) {
				now = now.Add(time.Minute)
			}
		}
		seen := core.MarketSeen{}
		for _, name := range []string{"m1", "m2"} {
			o := yardOffer(name, 3)
			seen.Offers = append(seen.Offers, o)
			seen.Quotes = append(seen.Quotes, market.Quote{Offer: o.ID, Rate: 1e12, Priced: true, Available: true, At: now})
		}
		step(core.Configured{Config: core.DefaultConfig()})
		step(seen)
		terms := core.Terms{Name: "j", Currency: money.USD, Owner: ledger.Owner{Team: "a"}}
		terms.Need.Accelerators, terms.Need.Accelerator = 3, "H100"
		step(core.JobSubmitted{Job: "j", Terms: terms})
		if len(asked) != 1 {
			t.Fatalf("%s: asked for %v at first", name, asked)
		}
		step(core.BudgetsSet{Rules: budget.Rules{Limits: c.lowered}})
		if wait(30 * time.Minute); len(asked) > 1 != c.moves {
			t.Errorf("%s: asked for %v", name, asked)
		}
		if j, _ := m.Job("j"); j.Asked() == nil {
			t.Errorf("%s: it asks for nothing any more", name)
		}
		step(core.BudgetsSet{})
		if wait(30 * time.Minute); len(asked) < 2 || asked[0] == asked[1] {
			t.Errorf("%s: asked for %v once there is room", name, asked)
		}
	}
}

// A job whose new terms need no approval is like one that never needed any: it can be paused and resumed, and
// resumed after its end.
func TestResume_WorksOnceNoApprovalIsNeeded(t *testing.T) {
	for _, over := range []bool{false, true} {
		y := newYard(t, 1)
		y.rules(budget.Limit{Scope: "all", Approve: ptr(money.Picos(10e12))})
		y.submit("j", "a", "ann", func(t *core.Terms) { t.Budget, t.HasBudget, t.Saves = money.Picos(20e12), true, true })
		y.want("h")
		y.tick(time.Hour)
		y.step("", core.JobUpdated{Job: "j", Changes: core.Changes{Budget: ptr(money.Picos(5e12))}})
		y.want("R")
		if over {
			y.step("", core.JobEnded{Job: "j"})
			y.want("-")
		} else {
			y.step("", core.JobPaused{Job: "j"})
			y.step("", core.AttemptEnded{Attempt: y.runs["j"], Message: 9, Reason: "drained", Saved: true})
			if j, _ := y.m.Job("j"); j.State() != core.Paused {
				t.Fatalf("it is %s", j.State())
			}
		}
		y.step("", core.JobResumed{Job: "j"})
		y.want("R")
	}
}

// Neither the time after its end nor a wait for approval uses up the wall clock of a job, whatever the answer is.
func TestWallClock_StandsStillWhileAJobWaitsForApproval(t *testing.T) {
	for _, approved := range []bool{true, false} {
		y := newYard(t, 1)
		y.rules(budget.Limit{Scope: "all", Approve: ptr(money.Picos(10e12))})
		y.submit("j", "a", "ann", func(t *core.Terms) {
			t.Budget, t.HasBudget, t.WallClock = money.Picos(5e12), true, 10*time.Hour
		})
		y.want("R")
		y.tick(time.Hour)
		y.step("", core.JobEnded{Job: "j"})
		y.want("-")
		y.tick(30 * time.Hour)
		y.step("", core.JobResumed{Job: "j", Changes: core.Changes{Budget: ptr(money.Picos(20e12))},
			Asking: &budget.PendingApproval{Until: y.now.Add(7 * 24 * time.Hour)}})
		y.want("h")
		y.tick(30 * time.Hour)
		y.step("ann", core.JobReviewed{Job: "j", Approved: approved})
		j, _ := y.m.Job("j")
		if approved {
			y.want("R")
		}
		if took := admission.WallClock(j, y.now); took > time.Hour+time.Minute {
			t.Errorf("approved %v: %v of the wall clock are used up after one hour of work", approved, took)
		}
	}
}
