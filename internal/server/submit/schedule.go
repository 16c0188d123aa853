package submit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"scrimp/internal/decide/core"
	"scrimp/internal/lib/identity"
	"scrimp/internal/lib/money"
	"scrimp/internal/server/condition"
	"scrimp/internal/server/reply"
	"scrimp/internal/wire/api"
	"scrimp/internal/work/groups"
	"scrimp/internal/work/retrain"
	"scrimp/internal/work/schedule"
)

// scheduled returns the terms of a schedule with runs of the given terms.
func (d *Desk) scheduled(ctx context.Context, c identity.Caller, run *core.GroupTerms,
	b *api.Schedule) (t core.GroupTerms, no *reply.Refusal) {
	y := schedule.Spec{Cron: b.Cron, Zone: b.Zone, Runs: b.Runs, NoCatchUp: b.NoCatchUp,
		When: conditionsOf(b.ScheduleConditions)}
	if b.Until != nil {
		y.Until = *b.Until
	}
	if err := y.Check(d.Control.Now()); err != nil {
		return t, &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: "pipeline.schedule", Err: err,
			Title: "the schedule is not valid", Fix: "correct it"}
	}
	if no = d.conditions(ctx, c, run, &y.When); no != nil {
		return t, no
	}
	if b.Budget.Sign() <= 0 {
		return t, &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: "pipeline.schedule.budget",
			Title: "a schedule needs a budget",
			Fix:   "write how much all runs together may cost, as budget: $200 of the schedule"}
	}
	var worst money.Amount
	d.Control.Read(func(m *core.Machine) { worst = m.WorstOf(*run) })
	if b.Budget.Cmp(worst) < 0 {
		return t, &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: "pipeline.schedule.budget",
			Title: fmt.Sprintf("one run can cost %s with the grace and the minimum charges of its stages, and all runs "+
				"together may cost %s", money.Format(worst, money.USD, 6), money.Short(b.Budget, money.USD)),
			Fix: "give all runs together more, or one run less"}
	}
	t = *run
	t.Kind, t.Schedule, t.Run, t.Pipeline, t.Stages = groups.Schedule, &y, run, nil, nil
	t.Budget, t.HasBudget = b.Budget, true
	return t, nil
}

// conditionsOf reads the conditions of a request.
func conditionsOf(b api.ScheduleConditions) (c retrain.Conditions) {
	if d := b.OnData; d != nil {
		c.Data = &retrain.Data{Path: d.Path, AtLeast: d.AtLeast}
	}
	if p := b.NotBefore; p != nil {
		c.Price = &retrain.Price{Most: p.Most, By: p.By}
	}
	if p := b.WhenItPays; p != nil {
		c.Pays = &retrain.Pays{Value: p.Value, Metric: p.Metric, Point: p.Point, Goal: p.Goal, AtLeast: p.Runs,
			Latest: p.Latest}
	}
	return c
}

// conditions completes the conditions of a schedule. It refuses those that can never be compared: a folder that is none,
// a bucket that does not answer, a store that the user may not read, a metric of no stage.
func (d *Desk) conditions(ctx context.Context, c identity.Caller, run *core.GroupTerms,
	when *retrain.Conditions) *reply.Refusal {
	refused := func(field string, err error, fix string) *reply.Refusal {
		return &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: "pipeline.schedule." + field, Err: err,
			Title: "the condition " + strings.Split(field, ".")[0] + " of the schedule is not valid", Fix: fix}
	}
	if err := when.Check(run.Pipeline); err != nil {
		field := "when"
		if p, ok := errors.AsType[*retrain.Problem](err); ok {
			field, err = p.Field, p.Err
		}
		return refused(field, err, "correct it")
	}
	if when.Data == nil {
		return nil
	}
	address, err := condition.Address(when.Data.Path)
	if err != nil {
		return refused(retrain.OnData, err, "correct the path")
	}
	if !d.Kept.Stores.OfJob(c.User, address) {
		return refused(retrain.OnData, fmt.Errorf("schedules of this server may not read %s (they may read: %s)",
			when.Data.Path, d.Kept.Stores.Shown()), "name one of these; an admin allows others with scrimp serve --stores")
	}
	seen, err := condition.List(ctx, address, retrain.Mark{})
	if err == nil && seen.Err != "" {
		err = errors.New(seen.Err)
	}
	if err != nil {
		return refused(retrain.OnData, d.Kept.Plain(err), "correct the path, or make the folder or bucket first")
	}
	return nil
}
