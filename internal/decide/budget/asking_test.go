package budget_test

import (
	"testing"
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/lib/money"
)

// A proposal waits for approval whatever the limits say, and a limit that asks as well keeps its own time.
func TestAsking_KeepsAProposalWhateverTheLimitsSay(t *testing.T) {
	t.Parallel()
	soon, late := time.Unix(100, 0), time.Unix(900, 0)
	own := &budget.PendingApproval{Proposal: true, Until: late}
	limit := &budget.PendingApproval{Limits: []budget.Threshold{{Limit: "team:a/month"}}, Until: soon}
	j := budget.Job{Bounded: true, Most: money.Picos(12e12)}
	if budget.Asking(nil, nil, j) != nil || budget.Asking(limit, nil, j) != limit {
		t.Error("a job without a proposal needs what the limits ask for")
	}
	if a := budget.Asking(nil, &budget.PendingApproval{Until: late}, j); a != nil {
		t.Errorf("an approval that no proposal asks for stays: %+v", a)
	}
	a := budget.Asking(nil, own, j)
	if !a.Proposal || !a.Until.Equal(late) || a.Most != money.Picos(12e12) || len(a.Limits) != 0 ||
		a.String() != "waits for approval: it is a proposal" {
		t.Errorf("a proposal alone: %+v", a)
	}
	if a = budget.Asking(limit, own, budget.Job{}); !a.Proposal || !a.Until.Equal(soon) || len(a.Limits) != 1 || a.Bounded {
		t.Errorf("a proposal above a limit: %+v", a)
	}
}
