package core

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/core/accounting"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
)

// scanned computes Books the slow way: from all jobs and all postings.
func scanned(m *Machine, all []ledger.Posting, t time.Time) (budget.Accounts, map[string]money.Rate) {
	b := budget.Accounts{Spent: map[string]money.Amount{}, GPUs: map[string]float64{}}
	burn := map[string]money.Rate{}
	if r, ok := m.Rules(); ok {
		b.Limits = r.Limits
	}
	for j := range m.Jobs() {
		v := Weighed(j.ID(), j.User(), j.Terms())
		live := j.Costs()
		for _, a := range j.Attempts() {
			live = live || a.Live()
			if a.Instance() == "" {
				continue
			}
			until := a.Until()
			if until.IsZero() {
				until = t
			}
			v.GPUSpent += (time.Duration(a.GPUs()) * until.Sub(a.From())).Hours()
			if a.Live() {
				v.Runs, v.GPUsNow = true, v.GPUsNow+a.GPUs()
			}
			for _, l := range b.Limits {
				if !l.Scope.Holds(v.Owner, v.User) {
					continue
				}
				from := a.From()
				if begin := l.Window.Begin(t); from.Before(begin) {
					from = begin
				}
				if until.After(from) {
					b.GPUs[l.Name()] += (time.Duration(a.GPUs()) * until.Sub(from)).Hours()
				}
				if a.Live() {
					b.Spent[l.Name()] = b.Spent[l.Name()].Add(a.Cost(t).Sub(a.Posted()))
					if a.Until().IsZero() {
						burn[l.Name()] += a.Rate()
					}
				}
			}
		}
		if v.AwaitsApproval, v.Spent = j.State() == Held, j.Spent(t); live || !j.State().Over() {
			b.Live = append(b.Live, v)
		}
	}
	for _, l := range b.Limits {
		b.Spent[l.Name()] = b.Spent[l.Name()].Add(bookedIn(m, l, all, t, math.MaxUint64))
	}
	return b, burn
}

// accounted computes Accounts the slow way.
func accounted(m *Machine, t time.Time) []Account {
	sums := map[accounting.AccountKey]*Account{}
	for j := range m.Jobs() {
		k := accounting.AccountKey{Team: j.Terms().Owner.Team, Project: j.Terms().Owner.Project}
		if sums[k] == nil {
			sums[k] = &Account{Team: k.Team, Project: k.Project, States: map[State]int{}}
		}
		a := sums[k]
		a.States[j.State()]++
		a.Spent = a.Spent.Add(j.Spent(t))
		open := !j.State().Over() || j.Costs()
		for _, try := range j.Attempts() {
			open = open || try.Live()
			if try.Taken() {
				a.Taken++
			}
		}
		if open {
			a.Open++
		}
	}
	return accounting.ListedAccounts(sums)
}

// bookedIn sums the postings before an event in the limit's window at t.
func bookedIn(m *Machine, l budget.Limit, all []ledger.Posting, t time.Time, before uint64) (sum money.Amount) {
	for _, p := range all {
		user := ""
		if j, ok := m.Job(p.Owner.Job); ok {
			user = j.User()
		}
		if p.Event < before && l.Scope.Holds(p.Owner, user) && l.Window.Begin(p.At).Equal(l.Window.Begin(t)) {
			sum = sum.Add(Cost(p))
		}
	}
	return sum
}

// limitsOf draws limits of all scopes and windows.
func (n *noise) limitsOf() Body {
	var list []budget.Limit
	for _, scope := range []budget.Scope{"all", "project:x", "tag:k=1", "team:t", "user:ann", "user:owner"} {
		if n.rng.IntN(3) == 0 {
			continue
		}
		l := budget.Limit{Scope: scope, Window: []budget.Window{budget.Day, budget.Week, budget.Total}[n.rng.IntN(3)]}
		if n.rng.IntN(2) == 0 {
			l.Dollars = new(money.Picos(n.rng.Int64N(9e12)))
		}
		if n.rng.IntN(2) == 0 {
			l.GPUHours = new(float64)
			*l.GPUHours, l.Wait = n.rng.Float64()*40, l.Window != budget.Total && n.rng.IntN(2) == 0
		}
		list = append(list, l)
	}
	return BudgetsSet{Rules: budget.Rules{Limits: list}}
}

// based returns the spent amounts of the limits as of one of the newest events.
func (n *noise) based(m *Machine, b BudgetsSet, all []ledger.Posting) BudgetsSet {
	b.Base, b.AsOf = map[string]state.Spent{}, max(1, m.Seq()-uint64(n.rng.IntN(20)))
	for _, l := range b.Rules.Limits {
		b.Base[l.Name()] = state.Spent{Begin: l.Window.Begin(n.now), Amount: bookedIn(m, l, all, n.now, b.AsOf+1)}
	}
	return b
}

// The incremental books equal a scan of all jobs and all postings, whatever happens, and after a restart.
func TestBooks_MatchAFullScan(t *testing.T) {
	held, spent, hours, gone, prepared, kept := 0, 0, 0, 0, 0, 0
	for seed := range uint64(lane.Pick(25, 1_000)) {
		n := &noise{rng: rand.New(rand.NewPCG(seed, 7)), now: time.Date(2026, 1, 1, 22, 0, 0, 0, time.UTC)}
		m := New()
		var all []ledger.Posting
		var soon *budget.Rules
		for i := range 400 {
			e := n.event()
			if n.rng.IntN(60) == 0 {
				n.now = n.now.Add(time.Duration(n.rng.IntN(30)) * time.Hour)
				e.At = n.now
			}
			switch b := e.Body.(type) {
			case BudgetsSet:
				if e.Body = n.limitsOf(); soon != nil && n.rng.IntN(4) > 0 {
					e.Body = BudgetsSet{Rules: *soon}
					if soon = nil; m.admission.Soon != nil && m.admission.Soon.UpTo > 0 && len(state.After(m.step.State.Jobs(), m.admission.Soon.UpTo)) > 0 {
						prepared++
					}
				}
			case JobSubmitted:
				// some continue while others arrive
				b.Job = fmt.Sprint(n.pick("a", "b", "c"), n.pick("", "", "1", "2", "3"))
				b.Terms.Owner = ledger.Owner{Team: n.pick("t", "u"), Project: n.pick("x", ""), Tags: map[string]string{"k": n.pick("1", "2")}}
				b.Terms.GPUHours = float64(n.rng.IntN(3)) * n.rng.Float64() * 9
				e.Body, e.Actor = b, n.pick("user", "user:ann")
			case MarketSeen:
				for i := range b.Offers {
					b.Offers[i].Accelerators = i % 3
				}
				e.Body = b
			}
			if b, ok := e.Body.(BudgetsSet); ok {
				e.Body = n.based(m, b, all)
			}
			all = append(all, m.Step(e).Postings...)
			if n.rng.IntN(3) == 0 { // a later event sets limits
				if soon == nil {
					b, _ := n.limitsOf().(BudgetsSet)
					soon = &b.Rules
				}
				m.admission.Prepare(soon, n.rng.IntN(3))
			}
			at := e.At.Add(time.Duration(n.rng.IntN(2)) * n.span())
			if i%100 == 50 {
				restored, err := Restore(snap(t, m))
				must.Do(t, err)
				m = restored
			}
			if a, b := fmt.Sprint(m.books.Accounts(at)), fmt.Sprint(accounted(m, at)); a != b {
				t.Fatalf("seed %d, event %d (%s): kept %s\nscanned %s", seed, i, e.Body.Kind(), a, b)
			}
			jobs, open := 0, 0
			for _, a := range accounted(m, at) {
				if a.Team != "u" {
					jobs, open = jobs+a.Jobs(), open+a.Open
				}
			}
			if n, o := m.Count(func(team string) bool { return team != "u" }); n != jobs || o != open {
				t.Fatalf("seed %d, event %d (%s): %d jobs, %d open; scanned %d, %d", seed, i, e.Body.Kind(), n, o, jobs, open)
			}
			gone += samePast(t, m, at.Add(-time.Duration(n.rng.IntN(200))*time.Hour).Add(time.Duration(n.rng.IntN(2))*n.span()), seed, i)
			want, burns := scanned(m, all, at)
			got, burn := m.admission.Books(at)
			if i%10 == 0 {
				kept += heldHolds(t, m, got, at, seed, i)
			}
			for _, l := range want.Limits {
				x, y := got.Use(l), want.Use(l)
				same := math.Abs(x.GPUHeld-y.GPUHeld) < 1e-5 && math.Abs(x.GPUSpent-y.GPUSpent) < 1e-5
				if x.Held.Sign() > 0 {
					held++
				}
				if x.Spent.Sign() > 0 {
					spent++
				}
				if x.GPUSpent > 0 && len(got.Outstanding) > 0 {
					hours++
				}
				x.GPUHeld, x.GPUSpent = y.GPUHeld, y.GPUSpent
				if x != y || !same || burn[l.Name()] != burns[l.Name()] {
					t.Fatalf("seed %d, event %d (%s), %s: kept %+v, %v\nscanned %+v, %v", seed, i, e.Body.Kind(), l.Name(), got.Use(l), burn[l.Name()], want.Use(l), burns[l.Name()])
				}
			}
		}
	}
	if prepared < lane.Pick(10, 50) {
		t.Errorf("limits were set %d times that were summed in part: the lives are too dull", prepared)
	}
	if kept < 100 {
		t.Errorf("%d looks had a limit that holds: the lives are too dull", kept)
	}
	if gone < lane.Pick(500, 1000) {
		t.Errorf("%d looks saw jobs that held a machine and hold none: the lives are too dull", gone)
	}
	if held < 1000 || spent < 1000 || hours < 100 {
		t.Errorf("%d looks had money held, %d spent and %d GPU-hours: the lives are too dull", held, spent, hours)
	}
}
