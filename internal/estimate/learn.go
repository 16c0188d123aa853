package estimate

import (
	"math"
	"sort"
)

// term is one part of the likeness of two runs: it counts where all its names
// are equal, the more the nearer its numbers are.
type term struct {
	label string
	names uint32         // names that must be equal
	sd    float64        // how far, in ln, this part moves a run: its share of the prior
	reach [nNums]float64 // distance, in ln, at which likeness falls to 61 %; zero: any
	slope int            // 1 + the number it is linear in; zero: none
}

func bits(list ...int) uint32 {
	var b uint32
	for _, i := range list {
		b |= 1 << i
	}
	return b
}

// kernel is the likeness of all terms together.
type kernel struct {
	terms []term
	noise float64 // what repeats of one run differ by, in ln
}

// part is a term made ready to be counted often.
type part struct {
	names  uint32
	v      float64 // variance
	slope  int
	reach  [3]int8 // the numbers it is near in, -1 at the end
	shrink [3]float64
}

// ready is the parts of a kernel; a term is near in at most three numbers.
func (k *kernel) ready() []part {
	var out []part
	for i := range k.terms {
		t := &k.terms[i]
		if t.sd == 0 {
			continue
		}
		p := part{names: t.names, v: t.sd * t.sd, slope: t.slope - 1, reach: [3]int8{-1, -1, -1}}
		n := 0
		for j, l := range t.reach {
			if l > 0 {
				p.reach[n], p.shrink[n] = int8(j), -1/(2*l*l)
				n++
			}
		}
		out = append(out, p)
	}
	return out
}

// like is how much two runs share: the covariance of their corrections.
func like(parts []part, a, b *point) float64 {
	var same uint32
	for i := range a.name {
		if a.name[i] == b.name[i] && (a.name[i] != 0 || a == b) {
			same |= 1 << i
		}
	}
	var apart [nNums]float64
	for i := range apart {
		d := a.num[i] - b.num[i]
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
			v *= (a.num[p.slope] - c) * (b.num[p.slope] - c)
		}
		sum += v
	}
	return sum
}

// centre is where a linear term is neutral.
var centre = [nNums]float64{xN: 2, xMicro: 6, xSeq: 7, xOps: 24, xPeak: 5.7, xBand: 7.3, xSize: 21, xCut: 0, xComm: 0}

// learned is a kernel with the runs it has seen.
type learned struct {
	k      *kernel
	parts  []part
	seen   []point
	factor square
	alpha  []float64
	// near and afar are what a standard error is multiplied by so that the interval
	// holds four of five: by the runs' own error with groups, and sources, left out.
	near, afar widths
}

// learn fits the measured points.
func (k *kernel) learn(points []point) *learned {
	l := &learned{k: k, parts: k.ready(), near: widths{}, afar: widths{}}
	for _, p := range points {
		if !math.IsNaN(p.y) {
			l.seen = append(l.seen, p)
		}
	}
	n := len(l.seen)
	for jitter := k.noise * k.noise; ; jitter *= 2 {
		l.factor = k.matrix(l.seen, jitter)
		if l.factor.cholesky() {
			break
		}
	}
	y := make([]float64, n)
	for i, p := range l.seen {
		y[i] = p.y
	}
	l.alpha = l.factor.solve(y)
	l.calibrate(y)
	return l
}

// few is how many runs a quantile of their errors must have.
const few = 30

func (l *learned) calibrate(y []float64) {
	if len(y) < few {
		return
	}
	x := examined{y: y, alpha: l.alpha, inv: l.factor.inverse()}
	l.near = l.held(x, l.grouped(cSource, cTask, cModel, cChip))
	l.afar = l.held(x, l.grouped(cSource))
	// A family that was seen in one or two sources tells little of the next one.
	for f, v := range l.afar {
		l.afar[f] = math.Max(v, l.afar[0])
	}
}

// widths is by how much a standard error is multiplied, by family of models; 0 is
// the family of all.
type widths map[int32]float64

// of is the width for a family, that of all where it has too few runs, and that
// of a normal distribution where all are too few.
func (w widths) of(family int32) float64 {
	if v, ok := w[family]; ok {
		return v
	}
	if v, ok := w[0]; ok {
		return v
	}
	return 1.28
}

// held is the 80 % quantile of |error| over its standard error with groups left
// out, for all runs and for each family that has enough of them.
func (l *learned) held(x examined, groups [][]int) widths {
	mean, sd := x.leftOut(groups)
	z := map[int32][]float64{}
	for i := range mean {
		if !math.IsNaN(mean[i]) {
			v := math.Abs(mean[i]-x.y[i]) / sd[i]
			f := l.seen[i].name[cFamily]
			z[0], z[f] = append(z[0], v), append(z[f], v)
		}
	}
	w := widths{}
	for f, v := range z {
		if len(v) < few {
			continue
		}
		sort.Float64s(v)
		w[f] = v[min(len(v)-1, int(math.Ceil(0.8*float64(len(v)+1)))-1)]
	}
	return w
}

// grouped is the seen points that are alike in all the names.
func (l *learned) grouped(by ...int) (groups [][]int) {
	at := map[[nNames]int32]int{}
	for i, p := range l.seen {
		var k [nNames]int32
		for _, n := range by {
			k[n] = p.name[n]
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

func (k *kernel) matrix(seen []point, jitter float64) square {
	s := newSquare(len(seen))
	parts := k.ready()
	for i := range seen {
		for j := range i + 1 {
			v := like(parts, &seen[i], &seen[j])
			if i == j {
				v += jitter
			}
			s.row(i)[j], s.row(j)[i] = v, v
		}
	}
	return s
}

// predict is the correction ln(measured / physical) of a point and its standard error.
func (l *learned) predict(p *point) (mean, sd float64) {
	g := l.guess(p)
	return g.mean, g.sd
}

// guess is the same with the seen point that is most like it.
func (l *learned) guess(p *point) guess {
	q := make([]float64, len(l.seen))
	for i := range l.seen {
		q[i] = like(l.parts, p, &l.seen[i])
	}
	g := guess{mean: dot(q, l.alpha), nearest: -1}
	for i := range q {
		if g.nearest < 0 || q[i] > q[g.nearest] {
			g.nearest = i
		}
	}
	l.factor.forward(q)
	v := like(l.parts, p, p) + l.k.noise*l.k.noise - dot(q, q)
	g.sd = math.Sqrt(math.Max(v, 1e-6))
	return g
}

// examined is the seen points with the inverse of their likeness, from which the
// error of any group left out follows without fitting again.
type examined struct {
	y, alpha []float64
	inv      square
}

func (k *kernel) examine(seen []point) (examined, bool) {
	f := k.matrix(seen, k.noise*k.noise)
	if !f.cholesky() {
		return examined{}, false
	}
	e := examined{y: make([]float64, len(seen)), inv: f.inverse()}
	for i, p := range seen {
		e.y[i] = p.y
	}
	e.alpha = f.solve(e.y)
	return e, true
}

// leftOut is what each group's points would have been estimated as had the
// group not been measured, in closed form: for a group G of points,
// error(G) = (K⁻¹[G,G])⁻¹ · (K⁻¹·y)[G].
func (e examined) leftOut(groups [][]int) (mean, sd []float64) {
	mean, sd = make([]float64, len(e.y)), make([]float64, len(e.y))
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
			mean[gi] = e.y[gi] - miss[i]
			sd[gi] = math.Sqrt(math.Max(c.row(i)[i], 1e-6))
		}
	}
	return mean, sd
}
