package groups

import (
	"strings"

	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/server/condition"
	"scrimp/internal/wire/api"
	"scrimp/internal/work/groups"
	"scrimp/internal/work/pipeline"
	"scrimp/internal/work/retrain"
)

// scheduleOf returns the state of a schedule.
func (d *Service) scheduleOf(k known, g *state.Group) *api.ScheduleState {
	m := k.m
	y, spec, clock := g.Schedule, g.Terms.Schedule, d.Control.Clock()
	v := &api.ScheduleState{Cron: spec.Cron, Zone: spec.Zone, Each: g.Terms.Run.Budget, Limit: spec.Runs,
		NoCatchUp: spec.NoCatchUp, Begun: y.Begun, Skipped: y.Skipped, Runs: []api.ScheduleRun{},
		ScheduleConditions: conditions(spec.When), Waits: checks(y.Waits), Weeks: d.weeks(k, g)}
	if !y.Since.IsZero() && !g.Closed() {
		v.WaitsSince = &y.Since
	}
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
			State: "skipped", Checks: checks(x.Checks), Same: x.Same}
		if run := k.group(x.Group); run != nil {
			r.State, r.Succeeded, r.Cost = string(run.Phase), run.Succeeded(), m.GroupSpent(run, d.Control.Now())
			r.Stages, r.Ran = len(run.Stages), run.Began
			if r.Why = whyRun(run); r.Why == "" {
				r.Why = whyBegun(x.Checks)
			}
			for n := range run.Stages {
				if run.Stages[n].Phase != groups.Reused {
					continue
				}
				r.Reused++
				if j := k.job(run.Stages[n].Job); j != nil && j.Priced() {
					v.Saved = v.Saved.Add(j.Spent(d.Control.Now()))
				}
			}
		}
		v.Runs = append(v.Runs, r)
	}
	return v
}

// conditions returns the conditions of a schedule for the API.
func conditions(c retrain.Conditions) (v api.ScheduleConditions) {
	if d := c.Data; d != nil {
		v.OnData = &api.ScheduleData{Path: d.Path, AtLeast: d.AtLeast}
	}
	if p := c.Price; p != nil {
		v.NotBefore = &api.SchedulePrice{Most: p.Most, By: p.By}
	}
	if p := c.Pays; p != nil {
		v.WhenItPays = &api.SchedulePays{Value: p.Value, Metric: p.Metric, Point: p.Point, Goal: p.Goal, Runs: p.AtLeast,
			Latest: p.Latest}
	}
	return v
}

// checks returns what conditions compared, for the API.
func checks(list []retrain.Check) (all []api.ScheduleCheck) {
	for _, c := range list {
		x := api.ScheduleCheck{Condition: c.Condition, Pass: c.Pass, Why: c.Why}
		if d := c.Data; d != nil {
			x.Data = &api.ScheduleDataCheck{New: d.New, AtLeast: d.AtLeast}
			if !d.Mark.Newest.IsZero() {
				x.Data.Newest = new(d.Mark.Newest)
			}
		}
		if p := c.Price; p != nil {
			x.Price = new(api.SchedulePriceCheck(*p))
		}
		if p := c.Pays; p != nil {
			x.Pays = new(api.SchedulePaysCheck(*p))
		}
		all = append(all, x)
	}
	return all
}

// weeks sums up the last runs of a schedule by week.
func (d *Service) weeks(k known, g *state.Group) []api.ScheduleWeek {
	m := k.m
	var list []retrain.Run
	pays := g.Terms.Schedule.When.Pays
	for i := range g.Schedule.Runs {
		x := &g.Schedule.Runs[i]
		one := retrain.Run{Due: x.Due, Skipped: 1 + x.Same}
		if run := k.group(x.Group); run != nil {
			one.Skipped, one.Cost, one.OnDemand = 0, m.GroupSpent(run, d.Control.Now()), onDemand(k, run)
			one.Open = run.Phase != state.GroupOver || condition.FinalCost(m, run) == nil
			if pays != nil {
				one.Value, _ = condition.Metric(run, pays)
			}
		}
		list = append(list, one)
	}
	all := []api.ScheduleWeek{}
	for _, w := range retrain.Weeks(list, pays != nil && pays.Goal == pipeline.Minimize) {
		all = append(all, api.ScheduleWeek{Begin: w.Begin, Runs: w.Runs, Skipped: w.Skipped, Cost: w.Cost, CostOpen: w.Open,
			OnDemand: w.OnDemand, Gain: w.Gain})
	}
	return all
}

// onDemand returns what the jobs of a run would have cost on on-demand machines; nil: that of some job is not known, or
// the job is archived and was not read.
func onDemand(k known, run *state.Group) *money.Amount {
	sum := money.Amount{}
	for n := range run.Began {
		j := k.job(run.MemberID(n))
		if j == nil || j.OnDemand() == nil {
			return nil
		}
		sum = sum.Add(*j.OnDemand())
	}
	return &sum
}

// whyBegun returns what the conditions of a schedule compared when a run began.
func whyBegun(list []retrain.Check) string {
	var all []string
	for _, c := range list {
		all = append(all, c.Why)
	}
	return strings.Join(all, "; ")
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

// countRuns counts the runs of a schedule as its members: those in memory, and the archived ones.
func countRuns(v *api.Group, runs []*state.Group, archived *state.Outcomes) {
	v.Succeeded, v.Failed = archived.Succeeded, archived.Failed
	v.Stopped, v.Cancelled = archived.Stopped, archived.Cancelled
	v.Members = len(runs) + v.Succeeded + v.Failed + v.Stopped + v.Cancelled
	v.Began = v.Members
	for _, run := range runs {
		if run.Phase != state.GroupOver {
			v.Open++
			continue
		}
		switch run.Outcome() {
		case state.Succeeded:
			v.Succeeded++
		case state.Cancelled:
			v.Cancelled++
		case state.Stopped:
			v.Stopped++
		case state.Failed, state.Held, state.Queued, state.Running, state.Paused:
			v.Failed++
		}
	}
}
