package residual

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The computed gradient equals the change of the loss when a setting moves.
func TestLoss_GradientMatchesDifference(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 5))
	var seen []Point
	for i := range 24 {
		var p Point
		p.Name[0], p.Name[1] = int32(1+i%3), int32(1+i%7)
		p.Num[0], p.Num[1] = rng.NormFloat64(), rng.NormFloat64()
		p.Y = 0.3*p.Num[0] + 0.2*float64(i%3) + 0.1*rng.NormFloat64()
		seen = append(seen, p)
	}
	k := &Kernel{Noise: 0.07, Terms: []Term{
		{SD: 0.2}, {SD: 0.3, Names: Same(0)}, {SD: 0}, {SD: 0.25, Names: Same(1), Reach: [Nums]float64{0: 0.8, 1: 1.3}},
		{SD: 0.15, Slope: 1},
	}}
	var blocks, fine [][]int
	for f := range 3 {
		var g []int
		for i := f; i < len(seen); i += 3 {
			g = append(g, i)
		}
		blocks = append(blocks, g)
		fine = append(fine, g[:3], g[3:])
	}
	by := []Leaving{{fine, 1}, {blocks, 0.5}}
	loss := func() float64 {
		l, _, ok := k.Loss(seen, blocks, by)
		if !ok {
			t.Fatal("no likeness")
		}
		return l
	}
	_, s, _ := k.Loss(seen, blocks, by)
	check := func(name string, at *float64, log bool, got float64) {
		was := *at
		const h = 1e-5
		move := func(d float64) float64 {
			if log {
				*at = was * math.Exp(d)
			} else {
				*at = was + d
			}
			l := loss()
			*at = was
			return l
		}
		if want := (move(h) - move(-h)) / (2 * h); math.Abs(got-want) > 1e-5*(1+math.Abs(want)) {
			t.Errorf("%s: slope %.8g, moving it shows %.8g", name, got, want)
		}
	}
	check("noise", &k.Noise, true, s.Noise)
	for i := range k.Terms {
		if k.Terms[i].SD > 0 {
			check("share", &k.Terms[i].SD, true, s.SD[i])
		}
		for j := range k.Terms[i].Reach {
			if k.Terms[i].Reach[j] > 0 {
				check("reach", &k.Terms[i].Reach[j], true, s.Reach[i][j])
			}
		}
	}
	for _, i := range []int{0, 5, 23} {
		check("measured value", &seen[i].Y, false, s.Y[i])
	}
}
