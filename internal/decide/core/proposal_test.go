package core_test

import (
	"testing"
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/core"
	"scrimp/internal/lib/money"
)

// A proposal waits until somebody approves it: a new budget, below or above a threshold, does not let it run.
func TestProposal_WaitsForApprovalWhateverItsBudget(t *testing.T) {
	t.Parallel()
	y := newYard(t, 1)
	y.rules(budget.Limit{Scope: "all", Approve: ptr(money.Picos(10e12))})
	terms := core.Terms{Name: "j", Currency: money.USD, Priority: 1, Restart: time.Minute, Budget: money.Picos(20e12), HasBudget: true}
	y.step("user:ann", core.JobSubmitted{Job: "j", Terms: terms,
		Asking: &budget.PendingApproval{Proposal: true, Until: y.now.Add(30 * 24 * time.Hour)}})
	for _, dollars := range []int64{20, 5, 12, 1} {
		y.step("user:ann", core.JobUpdated{Job: "j", Changes: core.Changes{Budget: ptr(money.Picos(dollars * 1e12))}})
		y.want("h")
		j, _ := y.m.Job("j")
		a := j.Approval()
		if !a.Proposal || a.Most != money.Picos(dollars*1e12) || (len(a.Limits) == 1) != (dollars > 10) {
			t.Errorf("with $%d it waits for %+v", dollars, a)
		}
	}
	y.step("user:bob", core.JobReviewed{Job: "j", Approved: true})
	y.want("R")
}
