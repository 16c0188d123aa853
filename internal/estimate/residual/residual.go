// Package residual learns a correction from measured runs: a Gaussian process whose covariance is a sum of terms, each
// counting if two runs have names in common and close numbers. It does not know the meaning of the names and numbers.
package residual

import (
	"math"
	"sort"
)

// Names and Nums bound the names and numbers that describe a run.
const (
	Names = 13
	Nums  = 10
)

// Point is a run: its names by number, where 0 equals nothing, and its numbers.
type Point struct {
	Name [Names]int32
	Num  [Nums]float64
	// Base is ln of the physical estimate, and Y is ln(measured / physical); NaN if not measured.
	Base, Y float64
}

// Term is one part of the similarity of two runs: it counts if all its names are equal, and more if its numbers are
// closer.
type Term struct {
	Label string        // for a reader
	Names uint32        // names that must be equal
	SD    float64       // how far, in ln, this part moves a run: its share of the prior
	Reach [Nums]float64 // distance, in ln, at which the likeness falls to 61 %; zero for any
	Slope int           // 1 + the index of the number in which it is linear; zero for none
}

// Same returns the set of names that must be equal.
func Same(list ...int) uint32 {
	var b uint32
	for _, i := range list {
		b |= 1 << i
	}
	return b
}

// Kernel is the similarity of two runs over all terms.
type Kernel struct {
	Terms  []Term
	Noise  float64       // difference of repeated runs, in ln
	Centre [Nums]float64 // where a linear term is neutral
	// Width is the factor on a standard error that makes an interval hold four of five, if too few runs exist to learn
	// it.
	Width float64
	// Stack and Source are the names by which groups are left out to learn the width of intervals, for runs of a known
	// and of an unknown program. Family is the name with separate widths.
	Stack, Source []int
	Family        int
}

// part is a term prepared for repeated evaluation.
type part struct {
	names  uint32
	v      float64 // variance
	slope  int
	reach  [3]int8 // indices of its numbers, terminated by -1
	shrink [3]float64
}

// ready returns the parts of a kernel; a term compares at most three numbers.
func (k *Kernel) ready() []part {
	var out []part
	for i := range k.Terms {
		t := &k.Terms[i]
		if t.SD == 0 {
			continue
		}
		p := part{names: t.Names, v: t.SD * t.SD, slope: t.Slope - 1, reach: [3]int8{-1, -1, -1}}
		n := 0
		for j, l := range t.Reach {
			if l > 0 {
				p.reach[n], p.shrink[n] = int8(j), -1/(2*l*l)
				n++
			}
		}
		out = append(out, p)
	}
	return out
}

// like returns the covariance of the corrections of two runs.
func like(parts []part, centre *[Nums]float64, a, b *Point) float64 {
	var same uint32
	for i := range a.Name {
		if a.Name[i] == b.Name[i] && (a.Name[i] != 0 || a == b) {
			same |= 1 << i
		}
	}
	var apart [Nums]float64
	for i := range apart {
		d := a.Num[i] - b.Num[i]
		apart[i] = float64(d * d)
	}
	sum := 0.0
	for i := range parts {
		p := &parts[i]
		if p.names&same != p.names {
			continue
		}
		v, d := p.v, 0.0
		for j, x := range p.reach {
			if x < 0 {
				break
			}
			d += float64(apart[x] * p.shrink[j])
		}
		if d < -20 {
			continue
		}
		if d < 0 {
			v *= math.Exp(d)
		}
		if p.slope >= 0 {
			c := centre[p.slope]
			v *= (a.Num[p.slope] - c) * (b.Num[p.slope] - c)
		}
		sum += v
	}
	return sum
}

// Learned is a kernel with the runs that it learned from.
type Learned struct {
	k      *Kernel
	parts  []part
	Seen   []Point
	factor square
	alpha  []float64
	// Near and Afar are the factors on a standard error that make the interval hold four of five, from the runs' own
	// errors with groups (Near) and sources (Afar) left out.
	Near, Afar Widths
	// Once is Near when one run of the group is known.
	Once Widths
}

// Learn fits the measured points.
func (k *Kernel) Learn(points []Point) *Learned {
	l := &Learned{k: k, parts: k.ready(), Near: Widths{-1: k.Width}, Afar: Widths{-1: k.Width}, Once: Widths{-1: k.Width}}
	for _, p := range points {
		if !math.IsNaN(p.Y) {
			l.Seen = append(l.Seen, p)
		}
	}
	n := len(l.Seen)
	for jitter := k.Noise * k.Noise; ; jitter *= 2 {
		l.factor = k.matrix(l.Seen, jitter)
		if l.factor.cholesky() {
			break
		}
	}
	y := make([]float64, n)
	for i, p := range l.Seen {
		y[i] = p.Y
	}
	l.alpha = l.factor.solve(y)
	l.calibrate(y)
	return l
}

// few is the smallest number of runs for a quantile of their errors.
const few = 15

func (l *Learned) calibrate(y []float64) {
	if len(y) < few {
		return
	}
	x := Examined{Y: y, alpha: l.alpha, inv: l.factor.inverse()}
	l.Near = l.held(x, l.Grouped(l.k.Stack...), true)
	var rest [][]int
	for _, g := range l.Grouped(l.k.Stack...) {
		if len(g) > 1 {
			rest = append(rest, g[1:])
		}
	}
	if once := l.held(x, rest, true); len(once) > 1 {
		l.Once = once
	} else {
		l.Once = l.Near
	}
	l.Afar = l.held(x, l.Grouped(l.k.Source...), false)
	// A family from one or two sources tells little about the next source.
	for f, v := range l.Afar {
		if f > 0 {
			l.Afar[f] = math.Max(v, l.Afar[0])
		}
	}
}

// Widths holds the factors on a standard error by family of models; 0 is all families, and -1 the default with too few
// runs.
type Widths map[int32]float64

// Of returns the factor of a family, or that of all families if it has too few runs.
func (w Widths) Of(family int32) float64 {
	if v, ok := w[family]; ok && family > 0 {
		return v
	}
	if v, ok := w[0]; ok {
		return v
	}
	return w[-1]
}

// held returns the 80 % quantile of |error| over its standard error with groups left out, for all runs and for each
// family with enough of them. The runs of a group have similar errors, so the quantile allows for the number of groups;
// for a family only if unsure is set, because most families have one or two sources.
func (l *Learned) held(x Examined, groups [][]int, unsure bool) Widths {
	mean, sd := x.LeftOut(groups)
	z := map[int32][]float64{}
	many := map[int32]float64{} // groups
	for _, g := range groups {
		seen := map[int32]bool{}
		for _, i := range g {
			if math.IsNaN(mean[i]) {
				continue
			}
			v := math.Abs(mean[i]-x.Y[i]) / sd[i]
			f := l.Seen[i].Name[l.k.Family]
			z[0], z[f] = append(z[0], v), append(z[f], v)
			if !seen[f] {
				seen[f] = true
				many[f]++
			}
		}
		many[0]++
	}
	w := Widths{-1: l.k.Width}
	for f, v := range z {
		if len(v) < few {
			continue
		}
		sort.Float64s(v)
		q := 0.8
		if unsure || f == 0 {
			q = math.Min(1, 0.8*(1+1/many[f]))
		}
		w[f] = v[min(len(v)-1, int(math.Ceil(q*float64(len(v))))-1)]
	}
	return w
}

// Grouped returns the learned points in groups that agree in all the given names.
func (l *Learned) Grouped(by ...int) (groups [][]int) {
	at := map[[Names]int32]int{}
	for i, p := range l.Seen {
		var k [Names]int32
		for _, n := range by {
			k[n] = p.Name[n]
		}
		j, ok := at[k]
		if !ok {
			j = len(groups)
			at[k] = j
			groups = append(groups, nil)
		}
		groups[j] = append(groups[j], i)
	}
	return groups
}

func (k *Kernel) matrix(seen []Point, jitter float64) square {
	s := newSquare(len(seen))
	parts := k.ready()
	for i := range seen {
		for j := range i + 1 {
			v := like(parts, &k.Centre, &seen[i], &seen[j])
			if i == j {
				v += jitter
			}
			s.row(i)[j], s.row(j)[i] = v, v
		}
	}
	return s
}

// Guess is the correction of a point.
type Guess struct {
	Mean, SD float64 // in ln, with its standard error
	Nearest  int     // the most similar learned point; -1 if there is none
}

// Guess returns the correction ln(measured / physical) of a point.
func (l *Learned) Guess(p *Point) Guess {
	q := make([]float64, len(l.Seen))
	for i := range l.Seen {
		q[i] = like(l.parts, &l.k.Centre, p, &l.Seen[i])
	}
	g := Guess{Mean: dot(q, l.alpha), Nearest: -1}
	for i := range q {
		if g.Nearest < 0 || q[i] > q[g.Nearest] {
			g.Nearest = i
		}
	}
	l.factor.forward(q)
	v := like(l.parts, &l.k.Centre, p, p) + l.k.Noise*l.k.Noise - dot(q, q)
	g.SD = math.Sqrt(math.Max(v, 1e-6))
	return g
}

// Examined holds the learned points with the inverse of their covariance, which gives the error of any omitted group
// without fitting again.
type Examined struct {
	Y     []float64
	alpha []float64
	inv   square
}

// Examine prepares the points for leaving groups out. It returns false if the covariance is not positive definite.
func (k *Kernel) Examine(seen []Point) (Examined, bool) {
	f := k.matrix(seen, k.Noise*k.Noise)
	if !f.cholesky() {
		return Examined{}, false
	}
	e := Examined{Y: make([]float64, len(seen)), inv: f.inverse()}
	for i, p := range seen {
		e.Y[i] = p.Y
	}
	e.alpha = f.solve(e.Y)
	return e, true
}

// LeftOut returns the estimates of each group's points as if the group had not been measured, in closed form: for a
// group G of points, error(G) = (K⁻¹[G,G])⁻¹ · (K⁻¹·y)[G].
func (e Examined) LeftOut(groups [][]int) (mean, sd []float64) {
	mean, sd = make([]float64, len(e.Y)), make([]float64, len(e.Y))
	for i := range mean {
		mean[i], sd[i] = math.NaN(), math.NaN()
	}
	for _, g := range groups {
		b := newSquare(len(g))
		rhs := make([]float64, len(g))
		for i, gi := range g {
			for j, gj := range g {
				b.row(i)[j] = e.inv.row(gi)[gj]
			}
			rhs[i] = e.alpha[gi]
		}
		if !b.cholesky() {
			continue
		}
		miss := b.solve(rhs)
		c := b.inverse()
		for i, gi := range g {
			mean[gi] = e.Y[gi] - miss[i]
			sd[gi] = math.Sqrt(math.Max(c.row(i)[i], 1e-6))
		}
	}
	return mean, sd
}
