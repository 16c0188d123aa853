package residual

import (
	"math"
	"slices"
)

// room returns the functions for the names of a point. An unknown name equals nothing.
func (q *Quick) room(p *Point) *room {
	names := p.Name
	for i, n := range names {
		if n != 0 && !q.known[i][n] {
			names[i] = 0
		}
	}
	if r, ok := q.rooms[names]; ok {
		return r
	}
	if len(q.rooms) >= kept || len(q.tables) >= kept {
		clear(q.rooms)
		clear(q.tables)
	}
	m := len(q.chosen)
	r := &room{base: make([]float64, 1+m), like: q.most(names)}
	var slopes [Nums][]float64
	for i, c := range q.channels {
		t := q.table(i, names)
		switch {
		case len(t.rows) == 0:
		case c.near >= 0:
			r.tables = append(r.tables, t)
		case c.slope >= 0:
			if slopes[c.slope] == nil {
				slopes[c.slope] = make([]float64, 1+m)
			}
			add(slopes[c.slope], q.knot(t, 0), 1)
		default:
			add(r.base, q.knot(t, 0), 1)
		}
	}
	for i, s := range slopes {
		if s != nil {
			r.lines = append(r.lines, line{i, s})
		}
	}
	q.rooms[names] = r
	return r
}

// most returns the three learned runs with the largest covariance by names alone, best first.
func (q *Quick) most(names [Names]int32) (list []int) {
	if q.scratch == nil {
		q.scratch = make([]float64, len(q.l.Seen))
	}
	share := q.scratch
	for i := range share {
		var same uint32
		for j, n := range q.l.Seen[i].Name {
			if n == names[j] && n != 0 {
				same |= 1 << j
			}
		}
		share[i] = q.share(same)
	}
	list = make([]int, 0, 3)
	for range min(cap(list), len(share)) {
		best, most := 0, share[0]
		for i, v := range share {
			if v > most {
				best, most = i, v
			}
		}
		list = append(list, best)
		share[best] = -1
	}
	return list
}

// share returns the covariance of two points that comes from the given common names alone.
func (q *Quick) share(same uint32) float64 {
	if q.shares == nil {
		q.shares = slices.Repeat([]float64{math.NaN()}, 1<<Names)
	}
	if v := q.shares[same]; !math.IsNaN(v) {
		return v
	}
	v := 0.0
	for j := range q.parts {
		if p := &q.parts[j]; p.names&same == p.names && p.slope < 0 {
			v += p.v
		}
	}
	q.shares[same] = v
	return v
}

// table returns a channel's function for names; only the names that the channel compares count.
func (q *Quick) table(channel int, names [Names]int32) *table {
	c := q.channels[channel]
	for i := range names {
		if c.names&(1<<i) == 0 {
			names[i] = 0
		}
	}
	at := place{channel, names}
	if t, ok := q.tables[at]; ok {
		return t
	}
	t := &table{channel: c}
	rows := q.rows[:0]
	asked := make([]int, 0, Names)
	seen := q.l.Seen
	for j, n := range names {
		if c.names&(1<<j) == 0 {
			continue
		}
		if asked = append(asked, j); n == 0 { // an unknown name matches nothing
			seen = nil
		}
	}
next:
	for i := range seen {
		have := &seen[i].Name
		for _, j := range asked {
			if have[j] != names[j] {
				continue next
			}
		}
		rows = append(rows, i)
	}
	q.rows, t.rows = rows, slices.Clone(rows)
	q.tables[at] = t
	return t
}

// knot returns a table's values at a knot: first the part of the mean, then by weights.
func (q *Quick) knot(t *table, at int) []float64 {
	if k := t.knots[at]; k != nil {
		return k
	}
	m := len(q.chosen)
	out := make([]float64, 1+m)
	x := (float64(at) + first) * step
	each := make([]float64, len(q.l.Seen))
	for _, i := range t.rows {
		b := &q.l.Seen[i]
		for _, j := range t.parts {
			p := &q.parts[j]
			v := p.v
			if t.near >= 0 {
				d := b.Num[t.near] - x
				v *= math.Exp(float64(d*d) * p.shrink[0])
			}
			if t.slope >= 0 {
				v *= b.Num[t.slope] - q.l.k.Centre[t.slope]
			}
			each[i] += v
		}
	}
	out[0] = dot(each, q.l.alpha)
	for i, s := range q.chosen {
		if v := each[s]; v != 0 {
			add(out[1:], q.weights[i*m:(i+1)*m], v)
		}
	}
	t.knots[at] = out
	return out
}

func add(to, from []float64, by float64) {
	from = from[:len(to)]
	for i := range to {
		to[i] += float64(from[i] * by)
	}
}

func add2(to, a, b []float64, fa, fb float64) {
	a, b = a[:len(to)], b[:len(to)]
	for i := range to {
		to[i] += float64(a[i]*fa) + float64(b[i]*fb)
	}
}
