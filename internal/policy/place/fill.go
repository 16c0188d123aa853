package place

// mix is x·a + y·b + c + h·l, place by place.
func mix(out, a, b, l []float64, x, y, c, h float64) {
	a, b, l = a[:len(out)], b[:len(out)], l[:len(out)]
	for q := range out {
		out[q] = c + float64(x*a[q]) + float64(y*b[q]) + float64(h*l[q])
	}
}

// ahead puts into out the value half a step above that of p, from those of p and
// of o, a step below it.
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

func (t *table) fill(i int) {
	m := &t.m
	w := len(t.grid)
	cur, prev, older := t.layer(i), t.layer(i-1), t.layer(max(i-2, 0))
	work := float64(i) * t.step
	forced := m.demand * (work + m.restart)
	for z := range m.price {
		ahead(t.mid[z], prev.lost[z], older.lost[z], i < 3)
		c := m.price[z] * t.step
		for a := range ages {
			h, on := t.hold[z][a], min(1, t.onward[a]*t.step)
			mix(cur.spot[z][a][:w], prev.spot[z][a], prev.spot[z][min(a+1, ages-1)], t.mid[z], (1-h)*(1-on), (1-h)*on, c*(1-h/2), h)
		}
	}
	for h := range m.n {
		ahead(t.midA[h], prev.come[h], older.come[h], i < 3)
		for b := range ages {
			out, same, later := cur.dem[h][b][:w], prev.dem[h][b], prev.dem[h][min(b+1, ages-1)]
			r, on := t.stepped[b], min(1, t.onward[b]*t.step)
			c := m.demand * t.step
			for q := range out {
				a := t.midA[h][q]
				x := same[q]
				if a < x {
					out[q] = float64(c*(1-r/2)) + float64(r*a) + (1-r)*(float64((1-on)*x)+float64(on*later[q]))
				} else {
					out[q] = c + float64((1-on)*x) + float64(on*later[q])
				}
			}
			out[0] = m.demand * work
		}
		cur.back[h][0], cur.come[h][0] = forced, m.demand*work
		for b := range ages {
			cur.none[h][b][0] = forced
		}
	}
	for z := range m.price {
		cur.lost[z][0] = forced
		for k := range min(2, m.n) {
			home := m.regions[z]
			if k == 1 {
				home = (home + 1) % m.n
			}
			for a := range ages {
				h, on := t.hold[z][a], min(1, t.onward[a]*t.step)
				mix(cur.cand[z][k][a][:w], prev.cand[z][k][a], prev.cand[z][k][min(a+1, ages-1)], prev.dem[home][0], (1-h)*(1-on), (1-h)*on, m.demand*t.step, h)
				cur.cand[z][k][a][0] = m.demand * work
			}
		}
	}
	t.lasting(cur)
	for q := 1; q < w; q++ {
		t.takes(cur, q)
		t.waits(cur, q, forced)
		t.losses(cur, q)
	}
}

// lasting puts into take, by place, what taking a machine comes to if it lives
// through its restart, times the chance of that.
func (t *table) lasting(cur *layer) {
	m := &t.m
	for k := range min(2, m.n) {
		s := &t.shift[k]
		for z := range m.price {
			c := float64(float64(k)*m.carry) + float64(m.price[z]*s.owed)
			for a := range ages {
				b, f, p := s.bucket[a], s.part[a], s.last[a][z]
				out, at := cur.take[z][k][a][:len(t.grid)], s.whole[:len(t.grid)]
				for q := range min(s.first, len(out)) {
					out[q] = far
				}
				lo := cur.spot[z][b]
				if f == 0 {
					for q := s.first; q < len(out); q++ {
						out[q] = float64(p * (c + at[q].of(lo)))
					}
					continue
				}
				hi := cur.spot[z][b+1]
				for q := s.first; q < len(out); q++ {
					out[q] = float64(p * (c + (float64((1-f)*at[q].of(lo)) + float64(f*at[q].of(hi)))))
				}
			}
		}
	}
}

// takes adds what a loss during the restart comes to.
func (t *table) takes(cur *layer, q int) {
	m := &t.m
	for k := range min(2, m.n) {
		s := &t.shift[k]
		if q < s.first {
			continue
		}
		half := s.half[q]
		carry := float64(float64(k) * m.carry)
		for z := range m.price {
			lost := carry + float64(m.price[z]*s.owed/2) + half.of(cur.lost[z])
			take, cand := &cur.take[z][k], &cur.cand[z][k]
			for a := range ages {
				v := take[a][q] + float64((1-s.last[a][z])*lost)
				take[a][q] = v
				cand[a][q] = min(v, cand[a][q])
			}
		}
	}
}

func (t *table) waits(cur *layer, q int, forced float64) {
	m := &t.m
	for h := range m.n {
		stay := cur.none[h][0][q-1]
		a, come := 0.0, 0.0
		for z := range m.price {
			come += t.share[z] * cur.cand[z][other(m.regions[z], h)][0][q]
			a += t.share[z] * min(cur.take[z][other(m.regions[z], h)][0][q], stay)
		}
		cur.back[h][q], cur.come[h][q] = a, come
		dem := t.shift[0].whole[q]
		for b := ages - 1; b >= 0; b-- { // a later bucket first: waiting leads there
			od := forced
			od = min(od, float64(m.demand*m.restart)+dem.of(cur.dem[h][b]))
			if q == 1 {
				cur.none[h][b][q] = od
				continue
			}
			r, on := t.waited[b][q], t.moved[b][q]
			x := float64((1-on)*cur.none[h][b][q-1]) + float64(on*cur.none[h][min(b+1, ages-1)][q-1])
			up := min((a+cur.back[h][q-1])/2, x)
			cur.none[h][b][q] = min(od, float64(r*up)+float64((1-r)*x))
		}
	}
}

// losses is the cost to go when a machine has just been lost: the best neighbour
// that is up, or none.
func (t *table) losses(cur *layer, q int) {
	m := &t.m
	for h := range m.n {
		for i := 1; i < len(t.order); i++ {
			for k := i; k > 0; k-- {
				a, b := t.order[k], t.order[k-1]
				if cur.take[a][other(m.regions[a], h)][oldAge][q] >= cur.take[b][other(m.regions[b], h)][oldAge][q] {
					break
				}
				t.order[k], t.order[k-1] = b, a
			}
		}
		none := cur.none[h][0][q]
		for z := range m.price {
			if m.regions[z] != h {
				continue
			}
			out, rest := 0.0, 1.0
			for _, n := range t.order {
				take := cur.take[n][other(m.regions[n], h)][oldAge][q]
				if take >= none {
					break
				}
				if n == z {
					continue
				}
				p := t.up[n]
				if m.regions[n] == h {
					p *= together
				}
				out += float64(rest * p * take)
				rest *= 1 - p
			}
			cur.lost[z][q] = out + float64(rest*none)
		}
	}
}

func other(a, b int) int {
	if a == b {
		return 0
	}
	return 1
}
