package residual

import (
	"math"
)

// most bounds the runs that determine an interval: those that represent all best. The others add almost nothing, and
// the time of a guess grows with them.
const most = 192

const (
	step  = 0.125 // between two knots, in ln
	knots = 512   // of a table
	first = -128  // the lowest knot, in steps: exp(-16)
	// kept bounds the cached tables and the cached sets of names; beyond it the cache is cleared.
	kept = 1 << 12
)

// Quick guesses like Learned, about a hundred times faster. The covariance of a run with the learned ones is a sum of
// parts that depend on names and on at most one number. So for given names it is a sum of functions of one number,
// which are tabulated on demand with linear interpolation between knots. It is not safe for concurrent use.
//
// The mean uses all runs. The standard error uses at most most of them (Snelson and Ghahramani 2006, Sparse Gaussian
// Processes using Pseudo-inputs, with runs as inputs), so it is slightly too wide if there are more.
type Quick struct {
	l        *Learned
	known    [Names]map[int32]bool // names of the learned runs
	parts    []part
	chosen   []int     // the runs that determine intervals
	weights  []float64 // for each chosen run, what its likeness adds to the square root of the known variance
	channels []channel
	prior    float64       // variance of a point before anything is known, without its slopes
	slopes   [Nums]float64 // variance per square of a number's distance from its centre
	tables   map[place]*table
	rooms    map[[Names]int32]*room
	scratch  []float64
	rows     []int
	shares   []float64 // covariance by the set of common names; NaN if not computed yet
}

// channel is the set of parts with the same names, the same compared number and the same linear number; -1 for none.
type channel struct {
	near, slope int
	names       uint32
	parts       []int
}

// place is a channel with specific names.
type place struct {
	channel int
	names   [Names]int32
}

// table is a channel's function, as far as it was evaluated.
type table struct {
	channel
	rows  []int // the learned runs with the names
	knots [knots][]float64
}

// room holds all functions for runs with the same names.
type room struct {
	base   []float64 // independent of any number
	lines  []line
	tables []*table
	like   []int // the learned runs with the largest covariance, best first
}

type line struct {
	slope int
	sum   []float64
}

// Quick prepares guesses. It returns false if the kernel is not a sum of functions of one number.
func (l *Learned) Quick() (*Quick, bool) {
	q := &Quick{l: l, parts: l.parts, tables: map[place]*table{}, rooms: map[[Names]int32]*room{}}
	type kind struct {
		near, slope int
		names       uint32
	}
	at := map[kind]int{}
	for i, p := range q.parts {
		if p.reach[1] >= 0 {
			return nil, false
		}
		key := kind{int(p.reach[0]), p.slope, p.names}
		j, ok := at[key]
		if !ok {
			j = len(q.channels)
			at[key] = j
			q.channels = append(q.channels, channel{near: key.near, slope: key.slope, names: key.names})
		}
		q.channels[j].parts = append(q.channels[j].parts, i)
		if p.slope < 0 {
			q.prior += p.v
		} else {
			q.slopes[p.slope] += p.v
		}
	}
	for i := range q.known {
		q.known[i] = map[int32]bool{}
		for j := range l.Seen {
			q.known[i][l.Seen[j].Name[i]] = true
		}
	}
	q.choose()
	return q, true
}

// Fork returns another Quick for the same runs, for concurrent use.
func (q *Quick) Fork() *Quick {
	f := *q
	f.rooms, f.tables = map[[Names]int32]*room{}, map[place]*table{}
	return &f
}

// choose selects and weighs the runs that determine intervals: the remaining variance is prior - |Σ
// likeness(chosen)·weights|².
func (q *Quick) choose() {
	n := len(q.l.Seen)
	if n <= most {
		// All of them: the weights are the columns of the factor's inverse.
		q.weights = make([]float64, n*n)
		for i := range n {
			q.chosen = append(q.chosen, i)
			e := q.weights[i*n : (i+1)*n]
			e[i] = 1
			q.l.factor.forward(e)
		}
		return
	}
	rows, left := q.pivots()
	m := len(q.chosen)
	lower := newSquare(m) // among the chosen runs
	for i, c := range q.chosen {
		for j := range i + 1 {
			lower.row(i)[j] = rows[j][c]
		}
	}
	// B = I + C·Cᵀ, where C are the projections divided by the root of their remainder plus the noise.
	noise := q.l.k.Noise * q.l.k.Noise
	b := newSquare(m)
	scaled := make([][]float64, m)
	for i := range m {
		scaled[i] = make([]float64, n)
		for j := range n {
			scaled[i][j] = rows[i][j] / math.Sqrt(noise+math.Max(0, left[j]))
		}
		for j := range i + 1 {
			v := dot(scaled[i], scaled[j])
			b.row(i)[j], b.row(j)[i] = v, v
		}
		b.row(i)[i]++
	}
	b.cholesky()
	root := b.inverse()
	for i := range m {
		r := root.row(i)
		for j := range r {
			r[j] = -r[j]
		}
		r[i] += 1 + 1e-9
	}
	root.cholesky() // of I - B⁻¹
	q.weights = make([]float64, m*m)
	e := make([]float64, m)
	for i := range m {
		clear(e)
		e[i] = 1
		lower.forward(e)
		to := q.weights[i*m : (i+1)*m]
		for j := range m {
			for c, v := range root.row(j)[:j+1] {
				to[c] += float64(v * e[j])
			}
		}
	}
}

// pivots chooses the runs that predict the others best, each time the one with the largest remaining variance (pivoted
// Cholesky). It returns the projections of all runs on them, and the remaining variance of each.
func (q *Quick) pivots() (rows [][]float64, left []float64) {
	seen := q.l.Seen
	n := len(seen)
	left = make([]float64, n)
	for i := range seen {
		left[i] = like(q.parts, &q.l.k.Centre, &seen[i], &seen[i])
	}
	for len(rows) < most {
		p := 0
		for i := range left {
			if left[i] > left[p] {
				p = i
			}
		}
		if left[p] < 1e-7 {
			break
		}
		d := math.Sqrt(left[p])
		row := make([]float64, n)
		for i := range seen {
			if i == p {
				row[i] = d
				continue
			}
			v := like(q.parts, &q.l.k.Centre, &seen[p], &seen[i])
			for _, r := range rows {
				v -= float64(r[p] * r[i])
			}
			row[i] = v / d
		}
		for i := range left {
			left[i] -= float64(row[i] * row[i])
		}
		left[p] = 0
		rows, q.chosen = append(rows, row), append(q.chosen, p)
	}
	return rows, left
}

// Guess returns the correction of a point, without Nearest.
func (q *Quick) Guess(p *Point) Guess {
	if len(q.l.Seen) == 0 {
		return q.l.Guess(p)
	}
	r := q.room(p)
	m := len(q.chosen)
	var sums [1 + most]float64
	to := sums[:1+m]
	copy(to, r.base)
	for _, n := range r.lines {
		if by := p.Num[n.slope] - q.l.k.Centre[n.slope]; by != 0 {
			add(to, n.sum, by)
		}
	}
	for _, t := range r.tables {
		by := 1.0
		if t.slope >= 0 {
			if by = p.Num[t.slope] - q.l.k.Centre[t.slope]; by == 0 {
				continue
			}
		}
		x := p.Num[t.near]/step - first
		if !(x >= 0 && x < knots-1) {
			return q.l.Guess(p)
		}
		at := int(x)
		add2(to, q.knot(t, at), q.knot(t, at+1), by*(1-(x-float64(at))), by*(x-float64(at)))
	}
	v := q.prior + q.l.k.Noise*q.l.k.Noise
	for i, s := range q.slopes {
		if s > 0 {
			d := p.Num[i] - q.l.k.Centre[i]
			v += s * d * d
		}
	}
	return Guess{Mean: to[0], SD: math.Sqrt(math.Max(v-dot(to[1:], to[1:]), 1e-6)), Nearest: -1}
}

// Nearest returns the most similar learned run among those with the most names in common, or -1.
func (q *Quick) Nearest(p *Point) int {
	best, most := -1, 0.0
	if len(q.l.Seen) == 0 {
		return best
	}
	for _, i := range q.room(p).like {
		if v := like(q.parts, &q.l.k.Centre, p, &q.l.Seen[i]); best < 0 || v > most {
			best, most = i, v
		}
	}
	return best
}
