package state

import (
	"fmt"
	"testing"
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/money"
	"scrimp/internal/test/must"
)

// booked applies an event that books a dollar in an hour, under every limit of all jobs.
func booked(s *State, at time.Time, job string) {
	s.Replay(s.Seq()+1, Event{At: at, Body: Tick{}}, nil, []ledger.Posting{{
		At: at, Owner: ledger.Owner{Job: job}, Amount: money.Picos(1e12), From: ledger.Payable("p"),
		To: ledger.Cost(ledger.Compute, ledger.Useful),
	}})
}

func sets(s *State, at time.Time, b BudgetsSet) {
	s.Replay(s.Seq()+1, Event{At: at, Body: b}, []Fact{RulesSet{}}, nil)
}

// A new limit starts with its base sum plus what was booked since, in its window. An existing limit keeps its own
// sum. A new window starts at zero.
func TestSetRules_NewLimitStartsWithSpendingInWindow(t *testing.T) {
	s, at := New(), time.Date(2026, 11, 20, 20, 0, 0, 0, time.UTC)
	limits := []budget.Limit{{Scope: budget.All, Window: budget.Day}, {Scope: budget.All, Window: budget.Total}}
	for range 8 { // until 3 a.m.
		booked(s, at, "")
		at = at.Add(time.Hour)
	}
	spent := func(want ...int64) {
		t.Helper()
		for n, l := range limits {
			if got := s.Spent(l, at).Amount; got != money.Picos(want[n]*1e12) {
				t.Errorf("%s has spent %v, want %d", l.Name(), got, want[n])
			}
		}
	}
	base := map[string]Spent{"all/day": {Begin: budget.Day.Begin(at), Amount: money.Picos(1e12)},
		"all/total": {Amount: money.Picos(5e12)}}
	sets(s, at, BudgetsSet{Rules: budget.Rules{Limits: limits}, Base: base, AsOf: 5})
	spent(4, 8)
	sets(s, at, BudgetsSet{Rules: budget.Rules{Limits: limits}, AsOf: s.Seq()})
	spent(4, 8)
	booked(s, at, "")
	spent(5, 9)
	at = at.Add(24 * time.Hour)
	spent(0, 9)
	booked(s, at, "")
	spent(1, 10)
	b, err := s.Snapshot()
	must.Do(t, err)
	if s, err = Restore(b); err != nil {
		t.Fatal(err)
	}
	spent(1, 10)
	if s.Partial() != nil {
		t.Errorf("%v is not known whole", s.Partial())
	}
}

// A limit set without base sums counts from there on, until its window ends or somebody states them.
func TestSetRules_LimitWithoutBaseIsPartial(t *testing.T) {
	s, at := New(), time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	limits := []budget.Limit{{Scope: budget.All, Window: budget.Day}, {Scope: budget.All, Window: budget.Total}}
	booked(s, at, "")
	sets(s, at, BudgetsSet{Rules: budget.Rules{Limits: limits}})
	if got := fmt.Sprint(s.Partial()); got != "[all/day all/total]" {
		t.Errorf("partial: %s", got)
	}
	booked(s, at.Add(24*time.Hour), "")
	if got := fmt.Sprint(s.Partial()); got != "[all/total]" {
		t.Errorf("partial on the next day: %s", got)
	}
	sets(s, at.Add(24*time.Hour), BudgetsSet{Rules: budget.Rules{Limits: limits}, AsOf: s.Seq(),
		Base: map[string]Spent{"all/total": {Amount: money.Picos(2e12)}}})
	if got := s.Spent(limits[1], at).Amount; s.Partial() != nil || got != money.Picos(2e12) {
		t.Errorf("partial: %v, spent %v", s.Partial(), got)
	}
}

// Base sums are stale for a new limit if the state has dropped newer costs.
func TestStale_TrueWhenNewerCostsWereDropped(t *testing.T) {
	s, at := New(), time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	one := BudgetsSet{Rules: budget.Rules{Limits: []budget.Limit{{Scope: budget.All, Window: budget.Total}}}, AsOf: 1}
	for n := range 5 * newestCosts {
		if got := s.Stale(one); got && n < newestCosts || !got && n > 2*newestCosts {
			t.Fatalf("after %d costs, as of the first: stale %v", n, got)
		}
		booked(s, at, fmt.Sprint("j", n))
	}
	fresh := one
	if fresh.AsOf = s.Seq() - newestCosts; s.Stale(fresh) {
		t.Errorf("as of %d events ago: stale", newestCosts)
	}
	fresh.Base = map[string]Spent{"all/total": {Amount: money.Picos(4 * newestCosts * 1e12)}}
	if sets(s, at, fresh); s.Spent(one.Rules.Limits[0], at).Amount != money.Picos(5*newestCosts*1e12) {
		t.Errorf("spent %v of %d costs", s.Spent(one.Rules.Limits[0], at).Amount, 5*newestCosts)
	}
	if s.Stale(one) {
		t.Error("what is known of all limits is stale")
	}
}
