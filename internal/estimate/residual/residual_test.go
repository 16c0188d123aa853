package residual

import (
	"math"
	"math/rand/v2"
	"testing"
)

// some returns points of two names and two numbers, measured with a known correction.
func some(seed uint64, n int) []Point {
	rng := rand.New(rand.NewPCG(seed, 1))
	var out []Point
	for range n {
		var p Point
		p.Name[0], p.Name[1] = int32(1+rng.IntN(5)), int32(1+rng.IntN(7))
		p.Num[0], p.Num[1] = rng.Float64()*4, rng.Float64()*3
		p.Y = 0.3*float64(p.Name[0]) - 0.1*p.Num[0] + 0.05*rng.NormFloat64()
		out = append(out, p)
	}
	return out
}

func plain() *Kernel {
	near := [Nums]float64{1, 2}
	return &Kernel{Noise: 0.05, Width: 1.5, Stack: []int{0, 1}, Source: []int{1}, Terms: []Term{
		{Label: "all", SD: 0.5}, {Label: "first", Names: Same(0), SD: 0.4},
		{Label: "both", Names: Same(0, 1), SD: 0.2, Reach: near}, {Label: "line", SD: 0.1, Slope: 1},
	}}
}

// The closed form for leaving groups out equals learning again without them.
func TestLeftOut_EqualsLearningWithoutGroup(t *testing.T) {
	k, points := plain(), some(7, 60)
	x, ok := k.Examine(points)
	if !ok {
		t.Fatal("the likeness is no likeness")
	}
	groups := (&Learned{Seen: points}).Grouped(1)
	mean, sd := x.LeftOut(groups)
	for _, g := range groups {
		out := map[int]bool{}
		for _, i := range g {
			out[i] = true
		}
		var rest []Point
		for i, p := range points {
			if !out[i] {
				rest = append(rest, p)
			}
		}
		l := k.Learn(rest)
		for _, i := range g {
			got := l.Guess(&points[i])
			if math.Abs(got.Mean-mean[i]) > 1e-9 || math.Abs(got.SD-sd[i]) > 1e-9 {
				t.Fatalf("point %d: %.12f ± %.12f by the closed form, %.12f ± %.12f by learning again", i, mean[i],
					sd[i], got.Mean, got.SD)
			}
		}
	}
}

func TestWidths_HoldFourOfFive(t *testing.T) {
	k, points := plain(), some(3, 200)
	l := k.Learn(points)
	x, _ := k.Examine(points)
	mean, sd := x.LeftOut(l.Grouped(k.Stack...))
	in := 0
	for i := range points {
		if math.Abs(mean[i]-points[i].Y) <= l.Near.Of(0)*sd[i] {
			in++
		}
	}
	if in < 156 || in > 168 {
		t.Errorf("%d of 200 are within the width", in)
	}
	if few := k.Learn(points[:10]); few.Near.Of(1) != 1.5 {
		t.Errorf("of ten runs a width of %g was learned", few.Near.Of(1))
	}
}

func TestGuess_UnknownPointGetsPrior(t *testing.T) {
	l := plain().Learn(some(5, 50))
	far := Point{Name: [Names]int32{99, 99}, Num: [Nums]float64{1e3, 1e3}}
	near := l.Seen[0]
	f, n := l.Guess(&far), l.Guess(&near)
	if f.SD <= n.SD {
		t.Errorf("what was never seen is as certain (%.3f) as what was (%.3f)", f.SD, n.SD)
	}
	if math.Abs(n.Mean-near.Y) > 0.15 {
		t.Errorf("a seen run of %.3f is guessed as %.3f", near.Y, n.Mean)
	}
	none := plain().Learn(nil).Guess(&near)
	if none.Mean != 0 || none.Nearest != -1 {
		t.Errorf("without any run the guess is %+v", none)
	}
}

// The name 0 is unknown and equals only itself.
func TestLike_UnknownNameMatchesNothing(t *testing.T) {
	k := plain()
	var a, b Point
	parts := k.ready()
	if got, self := like(parts, &k.Centre, &a, &b), like(parts, &k.Centre, &a, &a); got >= self ||
		math.Abs(got-0.25) > 1e-12 {
		t.Errorf("two unknown runs share %g, one with itself %g; only the part of all, 0.25, should be shared", got, self)
	}
}
