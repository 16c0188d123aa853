package core_test

import (
	"testing"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/money"
)

// A part gets more money only if its hold has it, even without a limit.
func TestPart_GetsAtMostItsHold(t *testing.T) {
	y := newYard(t, 1)
	owner := ledger.Owner{Team: "a"}
	y.step("", core.GroupOpened{Group: "study:s", Terms: core.GroupTerms{Owner: owner, HasBudget: true, Budget: money.Picos(10e12), AtOnce: 1}})
	for _, id := range []string{"p", "q"} {
		y.submit(id, "a", core.Owner, func(t *core.Terms) {
			t.Parent, t.Budget, t.HasBudget = "study:s", money.Picos(4e12), true
		})
	}
	y.want("Rq")
	for _, c := range []struct{ dollars, want int64 }{{7, 4}, {6, 6}, {5, 5}, {7, 5}} {
		y.step("", core.JobUpdated{Job: "p", Changes: core.Changes{Budget: ptr(money.Picos(c.dollars * 1e12))}})
		if j, _ := y.m.Job("p"); j.Terms().Budget != money.Picos(c.want*1e12) {
			t.Errorf("asked for $%d beside $4 in $10, it has %v, want $%d", c.dollars, j.Terms().Budget, c.want)
		}
	}
	y.step("", core.JobUpdated{Job: "p", Changes: core.Changes{NoBudget: true}})
	if j, _ := y.m.Job("p"); !j.Terms().HasBudget {
		t.Error("a part has no budget any more, and nobody can say what it costs at most")
	}
}
