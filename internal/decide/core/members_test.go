package core_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/test/must"
	"scrimp/internal/work/groups"
	"scrimp/internal/work/propose"
)

// array opens an array with the given number of members and indexes from 10 in steps of 5.
func array(name string, members, atOnce int, change func(*core.GroupTerms)) core.GroupOpened {
	t := core.GroupTerms{Kind: groups.Array, Owner: ledger.Owner{Team: "a"}, AtOnce: atOnce,
		Array:  groups.Indexes{From: 10, Step: 5, Members: members},
		Member: &core.Terms{Name: name, Currency: money.USD, Priority: 1, Restart: time.Minute, Owner: ledger.Owner{Team: "a"}}}
	if change != nil {
		change(&t)
	}
	return core.GroupOpened{Group: name, Terms: t}
}

func (y *yard) group(name string) *state.Group { return y.m.State().Group(name) }

// ends ends the program of a job.
func (y *yard) ends(job string, exit int) {
	y.t.Helper()
	reason := "completed"
	if exit != 0 {
		reason = "failed"
	}
	if y.runs[job] == "" {
		y.t.Fatalf("%s does not run", job)
	}
	y.step("", core.AttemptEnded{Attempt: y.runs[job], Message: 2, Reason: reason, Exit: exit})
}

func TestArray_StartsMembersInOrderWithinItsLimit(t *testing.T) {
	y := newYard(t, 10)
	y.step("user:ann", array("sweep", 5, 2, nil))
	for n := range 5 {
		id := fmt.Sprintf("sweep.%d", 10+5*n)
		j, ok := y.m.Job(id)
		if !ok || j.User() != "ann" || j.Terms().Index != 10+5*n || j.Inputs() != "sweep" {
			t.Fatalf("%s: known %v, %+v", id, ok, j)
		}
		if g := y.group("sweep"); g.Open != min(2, 5-n) || g.Began != min(5, n+2) {
			t.Errorf("before %s ends %d are open and %d have begun", id, g.Open, g.Began)
		}
		y.tick(time.Minute)
		y.ends(id, n%2) // every second member fails
	}
	y.tick(time.Minute)
	if g := y.group("sweep"); g.Phase != state.GroupOver || g.Why != core.AllOver || g.Ended != (state.Outcomes{Succeeded: 3, Failed: 2}) {
		t.Errorf("at the end it is %s (%s) with %+v", g.Phase, g.Why, g.Ended)
	}
}

// The members of an array may spend exactly the budget of their group, whatever each of them costs in the end.
func TestArray_SharesItsBudget(t *testing.T) {
	y := newYard(t, 10)
	y.step("", array("sweep", 7, 3, func(t *core.GroupTerms) {
		t.Budget, t.HasBudget, t.Member.Work = money.Picos(10e12), true, time.Hour
	}))
	for n := range 7 {
		id := fmt.Sprintf("sweep.%d", 10+5*n)
		y.tick(time.Duration(1+n*7) * time.Minute)
		spent, given := money.Amount{}, money.Amount{}
		for k := range y.group("sweep").Began {
			j, _ := y.m.Job(fmt.Sprintf("sweep.%d", 10+5*k))
			cost := j.Spent(y.now)
			spent = spent.Add(cost)
			if !j.State().Over() && j.Terms().Budget.Cmp(cost) > 0 {
				cost = j.Terms().Budget
			}
			given = given.Add(cost)
		}
		if given.Cmp(money.Picos(10e12)) > 0 || y.m.GroupSpent(y.group("sweep"), y.now) != spent {
			t.Errorf("before %s ends its members may cost %v of $10, and have cost %v, not %v", id, given, spent,
				y.m.GroupSpent(y.group("sweep"), y.now))
		}
		if y.group("sweep").Began > n {
			y.ends(id, 0)
		}
	}
	last, _ := y.m.Job("sweep.40")
	first, _ := y.m.Job("sweep.10")
	if first.Terms().Budget != money.Picos(int64(10e12)/7) || last.Terms().Budget.Cmp(first.Terms().Budget) <= 0 {
		t.Errorf("the first had %v, the last %v: what the others left over is not given on", first.Terms().Budget, last.Terms().Budget)
	}
}

// If a member ends while the planner works, the core requests another plan.
func TestProposed_IsRequestedAgainAfterAChange(t *testing.T) {
	y := newYard(t, 10)
	step := func(b core.Body) (asked bool) {
		out := y.m.Step(core.Event{At: y.now, Schema: core.Schema, Tenant: "t", Body: b})
		for _, a := range out.Actions {
			_, is := a.(core.Propose)
			asked = asked || is
		}
		return asked
	}
	step(array("sweep", 3, 1, nil))
	seen, _ := y.m.GroupSnapshot("sweep")
	if !step(core.Proposed{Group: "sweep", Base: seen.Base, Moves: propose.Moves(seen)}) {
		t.Fatal("nobody asks what comes after the first member")
	}
	seen, _ = y.m.GroupSnapshot("sweep") // still open
	if step(core.JobEnded{Job: "sweep.10"}) {
		t.Error("it is asked for twice at once")
	}
	if moves := propose.Moves(seen); len(moves) > 0 {
		t.Fatalf("with a member open, it proposes %v", moves)
	}
	if !step(core.Proposed{Group: "sweep", Base: seen.Base}) {
		t.Error("the next member would wait until the proposal counts as lost")
	}
}

// A group is ended a few members per step, and a restart in between continues it.
func TestArray_EndsAFewMembersPerStep(t *testing.T) {
	y := newYard(t, 2)
	y.step("", array("sweep", 200, 200, nil))
	for range 10 {
		y.tick(time.Second)
	}
	if g := y.group("sweep"); g.Open != 200 {
		t.Fatalf("%d of 200 members are open", g.Open)
	}
	y.m.Step(core.Event{At: y.now, Schema: core.Schema, Tenant: "t", Body: core.GroupClosed{Group: "sweep", Members: state.CancelMembers}})
	if g := y.group("sweep"); g.Open != 200-64 || g.Phase != state.GroupEnding {
		t.Fatalf("after one step %d are open, and it is %s", g.Open, g.Phase)
	}
	y.restart()
	for range 10 {
		y.tick(time.Second)
	}
	if g := y.group("sweep"); g.Phase != state.GroupOver || g.Ended.Cancelled != 200 {
		t.Errorf("it is %s with %+v", g.Phase, g.Ended)
	}
}

// restart continues from a snapshot.
func (y *yard) restart() {
	y.t.Helper()
	snap, err := y.m.Snapshot()
	must.Do(y.t, err)
	if y.m, err = core.Restore(snap); err != nil {
		y.t.Fatal(err)
	}
}

func TestAfter_WaitsForTheRequiredOutcome(t *testing.T) {
	for _, c := range []struct {
		fails, any bool
		want       core.State
	}{
		{false, false, core.Running}, {false, true, core.Running}, {true, true, core.Running}, {true, false, core.Cancelled},
	} {
		for _, restarts := range []bool{false, true} {
			y := newYard(t, 10)
			y.submit("prep", "a", core.Owner, nil)
			y.step("", array("sweep", 2, 2, func(t *core.GroupTerms) {
				t.After = []state.Dependency{{On: "prep"}}
			}))
			y.submit("last", "a", core.Owner, func(t *core.Terms) {
				t.After = []state.Dependency{{On: "prep", Any: true}, {On: "sweep", Any: c.any}}
			})
			if y.tick(time.Hour); y.group("sweep").Began > 0 || y.runs["last"] != "" {
				t.Fatalf("%+v: it begins before prep is over", c)
			}
			if restarts {
				y.restart()
			}
			y.ends("prep", 0)
			y.tick(time.Minute)
			y.ends("sweep.10", 0)
			if y.tick(time.Minute); y.runs["last"] != "" {
				t.Fatalf("%+v: last begins before all of sweep is over", c)
			}
			exit := 0
			if c.fails {
				exit = 1
			}
			y.ends("sweep.15", exit)
			y.tick(time.Minute)
			if j, _ := y.m.Job("last"); j.State() != c.want || c.want == core.Cancelled && j.Why() != core.DependencyFailed {
				t.Errorf("%+v, restarted %v: last is %s (%s), want %s", c, restarts, j.State(), j.Why(), c.want)
			}
		}
	}
}

// Invalid terms are refused before any member starts.
func TestGroupOpened_RefusesInvalidTerms(t *testing.T) {
	y := newYard(t, 10)
	y.submit("job", "a", core.Owner, nil)
	y.submit("bad", "a", core.Owner, nil)
	y.ends("bad", 1)
	many := make([]state.Dependency, 101)
	for name, b := range map[string]core.GroupOpened{
		"no member":          array("s", 0, 1, nil),
		"too many members":   array("s", groups.MaxMembers+1, 1, nil),
		"none at once":       array("s", 1, 0, nil),
		"a step of 0":        array("s", 1, 1, func(t *core.GroupTerms) { t.Array.Step = 0 }),
		"no job":             array("s", 1, 1, func(t *core.GroupTerms) { t.Member = nil }),
		"a name of a job":    array("job", 1, 1, nil),
		"after nothing":      array("s", 1, 1, func(t *core.GroupTerms) { t.After = []state.Dependency{{On: "none"}} }),
		"after itself":       array("s", 1, 1, func(t *core.GroupTerms) { t.After = []state.Dependency{{On: "s"}} }),
		"after a failure":    array("s", 1, 1, func(t *core.GroupTerms) { t.After = []state.Dependency{{On: "bad"}} }),
		"after too many":     array("s", 1, 1, func(t *core.GroupTerms) { t.After = many }),
		"budget below zero":  array("s", 1, 1, func(t *core.GroupTerms) { t.Budget = money.Picos(-1) }),
		"no name":            array("", 1, 1, nil),
		"indexes below zero": array("s", 1, 1, func(t *core.GroupTerms) { t.Array.From = -1 }),
	} {
		y.step("", b)
		if g := y.group("s"); g != nil || y.group("job") != nil {
			t.Errorf("%s: it is taken", name)
		}
	}
	y.submit("late", "a", core.Owner, func(t *core.Terms) { t.After = []state.Dependency{{On: "bad"}} })
	if _, ok := y.m.Job("late"); ok {
		t.Error("a job after one that failed is taken")
	}
}

// A team limit applies to an array as a whole; an array without a budget gets one.
func TestGroupOpened_KeepsTheTeamLimit(t *testing.T) {
	y := newYard(t, 10)
	limit := money.Picos(10e12)
	y.step("", core.BudgetsSet{Rules: budget.Rules{Limits: []budget.Limit{{Scope: "team:a", Window: budget.Total, Dollars: &limit}}}})
	hours := func(d time.Duration) func(*core.GroupTerms) {
		return func(t *core.GroupTerms) { t.Member.Work = d }
	}
	if y.step("", array("large", 100, 2, hours(time.Hour))); y.group("large") != nil {
		t.Error("a hundred hours at $1 fit into $10")
	}
	y.step("", array("small", 4, 2, hours(time.Hour)))
	g := y.group("small")
	if g == nil || !g.Terms.HasBudget || g.Terms.Budget.Cmp(money.Picos(4e12)) < 0 {
		t.Fatalf("four hours at $1 are taken as %+v", g)
	}
	if y.step("", array("more", 4, 2, hours(time.Hour))); y.group("more") != nil {
		t.Errorf("another four fit beside those, which hold %v of $10", g.Worst)
	}
}

// Of 64 arrays submitted at once, the core admits as many as the team limit allows. Whatever they and their members
// do, their holds together never exceed it.
func TestGroupOpened_ConcurrentArraysStayWithinTheLimit(t *testing.T) {
	y := newYard(t, 100)
	limit := money.Picos(20e12)
	y.step("", core.BudgetsSet{Rules: budget.Rules{Limits: []budget.Limit{{Scope: "team:a", Window: budget.Total, Dollars: &limit}}}})
	in := 0
	for n := range 64 {
		name := fmt.Sprint("a", n)
		b := array(name, 1+n%5, 1+n%3, func(t *core.GroupTerms) {
			t.Budget, t.HasBudget = money.Picos(int64(1e11*(1+n%17))), true
			t.Member.Work = time.Duration(1+n%7) * time.Minute
		})
		e := core.Event{At: y.now, Schema: core.Schema, Tenant: "t", Body: b}
		admitted := y.m.Admit([]core.Event{e}) == nil
		y.step("", b)
		if is := y.group(name) != nil; is != admitted {
			t.Fatalf("%s: admitted %v, and there is one: %v", name, admitted, is)
		}
		if n%4 == 3 {
			y.tick(time.Minute)
		}
		if n%8 == 7 {
			y.step("", core.GroupClosed{Group: fmt.Sprint("a", n-7), Members: state.CancelMembers})
		}
		held := money.Amount{}
		for _, g := range y.m.State().Groups() { // the sum, computed plainly
			spent, most := y.m.GroupSpent(g, y.now), money.Amount{}
			if !g.Closed() {
				most = g.Worst
			}
			for _, j := range y.m.State().OpenMembers(g.Name) {
				if g.Closed() {
					most = most.Add(j.Terms().Budget)
				}
			}
			if most.Cmp(spent) < 0 {
				most = spent
			}
			held = held.Add(most)
		}
		if held.Cmp(limit) > 0 {
			t.Fatalf("after %s arrays hold %v of %v", name, held, limit)
		}
		if admitted {
			in++
		}
	}
	if in < 10 || in == 64 {
		t.Errorf("%d of 64 are let in: the limit refuses none, or nearly all", in)
	}
}

// BenchmarkProposed opens an array of 10,000 members and applies the proposals that start all of them.
func BenchmarkProposed(b *testing.B) {
	for b.Loop() {
		m := filled(8)
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		m.Step(event(array("sweep", groups.MaxMembers, groups.MaxMembers, nil)))
		for n := 0; m.State().Group("sweep").Began < groups.MaxMembers; n++ {
			s, _ := m.GroupSnapshot("sweep")
			m.Step(event(core.Proposed{Group: "sweep", Base: s.Base, Moves: propose.Moves(s)}))
		}
		b.StopTimer()
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/groups.MaxMembers, "B/member")
		b.StartTimer()
		runtime.KeepAlive(m)
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/(groups.MaxMembers/propose.MovesAtOnce), "µs/proposal")
}
