package core

import (
	"errors"
	"fmt"

	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/work/groups"
)

// NoMoreRuns is why a schedule is over that has run as often, or as long, as it should.
const NoMoreRuns = "no_more_runs"

// checkSchedule says what is wrong with the terms of a schedule.
func (m *Machine) checkSchedule(t *state.GroupTerms) error {
	y := t.Schedule
	if (t.Kind == groups.Schedule) != (y != nil) || (y != nil) != (t.Run != nil) || y != nil && t.Member == nil {
		return errors.New("a schedule says when it runs, and what")
	}
	if y == nil {
		return nil
	}
	r := *t.Run
	if r.Kind != groups.Pipeline || r.Parent != "" || t.Parent != "" {
		return errors.New("the runs of a schedule are pipelines")
	}
	r.Member = t.Member
	if err := checkPipeline(&r); err != nil {
		return err
	}
	if worst := m.WorstOf(r); !t.HasBudget || t.Budget.Cmp(worst) < 0 {
		return fmt.Errorf("one run can cost %s, and all runs together may not", money.Format(worst, money.USD, 6))
	}
	return nil
}

// WorstOf is the most that a group with these terms can cost: each member that runs when its budget is spent goes on
// for its grace, and has the longest minimum charge of what is for sale.
func (m *Machine) WorstOf(t state.GroupTerms) money.Amount {
	if !t.HasBudget {
		return money.Amount{}
	}
	if t.Schedule != nil { // what its runs can cost beyond their budgets is taken from it as they begin
		return t.Budget
	}
	most, at := t.Budget, t.AtOnce
	if t.Kind.Planned() {
		at = min(at, m.cfg().MaxRunning)
	}
	rate := m.highestRate(&Terms{Need: plan.Need{MaxRate: t.Rate}})
	each := rate.Until(t.Grace + m.s.MinimumCharge())
	for range at {
		most = most.Add(each)
	}
	return most
}

// openRuns is how many runs of a schedule are not over.
func (m *Machine) openRuns(g *state.Group) (n int) {
	for _, run := range m.parts[g.Name].holds {
		if m.s.Group(run).Phase != state.GroupOver {
			n++
		}
	}
	return n
}

// Runs are a group and those that take from it.
func (m *Machine) Runs(name string) []*state.Group {
	list := []*state.Group{m.s.Group(name)}
	for _, run := range m.parts[name].holds {
		list = append(list, m.Runs(run)...)
	}
	return list
}

// movesSchedule begins a run of a schedule or skips it, where the schedule is due as who proposes it saw it.
func (m *Machine) movesSchedule(g *state.Group, v groups.Move) bool {
	y, r := g.Schedule, v.Run
	open := m.openRuns(g)
	if v.Do == groups.Finish {
		if open == 0 {
			m.groupOver(g, NoMoreRuns)
		}
		return open == 0
	}
	if r == nil || !r.Saw.Equal(y.Due) || !r.Next.After(y.Due) {
		return false
	}
	if v.Do == groups.Await {
		if ok := y.Due.IsZero() && r.Due.IsZero(); !ok {
			return false
		}
		m.fact(state.RunSettled{Group: g.Name})
		return true
	}
	if r.Due.IsZero() || r.Due.After(m.now()) || r.Due.Before(y.Due) || y.Due.IsZero() {
		return false
	}
	switch v.Do {
	case groups.Start:
		if open > 0 && !m.faults.Overlaps || g.Terms.Schedule.Runs > 0 && y.Begun >= g.Terms.Schedule.Runs {
			return false
		}
		m.startsRun(g)
	case groups.Skip:
		m.fact(state.RunSettled{Group: g.Name})
	default:
		return false
	}
	return true
}

// startsRun begins the next run of a schedule, or ends the schedule where its budget leaves nothing for another.
func (m *Machine) startsRun(g *state.Group) {
	b := g.NextRun()
	w := m.weigher()
	v := w.opening(b, g.User())
	switch {
	case v.no == nil && v.asking == nil:
		m.opens(b, v)
		m.fact(state.RunSettled{Group: g.Name, Run: b.Group})
	case v.no != nil && v.no.Why == GroupFull:
		m.fact(state.RunSettled{Group: g.Name, Skipped: v.no.Err.Error()})
		m.endGroup(g.Name, BudgetSpent, v.no.Err.Error(), state.LetMembers)
	default:
		why := "it would need an approval of its own"
		if v.no != nil {
			why = v.no.Err.Error()
		}
		m.fact(state.RunSettled{Group: g.Name, Skipped: why})
	}
}
