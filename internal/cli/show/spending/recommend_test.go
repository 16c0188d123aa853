package spending_test

import (
	"strings"
	"testing"

	"scrimp/internal/cli/show"
	"scrimp/internal/cli/show/spending"
	"scrimp/internal/lib/money"
	"scrimp/internal/work/recommend"
)

// The first sentence agrees with what follows: it speaks of recommendations only where some follow, and of the target
// only where their savings are known.
func TestRecommend_SaysWhatFollows(t *testing.T) {
	t.Parallel()
	known := money.Picos(1e12)
	for name, c := range map[string]struct {
		plan        recommend.Plan
		want, never string
	}{
		"nothing": {recommend.Plan{}, "Nothing in these costs shows how to spend less.", "recommendations below"},
		"unknown": {recommend.Plan{Recommendations: []recommend.Recommendation{{Name: "commitment"}}},
			"No saving of the recommendations below is known.", "do not reach"},
		"too little": {recommend.Plan{Reached: known, Recommendations: []recommend.Recommendation{{Name: "window", Saving: &known}}},
			"The recommendations below do not reach it.", "marked"},
		"enough": {recommend.Plan{Reached: known, Enough: true, Recommendations: []recommend.Recommendation{{Name: "window", Saving: &known}}},
			"The recommendations marked with * reach it.", "do not reach"},
	} {
		c.plan.Currency = money.USD
		got := spending.Recommend([]recommend.Plan{c.plan}, show.Place{})
		if !strings.Contains(got, c.want) || strings.Contains(got, c.never) {
			t.Errorf("%s: %s", name, got)
		}
	}
}
