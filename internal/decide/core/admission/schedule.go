package admission

import (
	"errors"
	"fmt"

	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/work/groups"
)

// checkSchedule returns an error if the terms of a schedule are invalid.
func (ad *Admission) checkSchedule(t *state.GroupTerms) error {
	y := t.Schedule
	if (t.Kind == groups.Schedule) != (y != nil) || (y != nil) != (t.Run != nil) || y != nil && t.Member == nil {
		return errors.New("a schedule needs a time and a pipeline")
	}
	if y == nil {
		return nil
	}
	r := *t.Run
	if r.Kind != groups.Pipeline || r.Parent != "" || t.Parent != "" {
		return errors.New("a schedule can run only pipelines")
	}
	r.Member = t.Member
	if err := checkPipeline(&r); err != nil {
		return err
	}
	if worst := ad.WorstOf(r); !t.HasBudget || t.Budget.Cmp(worst) < 0 {
		return fmt.Errorf("one run can cost %s, and all runs together may not", money.Format(worst, money.USD, 6))
	}
	return nil
}

// WorstOf is the maximum cost of a group with these terms: each member that runs when the budget is spent continues
// for its grace, and may have the longest minimum charge of the offers for sale.
func (ad *Admission) WorstOf(t state.GroupTerms) money.Amount {
	if !t.HasBudget {
		return money.Amount{}
	}
	if t.Schedule != nil { // what its runs may cost beyond their budgets comes out of its budget as they start
		return t.Budget
	}
	most, at := t.Budget, t.AtOnce
	if t.Kind.Planned() {
		at = min(at, ad.Config().MaxRunning)
	}
	rate := ad.HighestRate(&state.Terms{Need: plan.Need{MaxRate: t.Rate}})
	each := rate.Until(t.Grace + ad.State.MinimumCharge())
	for range at {
		most = most.Add(each)
	}
	return most
}
