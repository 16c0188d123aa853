package residual

import "math"

// Leaving is a way to test known runs: each group is predicted from the runs outside of it, and Weight is the weight of
// one point's error.
type Leaving struct {
	Groups [][]int
	Weight float64
}

// Slope is the gradient of a loss with respect to the logarithm of each setting, and to each measured value.
type Slope struct {
	SD    []float64       // by term
	Reach [][Nums]float64 // by term
	Noise float64
	Y     []float64
}

// Loss returns how badly the points are predicted with groups left out, and its gradient. Every group of every leaving
// must lie within one of blocks.
//
// An error r with standard error s costs ln s + 5/2·ln(1 + r²/4s²), from Student's distribution with four degrees of
// freedom: an unexplained run costs only its logarithm. Loss returns false if the kernel is not positive definite.
//
// The gradient is propagated backwards through error(G) = C·(P·y)[G], C = P[G,G]⁻¹, P = K⁻¹, so that all settings
// together cost as much as two inverses.
func (k *Kernel) Loss(seen []Point, blocks [][]int, by []Leaving) (loss float64, s Slope, ok bool) {
	x, ok := k.Examine(seen)
	if !ok {
		return math.Inf(1), s, false
	}
	n := len(seen)
	alphaBar := make([]float64, n)
	at := make([]int, n) // index of a point in its block
	in := make([]int, n)
	bars := make([]square, len(blocks))
	for b, g := range blocks {
		bars[b] = newSquare(len(g))
		for i, gi := range g {
			at[gi], in[gi] = i, b
		}
	}
	for _, l := range by {
		for _, g := range l.Groups {
			v, good := x.back(g, l.Weight, alphaBar, bars[in[g[0]]], at)
			if !good {
				return math.Inf(1), s, false
			}
			loss += v
		}
	}
	return loss, k.slope(seen, x, blocks, bars, alphaBar), true
}

// back adds the loss of a group to the gradients of P and of P·y.
func (e Examined) back(g []int, weight float64, alphaBar []float64, bar square, at []int) (loss float64, ok bool) {
	n := len(g)
	b, rhs := newSquare(n), make([]float64, n)
	for i, gi := range g {
		for j, gj := range g {
			b.row(i)[j] = e.inv.row(gi)[gj]
		}
		rhs[i] = e.alpha[gi]
	}
	if !b.cholesky() {
		return 0, false
	}
	r, c := b.solve(rhs), b.inverse()
	rBar, vBar := make([]float64, n), make([]float64, n)
	for i := range g {
		v := math.Max(c.row(i)[i], 1e-6)
		q := 4*v + r[i]*r[i]
		loss += weight * (0.5*math.Log(v) + 2.5*math.Log(q/(4*v)))
		rBar[i] = weight * 5 * r[i] / q
		vBar[i] = weight * (0.5/v + 2.5*(4/q-1/v))
	}
	cr := make([]float64, n)
	for i := range g {
		cr[i] = dot(c.row(i), rBar)
	}
	for i, gi := range g {
		alphaBar[gi] += cr[i]
		to := bar.row(at[gi])
		for j, gj := range g {
			v := 0.0
			for m := range g {
				v += c.row(i)[m] * vBar[m] * c.row(m)[j]
			}
			to[at[gj]] -= v + 0.5*(cr[i]*r[j]+cr[j]*r[i])
		}
	}
	return loss, true
}

func (k *Kernel) slope(seen []Point, x Examined, blocks [][]int, bars []square, alphaBar []float64) Slope {
	n := len(seen)
	s := Slope{SD: make([]float64, len(k.Terms)), Reach: make([][Nums]float64, len(k.Terms)), Y: make([]float64, n)}
	for i := range n {
		s.Y[i] = dot(x.inv.row(i), alphaBar)
	}
	// half = P·Bars, one block of columns after another; then kBar = -half·P minus y's part.
	half := newSquare(n)
	for b, g := range blocks {
		for i := range n {
			p, h := x.inv.row(i), half.row(i)
			for a, ga := range g {
				v, bar := 0.0, bars[b].row(a)
				for c, gc := range g {
					v += p[gc] * bar[c]
				}
				h[ga] = v
			}
		}
	}
	parts, which := k.ready(), k.used()
	for i := range n {
		for j := range i + 1 {
			bar := -dot(half.row(i), x.inv.row(j)) - 0.5*(s.Y[i]*x.alpha[j]+s.Y[j]*x.alpha[i])
			if i == j {
				s.Noise += 2 * k.Noise * k.Noise * bar
			} else {
				bar *= 2
			}
			k.add(&s, parts, which, &seen[i], &seen[j], bar)
		}
	}
	return s
}

// used returns the indices of the terms that ready keeps, in its order.
func (k *Kernel) used() (list []int) {
	for i := range k.Terms {
		if k.Terms[i].SD != 0 {
			list = append(list, i)
		}
	}
	return list
}

func (k *Kernel) add(s *Slope, parts []part, which []int, a, b *Point, bar float64) {
	var same uint32
	for i := range a.Name {
		if a.Name[i] == b.Name[i] && (a.Name[i] != 0 || a == b) {
			same |= 1 << i
		}
	}
	for i := range parts {
		p := &parts[i]
		if p.names&same != p.names {
			continue
		}
		v, d := p.v, 0.0
		var apart [3]float64
		for j, x := range p.reach {
			if x < 0 {
				break
			}
			apart[j] = (a.Num[x] - b.Num[x]) * (a.Num[x] - b.Num[x]) * p.shrink[j]
			d += apart[j]
		}
		if d < -20 {
			continue
		}
		if d < 0 {
			v *= math.Exp(d)
		}
		if p.slope >= 0 {
			c := k.Centre[p.slope]
			v *= (a.Num[p.slope] - c) * (b.Num[p.slope] - c)
		}
		v *= bar
		t := which[i]
		s.SD[t] += 2 * v
		for j, x := range p.reach {
			if x < 0 {
				break
			}
			s.Reach[t][x] -= 2 * v * apart[j]
		}
	}
}
