package pack

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The learner finds the rates of pairs from tasks with several neighbours.
func TestRates_LearnsPairsFromGroups(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 5))
	truth := [3][3]float64{{0.93, 0.8, 1}, {0.99, 0.7, 0.85}, {0.9, 0.95, 0.97}}
	var rates Rates
	if got := rates.Of(1, 2); got != assumedPair {
		t.Errorf("an unknown pair runs at %f", got)
	}
	for range 400 {
		kind, rate := r.IntN(3), 1.0
		var beside []int
		for range 1 + r.IntN(4) {
			b := r.IntN(3)
			beside, rate = append(beside, b), rate*truth[kind][b]
		}
		rates.Observe(kind, beside, rate)
	}
	for a := range truth {
		for b, want := range truth[a] {
			if got := rates.Of(a, b); math.Abs(got-want) > 0.02 {
				t.Errorf("kind %d beside %d: learned %f, is %f", a, b, got, want)
			}
		}
	}
	before := rates.Of(0, 1)
	for _, odd := range []float64{0, -1, math.NaN(), math.Inf(1), 1.5} {
		rates.Observe(0, []int{1}, odd)
	}
	if rates.Of(0, 1) != before {
		t.Error("a measurement that is no rate changes what is known")
	}
}
