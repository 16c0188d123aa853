package costtogo

import "scrimp/internal/decide/policy/zonechoice/hazard"

// mix computes x·a + y·b + c + h·l elementwise.
func mix(out, a, b, l []float64, x, y, c, h float64) {
	a, b, l = a[:len(out)], b[:len(out)], l[:len(out)]
	for q := range out {
		out[q] = c + float64(x*a[q]) + float64(y*b[q]) + float64(h*l[q])
	}
}

// ahead sets out to the values half a step above p, extrapolated from p and from o, one step below it.
func ahead(out, p, o []float64, first bool) {
	p, o = p[:len(out)], o[:len(out)]
	if first {
		copy(out, p)
		return
	}
	for q := range out {
		out[q] = p[q] + float64(0.5*(p[q]-o[q]))
	}
}

func (t *Table) fill(i int) {
	m := &t.Model
	w := len(t.grid)
	cur, prev, older := t.layer(i), t.layer(i-1), t.layer(max(i-2, 0))
	work := float64(i) * t.step
	for z := range m.Price {
		ahead(t.mid[z], prev.lost[z], older.lost[z], i < 3)
		c := m.Price[z] * t.step
		for a := range hazard.Ages {
			h, on := t.hold[z][a], min(1, t.onward[a]*t.step)
			same, later := prev.spot[z][a], prev.spot[z][min(a+1, hazard.Ages-1)]
			mix(cur.spot[z][a][:w], same, later, t.mid[z], (1-h)*(1-on), (1-h)*on, c*(1-h/2), h)
			if m.Latch { // the guard ends it
				cur.spot[z][a][0] = m.DemandAt(z) * (work + m.Restart)
			}
		}
	}
	for h := range m.N {
		ahead(t.midA[h], prev.come[h], older.come[h], i < 3)
		for b := range hazard.Ages {
			out, same, later := cur.dem[h][b][:w], prev.dem[h][b], prev.dem[h][min(b+1, hazard.Ages-1)]
			r, on := t.stepped[b], min(1, t.onward[b]*t.step)
			c := m.Demand[h] * t.step
			for q := range out {
				a := t.midA[h][q]
				x := same[q]
				if a < x {
					out[q] = float64(c*(1-r/2)) + float64(r*a) + (1-r)*(float64((1-on)*x)+float64(on*later[q]))
				} else {
					out[q] = c + float64((1-on)*x) + float64(on*later[q])
				}
			}
			out[0] = m.Demand[h] * work
		}
		forced := m.Forced(h, work)
		cur.back[h][0], cur.come[h][0] = forced, m.Demand[h]*work
		for b := range hazard.Ages {
			cur.none[h][b][0] = forced
		}
	}
	for z := range m.Price {
		cur.lost[z][0] = m.Forced(m.Regions[z], work)
		for k, home := range t.ways.from[m.Regions[z]] {
			for a := range hazard.Ages {
				h, on := t.hold[z][a], min(1, t.onward[a]*t.step)
				same, later := prev.cand[z][k][a], prev.cand[z][k][min(a+1, hazard.Ages-1)]
				mix(cur.cand[z][k][a][:w], same, later, prev.dem[home][0], (1-h)*(1-on), (1-h)*on, m.Demand[home]*t.step, h)
				cur.cand[z][k][a][0] = m.Demand[home] * work
			}
		}
	}
	t.lasting(cur)
	t.line(cur, work)
	for q := 1; q < w; q++ {
		t.takes(q)
		t.waits(q)
		t.losses(q)
	}
	t.older(cur)
}

// lines are the rows of a layer that depend on each other from place to place, by home region and zone. All other
// rows are computed one by one, before or after.
type lines struct {
	of    []line  // by same region or not, then by zone
	took  []*line // by home region, then by zone
	homes []home
}

// line is the data of a zone that is taken from one region.
type line struct {
	fresh, old, cand, lost []float64 // taken when new or old; on on-demand while it is up and new; at its loss
	whole                  [2]float64
	half                   []spot
	first                  int
	owed                   float64 // dollars at a loss on the way
	part                   float64 // share of returns
	up                     float64
	region                 int
}

// home is the data of one home region.
type home struct {
	none       [hazard.Ages][]float64
	back, come []float64
}

// line sets up the lines of the layer, and fills none with the cost of on-demand instead of waiting.
func (t *Table) line(cur *layer, work float64) {
	m := &t.Model
	w := len(t.grid)
	l := &t.lines
	l.of, l.took, l.homes = l.of[:0], l.took[:0], l.homes[:0]
	for k := range t.ways.kinds {
		s := &t.shift[min(k, 1)]
		for z := range m.Price {
			if k >= len(t.ways.fare[m.Regions[z]]) {
				l.of = append(l.of, line{first: w})
				continue
			}
			take := &cur.take[z][k]
			l.of = append(l.of, line{
				fresh: take[0][:w], old: take[oldAge][:w], cand: cur.cand[z][k][0][:w], lost: cur.lost[z][:w],
				whole: [2]float64{1 - s.last[0][z], 1 - s.last[oldAge][z]}, half: s.half[:w], first: s.first,
				owed: t.ways.fare[m.Regions[z]][k] + float64(m.Price[z]*s.owed/2),
				part: t.share[z], up: t.up[z], region: m.Regions[z],
			})
		}
	}
	dem := t.shift[0].whole[:w]
	for h := range m.N {
		for z := range m.Price {
			l.took = append(l.took, &l.of[t.ways.of[m.Regions[z]][h]*len(m.Price)+z])
		}
		l.homes = append(l.homes, home{back: cur.back[h][:w], come: cur.come[h][:w]})
		for b := range hazard.Ages {
			none, on := cur.none[h][b][:w], cur.dem[h][b]
			l.homes[h].none[b] = none
			forced := m.Forced(h, work)
			for q := 1; q < w; q++ {
				none[q] = min(forced, float64(m.Demand[h]*m.Restart)+dem[q].of(on))
			}
			t.cheaper(cur, h, b, none)
		}
	}
}

// cheaper lowers none to the cost of on-demand in cheaper regions, including the move there.
func (t *Table) cheaper(cur *layer, h, b int, none []float64) {
	m, far := &t.Model, &t.shift[1]
	for r := range m.N {
		if m.Demand[r] >= m.Demand[h] {
			continue
		}
		c := m.Fare(h, r) + float64(m.Demand[r]*far.owed)
		for q := max(1, far.first); q < len(none); q++ {
			none[q] = min(none[q], c+far.whole[q].of(cur.dem[r][b]))
		}
	}
}

// lasting fills take, by place, with the cost of taking a machine if it outlasts its restart, times the probability
// of that.
func (t *Table) lasting(cur *layer) {
	m := &t.Model
	w := len(t.grid)
	for k := range t.ways.kinds {
		s := &t.shift[min(k, 1)]
		first, at := min(s.first, w), s.whole[:w]
		for z := range m.Price {
			if k >= len(t.ways.fare[m.Regions[z]]) {
				continue
			}
			c := t.ways.fare[m.Regions[z]][k] + float64(m.Price[z]*s.owed)
			done := 0 // buckets below this one are in t.after
			for a := range hazard.Ages {
				b, f, p := s.bucket[a], s.part[a], s.last[a][z]
				for ; done <= min(b+1, hazard.Ages-1); done++ {
					spot, out := cur.spot[z][done], t.after[done][:w]
					for q := first; q < w; q++ {
						out[q] = at[q].of(spot)
					}
				}
				out, lo := cur.take[z][k][a][:w], t.after[b][:w]
				for q := range first {
					out[q] = far
				}
				if f == 0 {
					for q := first; q < w; q++ {
						out[q] = float64(p * (c + lo[q]))
					}
					continue
				}
				hi := t.after[b+1][:w]
				for q := first; q < w; q++ {
					out[q] = float64(p * (c + (float64((1-f)*lo[q]) + float64(f*hi[q]))))
				}
			}
		}
	}
}

// takes adds the cost of a loss during the restart, for a new and for an old machine.
func (t *Table) takes(q int) {
	for i := range t.lines.of {
		l := &t.lines.of[i]
		if q < l.first {
			continue
		}
		lost := l.owed + l.half[q].of(l.lost)
		l.fresh[q] += float64(l.whole[0] * lost)
		l.old[q] += float64(l.whole[1] * lost)
		l.cand[q] = min(l.fresh[q], l.cand[q])
	}
}

// older does the same for the other ages, once all losses are known.
func (t *Table) older(cur *layer) {
	m := &t.Model
	w := len(t.grid)
	lost := t.spare[:w]
	for k := range t.ways.kinds {
		s := &t.shift[min(k, 1)]
		half := s.half[:w]
		for z := range m.Price {
			if k >= len(t.ways.fare[m.Regions[z]]) {
				continue
			}
			l := &t.lines.of[k*len(m.Price)+z]
			for q := s.first; q < w; q++ {
				lost[q] = l.owed + half[q].of(l.lost)
			}
			for a := range hazard.Ages {
				if a == 0 {
					continue
				}
				take, cand, gone := cur.take[z][k][a][:w], cur.cand[z][k][a][:w], 1-s.last[a][z]
				for q := s.first; q < w; q++ {
					v := take[q]
					if a != oldAge {
						v += float64(gone * lost[q])
						take[q] = v
					}
					cand[q] = min(v, cand[q])
				}
			}
		}
	}
}

// waits computes the remaining cost if nothing is up, on on-demand or with nothing held.
func (t *Table) waits(q int) {
	zones := len(t.Model.Price)
	for h := range t.lines.homes {
		home := &t.lines.homes[h]
		none := &home.none
		stay := none[0][q-1]
		a, come := 0.0, 0.0
		for _, l := range t.lines.took[h*zones : h*zones+zones] {
			come += l.part * l.cand[q]
			a += l.part * min(l.fresh[q], stay)
		}
		home.back[q], home.come[q] = a, come
		if q == 1 {
			continue
		}
		a = (a + home.back[q-1]) / 2
		for b := hazard.Ages - 1; b >= 0; b-- { // later buckets first, because waiting leads to them
			r, on := t.waited[b][q], t.moved[b][q]
			x := float64((1-on)*none[b][q-1]) + float64(on*none[min(b+1, hazard.Ages-1)][q-1])
			none[b][q] = min(none[b][q], float64(r*min(a, x))+float64((1-r)*x))
		}
	}
}

// losses computes the remaining cost just after a loss: the best neighbour that is up, or none.
func (t *Table) losses(q int) {
	zones := len(t.Model.Price)
	for h := range t.lines.homes {
		took := t.lines.took[h*zones : h*zones+zones]
		for i := 1; i < len(t.order); i++ {
			for k := i; k > 0; k-- {
				a, b := t.order[k], t.order[k-1]
				if took[a].old[q] >= took[b].old[q] {
					break
				}
				t.order[k], t.order[k-1] = b, a
			}
		}
		none := t.lines.homes[h].none[0][q]
		for z, lost := range took {
			if lost.region != h {
				continue
			}
			out, rest := 0.0, 1.0
			for _, n := range t.order {
				l := took[n]
				take := l.old[q]
				if take >= none {
					break
				}
				if n == z {
					continue
				}
				p := l.up
				if l.region == h {
					p *= together
				}
				out += float64(rest * p * take)
				rest *= 1 - p
			}
			lost.lost[q] = out + float64(rest*none)
		}
	}
}
