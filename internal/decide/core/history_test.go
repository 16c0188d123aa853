package core

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// samePast compares the history kept of jobs without a machine with a scan of all jobs, over all time and since a
// moment. It returns 1 if there are such jobs.
func samePast(t *testing.T, m *Machine, since time.Time, seed, event any) (gone int) {
	t.Helper()
	for _, from := range []time.Time{{}, since} {
		want, got, each := map[HistoryOwner]History{}, map[HistoryOwner]History{}, map[HistoryOwner]History{}
		for j := range m.Jobs() {
			if w, p, last, ok := HistoryOf(j); ok && !last.Before(from) {
				want[w] = want[w].Plus(p)
				gone = 1
			}
		}
		m.books.History(from, func(w HistoryOwner, p History) { got[w] = got[w].Plus(p) })
		m.books.HistoryJobs(from, func(j *Job, p History, c money.Currency) {
			w := HistoryOwner{Dimensions: OwnerOf(j), Currency: c}
			each[w] = each[w].Plus(p)
		})
		if a, b, c := pasts(got), pasts(want), pasts(each); a != b || c != b {
			t.Fatalf("seed %v, event %v, since %v: kept\n%s, scanned\n%s, job by job\n%s", seed, event, from, a, b, c)
		}
	}
	return gone
}

func pasts(all map[HistoryOwner]History) string {
	var list []string
	for w, p := range all {
		if p != (History{}) {
			list = append(list, fmt.Sprintf("%+v %+v\n", w, p))
		}
	}
	slices.Sort(list)
	return strings.Join(list, "")
}

// The estimated cost covers the whole job even if the first decision with an estimate comes late, and it does not
// change later.
func TestEstimate_CoversTheWholeJob(t *testing.T) {
	usd := func(f float64) *float64 { return &f }
	purse := &plan.BudgetCheck{Needs: money.Picos(2_187_000_000_000)}
	for name, c := range map[string]struct {
		decisions []plan.Decision
		want      int64 // picos; 0: unknown
	}{
		"nothing is said":                     {[]plan.Decision{{}, {Expect: &plan.Expect{}}}, 0},
		"the cheapest way":                    {[]plan.Decision{{Expect: &plan.Expect{Wait: usd(1.5), OnDemand: usd(4)}}}, 3_500_000_000_000},
		"most is done when it can be said":    {[]plan.Decision{{}, {Expect: &plan.Expect{Spot: usd(0.25)}}}, 2_250_000_000_000},
		"a budget says it":                    {[]plan.Decision{{Budget: purse}, {Expect: &plan.Expect{Spot: usd(0.25)}}}, 4_187_000_000_000},
		"both say it":                         {[]plan.Decision{{Budget: purse, Expect: &plan.Expect{Spot: usd(3)}}}, 5_000_000_000_000},
		"what comes later does not change it": {[]plan.Decision{{Expect: &plan.Expect{Wait: usd(1)}}, {Expect: &plan.Expect{Wait: usd(9)}}}, 3_000_000_000_000},
	} {
		m, j := New(), spentTwo(t)
		m.step.State = j.s
		var got *money.Amount
		for _, d := range c.decisions {
			if f := m.decider.Foresees(j.job, d); f != nil && got == nil {
				got = f
			}
		}
		if (got != nil) != (c.want != 0) || got != nil && *got != money.Picos(c.want) {
			t.Errorf("%s: %v, want %v", name, got, money.Picos(c.want))
		}
	}
}

// spent returns a job that has a cost.
type spent struct {
	s   *state.State
	job *Job
}

// spentTwo returns a job whose machines have cost $2 so far.
func spentTwo(t *testing.T) spent {
	t.Helper()
	m, now := New(), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	step := func(b Body) { m.Step(Event{At: now, Schema: Schema, Tenant: "t", Body: b}) }
	step(Configured{Config: DefaultConfig()})
	o := market.Offer{ID: "p/z/m/on-demand", Provider: "p", Zone: "z", Machine: "m", Capacity: market.OnDemand, Currency: money.USD}
	step(MarketSeen{Offers: []market.Offer{o}, Quotes: []market.Quote{{Offer: o.ID, Rate: 2e12, Priced: true, Available: true, At: now}}})
	step(JobSubmitted{Job: "j", Terms: Terms{Currency: money.USD}})
	step(LaunchDone{Launch: "j.1", Instance: "i", Offer: o.ID, Rate: 2e12, From: now})
	now = now.Add(time.Hour)
	step(InstanceEnded{Instance: "i", Until: now, Cause: "interrupted"})
	j := m.step.State.Job("j")
	if j.Spent(now) != money.Picos(2_000_000_000_000) || j.Foreseen() != nil {
		t.Fatalf("it spent %v, and was foreseen to cost %v", j.Spent(now), j.Foreseen())
	}
	return spent{m.step.State, j}
}
