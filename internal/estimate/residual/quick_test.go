package residual

import (
	"math"
	"math/rand/v2"
	"testing"
)

// several is a kernel with every feature that Quick supports: names, a compared number, a slope, and both.
func several() *Kernel {
	return &Kernel{Noise: 0.05, Centre: [Nums]float64{2: 1}, Terms: []Term{
		{SD: 0.1}, {SD: 0.3, Names: Same(0)}, {SD: 0.2, Names: Same(0, 1)},
		{SD: 0.2, Names: Same(1), Reach: [Nums]float64{0: 0.8}},
		{SD: 0.15, Reach: [Nums]float64{1: 1.2}}, {SD: 0.1, Slope: 1 + 2},
		{SD: 0.2, Names: Same(0), Slope: 1 + 2, Reach: [Nums]float64{1: 2}},
	}}
}

func runs(n int, rng *rand.Rand) (seen []Point) {
	for i := range n {
		var p Point
		p.Name[0], p.Name[1] = int32(1+i%5), int32(1+i%11)
		p.Num[0], p.Num[1], p.Num[2] = 3*rng.Float64(), 8*rng.Float64(), 2*rng.Float64()
		p.Y = math.Sin(p.Num[0]) + 0.1*float64(i%5) + 0.05*rng.NormFloat64()
		seen = append(seen, p)
	}
	return seen
}

// A quick guess agrees with the slow one: the mean always, the standard error for few runs; for many runs it is not
// narrower and only slightly wider.
func TestQuick_AgreesWithSlowGuess(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 11))
	for _, n := range []int{0, 1, 40, 400} {
		l := several().Learn(runs(n, rng))
		q, ok := l.Quick()
		if !ok {
			t.Fatal("the kernel is a sum")
		}
		widest := 0.0
		for i, p := range runs(200, rng) {
			if i%4 == 0 {
				p.Name[0] = 99 // an unknown name
			}
			slow, quick := l.Guess(&p), q.Guess(&p)
			if math.Abs(slow.Mean-quick.Mean) > 0.01 {
				t.Errorf("%d runs: mean %.4f, slowly %.4f", n, quick.Mean, slow.Mean)
			}
			r := quick.SD / slow.SD
			if r < 0.98 || r > 1.02 && n <= most || r > 1.5 {
				t.Errorf("%d runs: standard error %.4f, slowly %.4f", n, quick.SD, slow.SD)
			}
			widest = math.Max(widest, r)
		}
		t.Logf("%d runs: at most %.3f times as wide", n, widest)
	}
}

// Earlier guesses do not change an answer.
func TestQuick_IsIndependentOfEarlierGuesses(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	l := several().Learn(runs(60, rng))
	a, _ := l.Quick()
	b := a.Fork()
	ask := runs(3000, rng)
	for i := range ask {
		ask[i].Name[2] = int32(i) // unknown, so it gets no table of its own
		b.Guess(&ask[len(ask)-1-i])
	}
	for i := range ask {
		if x, y := a.Guess(&ask[i]), b.Guess(&ask[i]); x != y {
			t.Fatalf("%+v, and asked in another order %+v", x, y)
		}
	}
	if len(b.rooms) > 60 {
		t.Errorf("%d tables for names that were never seen", len(b.rooms))
	}
}

func TestQuick_RefusesTermOfTwoNumbers(t *testing.T) {
	k := several()
	k.Terms = append(k.Terms, Term{SD: 0.1, Reach: [Nums]float64{0: 1, 1: 1}})
	if _, ok := k.Learn(runs(10, rand.New(rand.NewPCG(1, 1)))).Quick(); ok {
		t.Error("it is no sum of functions of one number")
	}
}
