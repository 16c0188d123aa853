package groups

import (
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/state"
	"scrimp/internal/wire/api"
	"scrimp/internal/work/groups"
)

// scheduleOf returns the state of a schedule.
func (d *Desk) scheduleOf(m *core.Machine, g *state.Group) *api.ScheduleState {
	y, spec, clock := g.Schedule, g.Terms.Schedule, d.Control.Clock()
	v := &api.ScheduleState{Cron: spec.Cron, Zone: spec.Zone, Each: g.Terms.Run.Budget, Limit: spec.Runs,
		NoCatchUp: spec.NoCatchUp, Begun: y.Begun, Skipped: y.Skipped, Runs: []api.ScheduleRun{}}
	if !spec.Until.IsZero() {
		v.Until = new(spec.Until)
	}
	due := y.Due
	if due.IsZero() { // the planner has not answered yet
		due = spec.After(m.State().Now())
	}
	ends := spec.Runs > 0 && y.Begun >= spec.Runs || !spec.Until.IsZero() && due.After(spec.Until)
	if !due.IsZero() && !ends && !g.Closed() {
		v.Due, v.DueMarket = new(clock.ToWall(due)), &due
	}
	for _, x := range y.Runs {
		r := api.ScheduleRun{Due: clock.ToWall(x.Due), DueMarket: x.Due, Group: x.Group, Why: x.Why, Missed: x.Missed,
			State: "skipped"}
		if run := m.State().Group(x.Group); run != nil {
			r.State, r.Succeeded, r.Cost = string(run.Phase), run.Succeeded(), m.GroupSpent(run, d.Control.Now())
			r.Stages, r.Ran = len(run.Stages), run.Began
			r.Why = whyRun(run)
			for n := range run.Stages {
				if run.Stages[n].Phase != groups.Reused {
					continue
				}
				r.Reused++
				if j := m.State().Job(run.Stages[n].Job); j != nil && j.Priced() {
					v.Saved = v.Saved.Add(j.Spent(d.Control.Now()))
				}
			}
		}
		v.Runs = append(v.Runs, r)
	}
	return v
}

// whyRun returns why a run failed, or what one of its gates skipped; "": neither.
func whyRun(run *state.Group) string {
	for _, phase := range []groups.StagePhase{groups.StageFailed, groups.Skipped} {
		for n := range run.Stages {
			if x := &run.Stages[n]; x.Phase == phase {
				return run.Terms.Pipeline.Stages[n].Name + ": " + x.Why
			}
		}
	}
	return ""
}

// countRuns counts the runs of a schedule as its members.
func countRuns(v *api.Group, runs []*state.Group) {
	v.Members, v.Began = len(runs), len(runs)
	for _, run := range runs {
		switch {
		case run.Phase != state.GroupOver:
			v.Open++
		case run.Succeeded():
			v.Succeeded++
		case run.Ends == state.CancelMembers:
			v.Cancelled++
		case run.Ends == state.StopMembers:
			v.Stopped++
		default:
			v.Failed++
		}
	}
}
