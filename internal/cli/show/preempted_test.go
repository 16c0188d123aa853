package show_test

import (
	"strings"
	"testing"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/lib/money"
)

// The page of a critical job says which jobs it preempts at which expected cost, or why it preempts none.
func TestPreemptions_SayCostOrWhyNobody(t *testing.T) {
	t.Parallel()
	p := show.Place{Width: 100}
	j := api.Job{ID: "urgent", Currency: money.USD, Preempts: []string{"low", "other"}, PreemptCost: new(money.Picos(7e11))}
	if out := show.Preemptions(j, p); !strings.Contains(out, "low, other, for a place on a machine; expected cost $0.70") {
		t.Errorf("%s", out)
	}
	j = api.Job{ID: "urgent", PreemptsNobody: "1 job critical itself"}
	if out := show.Preemptions(j, p); !strings.Contains(out, "nobody now: 1 job critical itself") {
		t.Errorf("%s", out)
	}
}
