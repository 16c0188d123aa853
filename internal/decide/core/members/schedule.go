package members

import (
	"scrimp/internal/decide/core/step"
	"scrimp/internal/decide/state"
	"scrimp/internal/work/groups"
)

// NoMoreRuns is why a schedule ends that has run as often, or as long, as it should.
const NoMoreRuns = "no_more_runs"

// openRuns is the number of runs of a schedule that have not ended.
func (ms *Members) openRuns(g *state.Group) (n int) {
	for _, run := range ms.admission.Parts[g.Name].Holds {
		if ms.State.Group(run).Phase != state.GroupOver {
			n++
		}
	}
	return n
}

// Runs returns a group and those that use its budget.
func (ms *Members) Runs(name string) []*state.Group {
	list := []*state.Group{ms.State.Group(name)}
	for _, run := range ms.admission.Parts[name].Holds {
		list = append(list, ms.Runs(run)...)
	}
	return list
}

// movesSchedule starts or skips a run of a schedule, if the schedule's due time is still the one that the planner
// saw.
func (ms *Members) movesSchedule(g *state.Group, v groups.Move) bool {
	y, r := g.Schedule, v.Run
	open := ms.openRuns(g)
	if v.Do == groups.Finish {
		if open == 0 {
			ms.groupOver(g, NoMoreRuns)
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
		ms.Fact(state.RunSettled{Group: g.Name})
		return true
	}
	if r.Due.IsZero() || r.Due.After(ms.Now()) || r.Due.Before(y.Due) || y.Due.IsZero() {
		return false
	}
	switch v.Do {
	case groups.Start:
		if open > 0 && !ms.Faults.Overlaps || g.Terms.Schedule.Runs > 0 && y.Begun >= g.Terms.Schedule.Runs {
			return false
		}
		ms.startsRun(g)
	case groups.Skip:
		ms.Fact(state.RunSettled{Group: g.Name})
	default:
		return false
	}
	return true
}

// startsRun starts the next run of a schedule, or ends the schedule if its budget has nothing left for another.
func (ms *Members) startsRun(g *state.Group) {
	b := g.NextRun()
	w := ms.admission.Weigher()
	v := w.Opening(b, g.User())
	switch {
	case v.No == nil && v.Asking == nil:
		ms.opens(b, v)
		ms.Fact(state.RunSettled{Group: g.Name, Run: b.Group})
	case v.No != nil && v.No.Why == step.GroupFull:
		ms.Fact(state.RunSettled{Group: g.Name, Skipped: v.No.Err.Error()})
		ms.endGroup(g.Name, step.BudgetSpent, v.No.Err.Error(), state.LetMembers)
	default:
		why := "it would need an approval of its own"
		if v.No != nil {
			why = v.No.Err.Error()
		}
		ms.Fact(state.RunSettled{Group: g.Name, Skipped: why})
	}
}
