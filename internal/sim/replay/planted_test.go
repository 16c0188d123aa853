//go:build planted

package replay

import (
	"testing"

	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/policy"
	"scrimp/internal/sim/tick"
)

// With the core's launch rule broken, the benchmark's figures are others: it is
// the core that decides them.
func TestABrokenLaunchRuleChangesTheFigures(t *testing.T) {
	same := 0
	runs := generated(40)
	for _, r := range runs {
		if Single(r, plan.NewPlanner(), policy.UniformProgress, false).Cost == r.Play(tick.UniformProgress.Make(r.Job)).Cost {
			same++
		}
	}
	if same > len(runs)/4 {
		t.Errorf("%d of %d runs cost the same with the launch rule broken", same, len(runs))
	}
}
