package place

import (
	"math"
	"slices"
)

// model is what a table is computed from. Dollars and hours.
type model struct {
	price   []float64 // spot, by zone
	loss    []float64 // scales
	back    []float64
	up      []float64 // share of the time
	regions []int
	n       int // regions
	demand  float64
	restart float64 // d
	carry   float64 // dollars for another region
	further float64 // hours for another region
	tick    float64
}

// layer is the cost to go at one amount of work left, by slack: place 0 is the
// slack under guard, place 1 + q a slack of q cells above it.
type layer struct {
	spot  [][ages][]float64 // by zone, age
	none  [][ages][]float64 // by home region, time for which nothing is up
	dem   [][ages][]float64 // the same on on-demand
	take  [][2][2][]float64 // by zone; fresh or old; in the same region or not
	lost  [][]float64       // by zone, at its loss
	cells []float64
}

// table is the cost to go of the layers nearest to the work left.
type table struct {
	m      model
	step   float64 // hours of work between layers
	cell   float64 // hours of slack between places
	per    int     // cells a step
	top    int     // layers
	width  int
	layers []*layer // the last few, by number modulo their count
}

const kept = 10

const far = 1e9

func newLayer(zones, regions, width int) *layer {
	l := &layer{}
	n := zones*(ages+5) + regions*2*ages
	l.cells = make([]float64, n*width)
	at := 0
	next := func() []float64 {
		at += width
		return l.cells[at-width : at : at]
	}
	l.spot = make([][ages][]float64, zones)
	l.take = make([][2][2][]float64, zones)
	l.lost = make([][]float64, zones)
	for z := range zones {
		for a := range ages {
			l.spot[z][a] = next()
		}
		for i := range 2 {
			for k := range 2 {
				l.take[z][i][k] = next()
			}
		}
		l.lost[z] = next()
	}
	l.none = make([][ages][]float64, regions)
	l.dem = make([][ages][]float64, regions)
	for h := range regions {
		for b := range ages {
			l.none[h][b], l.dem[h][b] = next(), next()
		}
	}
	return l
}

// oldAge is the bucket of a neighbour that was up before it is needed.
const oldAge = 3

func (t *table) build(m model, work, slack float64) {
	t.m = m
	t.step = max(3*m.tick, work/300)
	t.per = 1
	for t.per < 3 && slack/t.step*float64(t.per+1) < 110 {
		t.per++
	}
	t.cell = t.step / float64(t.per)
	t.top = int(math.Ceil(work/t.step)) + 1
	width := int(math.Ceil(max(slack, 0)/t.cell)) + 3
	if width > t.width || len(t.layers) == 0 {
		t.width = width + 8
		t.layers = nil
		for range kept {
			t.layers = append(t.layers, newLayer(len(m.price), m.n, t.width))
		}
	}
	w := width
	zones := len(m.price)
	// hazards a step
	hold := make([][ages]float64, zones)
	for z := range zones {
		for a := range ages {
			hold[z][a] = 1 - math.Exp(-float64(m.loss[z]*lossShape.mean(a))*t.step)
		}
	}
	ret := make([][ages]float64, zones) // chance that this zone is the one that comes back
	var onward [ages]float64
	for b := range ages {
		all := 0.0
		for z := range zones {
			ret[z][b] = m.back[z] * returnMix(b, zones) * t.step
			all += ret[z][b]
		}
		if all > 0 {
			p := 1 - math.Exp(-all)
			for z := range zones {
				ret[z][b] *= p / all
			}
		}
		if b < ages-1 {
			onward[b] = min(1, t.step/(edges[b+1]-edges[b]))
		}
	}
	zero := t.at(0)
	for i := range zero.cells {
		zero.cells[i] = 0
	}
	order := make([]int, zones)
	for i := 1; i <= t.top; i++ {
		t.fill(i, w, hold, ret, onward, order)
	}
}

// returnMix is the mean hazard of return in bucket b of nothing up: the zone
// that was lost last is that long down, the others longer.
func returnMix(b, zones int) float64 {
	f := 1 / float64(zones)
	a := centre(b) + 1
	later := returnShape.cumulative(a, a+0.1) / 0.1
	return float64(f*returnShape.mean(b)) + float64((1-f)*later)
}

func (t *table) at(i int) *layer { return t.layers[i%kept] }

// reach returns how many places d hours of overhead are, and the first place
// from which a machine with that overhead becomes useful before the guard.
func (t *table) reach(d float64) (k int, f float64, first int) {
	x := d / t.cell
	k = int(x)
	ticks := math.Ceil(d/t.m.tick-1e-9) - 1
	return k, x - float64(k), 1 + int(math.Ceil(ticks*t.m.tick/t.cell-1e-9))
}

// shifted puts into out what from costs d hours of slack later, plus cost.
func (t *table) shifted(out, from []float64, w int, d, cost float64) {
	k, f, first := t.reach(d)
	for q := range w {
		switch {
		case q < first:
			out[q] = far
		case q-k <= 1:
			out[q] = cost + from[0]
		default:
			out[q] = cost + float64((1-f)*from[q-k]) + float64(f*from[q-k-1])
		}
	}
}

func (t *table) fill(i, w int, hold, ret [][ages]float64, onward [ages]float64, order []int) {
	m := &t.m
	cur, prev := t.at(i), t.at(i-1)
	work := float64(i) * t.step
	for z := range m.price {
		c := m.price[z] * t.step
		lost := prev.lost[z]
		for a := range ages {
			out, same, older := cur.spot[z][a], prev.spot[z][a], prev.spot[z][min(a+1, ages-1)]
			h, on := hold[z][a], onward[a]
			x, y := (1-h)*(1-on), (1-h)*on
			for q := range w {
				out[q] = c + float64(x*same[q]) + float64(y*older[q]) + float64(h*lost[q])
			}
		}
		for k := range 2 {
			o, c := m.restart, 0.0
			if k == 1 {
				o, c = o+m.further, m.carry
			}
			c += m.price[z] * o
			t.shifted(cur.take[z][0][k], cur.spot[z][0], w, o, c)
			t.shifted(cur.take[z][1][k], cur.spot[z][oldAge], w, o, c)
		}
	}
	odTake := make([]float64, w)
	for h := range m.n {
		for b := range ages {
			out := cur.dem[h][b]
			same, later := prev.dem[h][b], prev.dem[h][min(b+1, ages-1)]
			on := onward[b]
			c, rest := m.demand*t.step, 1.0
			for q := range w {
				out[q] = c
			}
			for z := range m.price {
				take := prev.take[z][0][other(m.regions[z], h)]
				r := ret[z][b]
				rest -= r
				for q := range w {
					out[q] += r * min(take[q], same[q])
				}
			}
			x, y := rest*(1-on), rest*on
			for q := range w {
				out[q] += float64(x*same[q]) + float64(y*later[q])
			}
			out[0] = m.demand * work
		}
		forced := m.demand * (work + m.restart)
		for b := ages - 1; b >= 0; b-- { // a later bucket first: waiting leads there
			out := cur.none[h][b]
			t.shifted(odTake, cur.dem[h][b], w, m.restart, m.demand*m.restart)
			out[0] = forced
			for q := 1; q < w; q++ {
				od := min(odTake[q], forced)
				if q-t.per < 1 {
					out[q] = od
					continue
				}
				s := q - t.per
				rest, sum := 1.0, 0.0
				stay := cur.none[h][b][s]
				for z := range m.price {
					r := ret[z][b]
					rest -= r
					sum += r * min(cur.take[z][0][other(m.regions[z], h)][s], stay)
				}
				on := onward[b]
				sum += rest * (float64((1-on)*stay) + float64(on*cur.none[h][min(b+1, ages-1)][s]))
				out[q] = min(od, sum)
			}
		}
	}
	// Losses: the best neighbour that is up, in the order of the middle.
	mid := w / 2
	for z := range m.price {
		home := m.regions[z]
		for k := range order {
			order[k] = k
		}
		slices.SortStableFunc(order, func(a, b int) int {
			x, y := cur.take[a][1][other(m.regions[a], home)][mid], cur.take[b][1][other(m.regions[b], home)][mid]
			if x < y {
				return -1
			}
			if x > y {
				return 1
			}
			return 0
		})
		out, none := cur.lost[z], cur.none[home][0]
		for q := range w {
			out[q] = 0
		}
		rest := 1.0
		for _, n := range order {
			if n == z {
				continue
			}
			p := m.up[n]
			if m.regions[n] == home {
				p *= lossTogether
			}
			take := cur.take[n][1][other(m.regions[n], home)]
			x := rest * p
			for q := range w {
				out[q] += x * min(take[q], none[q])
			}
			rest *= 1 - p
		}
		for q := range w {
			out[q] += rest * none[q]
		}
		out[0] = m.demand * (work + m.restart)
	}
}

var lossTogether = 0.8

func other(a, b int) int {
	if a == b {
		return 0
	}
	return 1
}

// pick is the cost to go in one of the kept layers, between work and slack.
func (t *table) pick(work, slack float64, of func(*layer) []float64) float64 {
	x := work / t.step
	i := min(int(x), t.top-1)
	f := min(x-float64(i), 1)
	lo, hi := t.level(of(t.at(i)), slack), t.level(of(t.at(i+1)), slack)
	return float64((1-f)*lo) + float64(f*hi)
}

func (t *table) level(v []float64, slack float64) float64 {
	if slack < 0 {
		return v[0]
	}
	x := slack / t.cell
	q := min(int(x), t.width-3)
	f := min(x-float64(q), 1)
	return float64((1-f)*v[1+q]) + float64(f*v[2+q])
}

// has reports whether the layers for work are kept.
func (t *table) has(work float64) bool {
	i := int(work / t.step)
	return len(t.layers) > 0 && i < t.top && i > t.top-kept+1 || len(t.layers) > 0 && t.top < kept
}
