//go:build planted

package replay

import (
	"testing"

	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/policy"
	"scrimp/internal/sim/tick"
)

// A broken launch rule in the core changes the benchmark's figures: the core decides them.
func TestSingle_BrokenLaunchRuleChangesFigures(t *testing.T) {
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
