package core

import (
	"fmt"
	"testing"
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/core/lifecycle"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// All waiting jobs of a spent limit are stopped, and no others, a few per step so that other work runs in between.
func TestSpentLimit_StopsWaitingJobsInParts(t *testing.T) {
	m, now := New(), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	step := func(b Body) Outcome {
		return m.Step(Event{At: now, Schema: Schema, Tenant: "default", Body: b})
	}
	const jobs = 3*lifecycle.PassedAtOnce + 10
	for i := range jobs {
		step(JobSubmitted{Job: fmt.Sprint("j", i), Terms: Terms{Owner: ledger.Owner{Team: string('a' + rune(i%3))}}})
	}
	out := step(BudgetsSet{Rules: budget.Rules{Limits: []budget.Limit{{Scope: "team:a", Window: budget.Month, Dollars: &money.Amount{}}}}})
	for told := 0; ; out = step(Tick{}) {
		stopped := 0
		for _, f := range out.Facts {
			switch f := f.(type) {
			case state.JobOver:
				stopped++
			case state.LimitReached:
				if told++; told > 1 || f.Limit != "team:a/month" {
					t.Fatalf("%+v for the %d. time", f, told)
				}
			}
		}
		if stopped > lifecycle.StopsAtOnce {
			t.Fatalf("%d jobs are stopped in one step", stopped)
		}
		if out.Wake.IsZero() || out.Wake.After(now) {
			break
		}
	}
	for j := range m.Jobs() {
		if stopped := j.State() == Stopped && j.Why() == LimitSpent; stopped != (j.Terms().Owner.Team == "a") {
			t.Fatalf("%s of team %s is %s", j.ID(), j.Terms().Owner.Team, j.State())
		}
	}
}

// A job without a known maximum is stopped when its limit is spent, to the second that the current price predicts,
// also when the price rises meanwhile.
func TestSpentLimit_StopsRunningJobs(t *testing.T) {
	for _, rises := range []bool{false, true} {
		m, now := New(), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		var wake time.Time
		step := func(b Body) (stopped bool) {
			out := m.Step(Event{At: now, Schema: Schema, Tenant: "default", Body: b})
			wake = out.Wake
			for _, a := range out.Actions {
				if l, ok := a.(Launch); ok {
					m.Step(Event{At: now, Schema: Schema, Tenant: "default", Body: LaunchDone{Launch: l.Key(), Instance: "i",
						Offer: "spot", Rate: 1e12, From: now}})
					out := m.Step(Event{At: now, Schema: Schema, Tenant: "default", Body: AttemptStarted{Attempt: l.Key()}})
					wake = out.Wake
				}
			}
			j, ok := m.Job("j")
			return ok && j.EndingWhy() == LimitSpent
		}
		cfg := DefaultConfig()
		step(Configured{Config: cfg})
		o := market.Offer{ID: "spot", Provider: "p", Zone: "z", Region: "r", Machine: "m", Capacity: market.Spot, CPUs: 4, Speed: 1, Currency: money.USD}
		quote := func(usd money.Rate) MarketSeen {
			return MarketSeen{Offers: []market.Offer{o}, Quotes: []market.Quote{{Offer: "spot", Rate: usd * 1e12, Priced: true, Available: true, At: now}}}
		}
		step(quote(1))
		step(JobSubmitted{Job: "j", Terms: Terms{Owner: ledger.Owner{Team: "a"}, Currency: money.USD, Grace: time.Minute, Saves: true,
			Need: plan.Need{Requirements: plan.Requirements{CPUs: 1}}}})
		begin, five := now, money.Picos(5e12)
		step(BudgetsSet{Rules: budget.Rules{Limits: []budget.Limit{{Scope: "team:a", Window: budget.Total, Dollars: &five}}}})
		want := begin.Add(5 * time.Hour)
		for stopped, risen := false, false; !stopped; {
			if wake.IsZero() || now.After(want.Add(time.Hour)) {
				t.Fatalf("rises %v: not stopped at %v", rises, now.Sub(begin))
			}
			now = wake
			if rises && !risen && !now.Before(begin.Add(time.Hour)) {
				risen = true // to four dollars: of the limit of five, one or a little more is spent
				spent := now.Sub(begin)
				want = now.Add((5*time.Hour - spent) / 4)
				stopped = step(quote(4))
				continue
			}
			stopped = step(Tick{})
		}
		if late := now.Sub(want); late < 0 || late > 2*time.Second {
			t.Errorf("rises %v: stopped after %v, want %v", rises, now.Sub(begin), want.Sub(begin))
		}
	}
}
