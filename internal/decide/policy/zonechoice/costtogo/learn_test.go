package costtogo

import (
	"math"
	"testing"

	"scrimp/internal/decide/policy/zonechoice/hazard"
)

// The examples of docs/formulas.md.
func TestHazard_MatchesTheExamples(t *testing.T) {
	rate := func(s hazard.Shape, age float64) float64 { return s.Cumulative(age, age+1e-6) / 1e-6 }
	for _, c := range []struct{ got, want float64 }{
		{lossScale * rate(hazard.Loss, 0.14), 1.72}, {lossScale * rate(hazard.Loss, 10), 0.11},
		{rate(hazard.Return, 0.14), 1.74}, {rate(hazard.Loss, 0.1), 0}, {hazard.Loss.Cumulative(0, 0.14), 0},
	} {
		if math.Abs(c.got-c.want) > 0.006 {
			t.Errorf("%.3f an hour instead of %.2f", c.got, c.want)
		}
	}
}
