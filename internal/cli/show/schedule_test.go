package show_test

import (
	"slices"
	"testing"
	"time"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/cli/show/group"
	"scrimp/internal/lib/money"
	"scrimp/internal/test/golden"
)

func TestSchedules_MatchGolden(t *testing.T) {
	run := func(hours int, r api.ScheduleRun) api.ScheduleRun {
		r.Due = now.Add(time.Duration(hours) * time.Hour)
		r.DueMarket = r.Due
		return r
	}
	g := api.Group{ID: "retrain", Name: "retrain", Kind: "schedule", State: "open", Members: 3, Began: 3, Succeeded: 1, Failed: 1, Open: 1, AtOnce: 4,
		Submitted: now.Add(-96 * time.Hour), Currency: money.USD, Spent: amount("12.5"), Budget: ptr(amount("200")), User: "ana",
		Schedule: &api.ScheduleState{Cron: "0 3 * * *", Zone: "Europe/Berlin", Each: amount("9"), Limit: 30, Until: ptr(now.Add(1000 * time.Hour)),
			Due: ptr(now.Add(9 * time.Hour)), DueMarket: ptr(now.Add(9 * time.Hour)), Begun: 3, Skipped: 1, Saved: amount("7.25"),
			Runs: []api.ScheduleRun{
				run(-87, api.ScheduleRun{Group: "retrain.r1", State: "over", Succeeded: true, Stages: 5, Ran: 5, Cost: amount("8")}),
				run(-63, api.ScheduleRun{State: "skipped", Why: "the run before it is not over"}),
				run(-39, api.ScheduleRun{Group: "retrain.r2", State: "over", Stages: 5, Ran: 2, Reused: 3, Missed: 2, Cost: amount("3")}),
				run(-15, api.ScheduleRun{Group: "retrain.r3", State: "open", Stages: 5, Ran: 1, Reused: 2, Cost: amount("1.5")}),
			}}}
	skip := run(-15, api.ScheduleRun{State: "skipped", Why: "2 new objects, and a run needs 100", Same: 5})
	when := g
	when.Schedule = ptr(*g.Schedule)
	when.Schedule.Runs = slices.Concat(g.Schedule.Runs[:1], []api.ScheduleRun{skip})
	when.Schedule.ScheduleConditions = api.ScheduleConditions{OnData: &api.ScheduleData{Path: "s3://bucket/new", AtLeast: 100},
		NotBefore:  &api.SchedulePrice{Most: 1_200_000_000_000, By: 6 * time.Hour},
		WhenItPays: &api.SchedulePays{Value: amount("50"), Metric: "evaluate.accuracy"}}
	when.Schedule.WaitsSince = ptr(now)
	when.Schedule.Waits = []api.ScheduleCheck{{Pass: true, Why: "120 new objects"}, {Why: "gpu-a costs $1.30 an hour, and the limit is $1.20: the run waits until 2026-07-15 18:00 UTC at most"}}
	when.Schedule.Weeks = []api.ScheduleWeek{{Begin: now.AddDate(0, 0, -14), Runs: 5, Skipped: 2, Cost: amount("40"), OnDemand: ptr(amount("95.5")), Gain: "0.012"},
		{Begin: now.AddDate(0, 0, -7), Runs: 1, Skipped: 6, Cost: amount("8"), CostOpen: true}}
	when.Schedule.Reports = []api.Notice{{Event: "week", To: "hooks.example.org", State: api.Delivered},
		{Event: "week", To: "hooks.example.org", State: api.Refused, Error: "it answered 404\x1b[2J"}}
	fresh := g
	fresh.Spent, fresh.Schedule = amount("0"), &api.ScheduleState{Cron: "0 3 * * *", Each: amount("9"), Due: ptr(now.Add(time.Hour)), DueMarket: ptr(now.Add(time.Hour))}
	over := g
	y := *g.Schedule
	y.Due, y.DueMarket = nil, nil
	over.State, over.Why, over.Detail, over.Finished, over.Schedule = "over", "budget_spent", "of $200, $195 is taken", ptr(now), &y
	for width, p := range map[string]show.Place{"piped": {}, "80": {Width: 80, Now: now}, "120": {Width: 120, Now: now}} {
		golden.Check(t, "schedule."+width+".txt", group.Group(g, p)+"\n"+group.Group(fresh, p)+"\n"+group.Group(over, p)+"\n"+group.Group(when, p)+"\n"+
			group.SchedulePlan(api.Schedule{Cron: "0 3 * * *", Budget: amount("200"), ScheduleConditions: when.Schedule.ScheduleConditions}, p))
	}
}
