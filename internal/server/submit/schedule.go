package submit

import (
	"context"
	"fmt"
	"net/http"

	"scrimp/internal/decide/core"
	"scrimp/internal/lib/identity"
	"scrimp/internal/lib/money"
	"scrimp/internal/server/condition"
	"scrimp/internal/server/reply"
	"scrimp/internal/wire/api"
	"scrimp/internal/work/groups"
	"scrimp/internal/work/schedule"
)

// scheduled returns the terms of a schedule with runs of the given terms.
func (d *Service) scheduled(ctx context.Context, c identity.Caller, run *core.GroupTerms,
	b *api.Schedule) (t core.GroupTerms, no *reply.Refusal) {
	y := schedule.Spec{Cron: b.Cron, Zone: b.Zone, Runs: b.Runs, NoCatchUp: b.NoCatchUp, Notify: b.Notify,
		When: condition.Of(b.ScheduleConditions)}
	if b.Until != nil {
		y.Until = *b.Until
	}
	if err := y.Check(d.Control.Now()); err != nil {
		return t, &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: "pipeline.schedule", Err: err,
			Title: "the schedule is not valid", Fix: "correct it"}
	}
	if no := d.Reader.Hook(b.Notify, "pipeline.schedule.notify"); no != nil {
		return t, no
	}
	if no := condition.Check(ctx, d.Kept, c.User, run.Pipeline, &y.When); no != nil {
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
	t.GPUHours, t.WallClock = 0, 0 // those of each run
	t.Budget, t.HasBudget = b.Budget, true
	return t, nil
}
