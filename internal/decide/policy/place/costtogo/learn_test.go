package costtogo

import (
	"math"
	"testing"
	"time"

	"scrimp/internal/decide/policy/place/hazard"
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

// Before any observation, losses grow with the square root of the number of nodes, as docs/formulas.md says. A zone that
// was observed for long loses what was observed, for any number.
func TestLearn_GangIsLostMoreOftenUntilObserved(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	scale := func(nodes int, tally hazard.Tally) float64 {
		m := &Model{Price: []float64{1}, Regions: []int{0}, N: 1, Demand: []float64{3}, Nodes: nodes}
		m.Learn([]hazard.Record{{Known: true, Up: true, Since: at, Seen: at, Loss: tally}}, at)
		return m.Loss[0].trait
	}
	for _, n := range []int{1, 2, 4, 16} {
		want := snap(math.Log(1.5*math.Sqrt(float64(n))), scaleGrid)
		if got := scale(n, hazard.Tally{}); math.Abs(got-want) > 1e-9 {
			t.Errorf("%d nodes, nothing observed: logarithm %.3f instead of %.3f", n, got, want)
		}
		if got, one := scale(n, hazard.Tally{Events: 9000, Expected: 3000}), snap(math.Log(3), scaleGrid); math.Abs(got-one) > 1e-9 {
			t.Errorf("%d nodes, 9,000 losses where 3,000 are expected: logarithm %.3f instead of %.3f", n, got, one)
		}
	}
	if one, none := scale(1, hazard.Tally{}), scale(0, hazard.Tally{}); one != none {
		t.Errorf("one node %.3f, no number %.3f", one, none)
	}
}
