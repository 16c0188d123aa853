package judge_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"scrimp/internal/work/compress/judge"
)

// turns draws turns of latencies around a median in microseconds; each turn is shifted as the machine drifts.
func turns(rng *rand.Rand, n int, median, drift, noise float64, shifts []float64) (list [][]time.Duration) {
	for i := range n {
		var one []time.Duration
		shift := math.Exp(shifts[i] + rng.NormFloat64()*drift)
		for range 41 {
			one = append(one, time.Duration(1e3*median*shift*math.Exp(rng.NormFloat64()*noise)))
		}
		list = append(list, one)
	}
	return list
}

// A copy that is as fast as the original is called slower or faster in about 5 % of measurements, however noisy the
// machine, and one that takes 1.5 times as long is found. By the comparison of p50 alone half of the equal copies were
// slower.
func TestCompare_IsRarelyWrong(t *testing.T) {
	const rounds = 2000
	for _, n := range []int{2, 5, 12} {
		rng := rand.New(rand.NewPCG(uint64(n), 7))
		wrong, naive, found := 0, 0, 0
		for range rounds {
			shifts := make([]float64, n)
			for i := range shifts {
				shifts[i] = rng.NormFloat64() * 0.3 // slow minutes meet both turns of a pair
			}
			before := turns(rng, n, 100, 0.05, 0.2, shifts)
			same, slow := turns(rng, n, 100, 0.05, 0.2, shifts), turns(rng, n, 150, 0.05, 0.2, shifts)
			if judge.Compare(before, same).Verdict() != judge.CannotTell {
				wrong++
			}
			if judge.Compare(before, same).Is > 1 {
				naive++
			}
			if judge.Compare(before, slow).Verdict() == judge.Slower {
				found++
			}
		}
		if share := float64(wrong) / rounds; share < 0.03 || share > 0.07 {
			t.Errorf("%d pairs: %.3f of the equal copies are called faster or slower", n, share)
		}
		if share := float64(naive) / rounds; share < 0.4 {
			t.Errorf("%d pairs: without the interval %.3f", n, share)
		}
		if share := float64(found) / rounds; n >= 5 && share < 0.99 {
			t.Errorf("%d pairs: %.3f of the slow copies are found", n, share)
		}
	}
}

// By hand: pairs of 100 and 200, and of 100 and 50, have the ratios 2 and 0.5, so logarithms of ±0.693 with mean 0 and
// s = 0.980. The interval is 12.706 × 0.980 / √2 = 8.807 wide to either side. Three pairs of 100 and 50 have no error.
func TestCompare_ReproducesCasesByHand(t *testing.T) {
	turn := func(d time.Duration) []time.Duration { return []time.Duration{d} }
	r := judge.Compare([][]time.Duration{turn(100), turn(100)}, [][]time.Duration{turn(200), turn(50)})
	if math.Abs(r.Is-1) > 1e-12 || math.Abs(math.Log(r.High)-8.807) > 0.001 || math.Abs(math.Log(r.Low)+8.807) > 0.001 || r.Verdict() != judge.CannotTell {
		t.Errorf("%+v", r)
	}
	all := [][]time.Duration{turn(100), turn(100), turn(100)}
	half := [][]time.Duration{turn(50), turn(50), turn(50)}
	if r := judge.Compare(all, half); r.Verdict() != judge.Faster || math.Abs(r.High-0.5) > 1e-12 {
		t.Errorf("%+v", r)
	}
	if r := judge.Compare(half, all); r.Verdict() != judge.Slower || judge.Compare(all, all).Verdict() != judge.CannotTell {
		t.Errorf("%+v", r)
	}
	if r := judge.Compare(all[:1], half[:1]); r.Verdict() != judge.CannotTell {
		t.Errorf("one pair: %+v", r)
	}
}
