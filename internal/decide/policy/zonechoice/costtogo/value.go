// Package costtogo computes tables of the expected remaining cost of a job with a deadline, by remaining work and
// slack, for every state of its zones: a finite-horizon decision process whose hazards it learns from the records of
// the zones.
package costtogo

import (
	"math"
	"slices"

	"scrimp/internal/decide/policy/zonechoice/hazard"
	"scrimp/internal/lib/quantity"
)

// Model is the input of a table. Units are dollars and hours.
type Model struct {
	Price   []float64 // spot, by zone
	Loss    []Drift   // scales
	Back    []Drift
	Up      []float64 // share of the time
	now     []float64 // probability of being up now
	usual   []float64 // share of the time that a zone with this price is up
	Regions []int
	N       int       // number of regions
	Demand  []float64 // on-demand, by region: the cheapest of its zones
	Restart float64   // d
	Carry   []float64 // dollars, indexed by from · n + to
	Further float64   // extra hours for another region
	Tick    float64
	Latch   bool
	Losses  float64 // how many times more often the job is interrupted than one machine; 0: once

	step  float64 // hours of work between layers
	top   int     // number of layers
	slack float64 // maximum slack in hours
}

// Size sets which part of the process the table covers: steps of work that double if much is left, the remaining
// work in blocks of steps, and the slack on a ladder.
func (m *Model) Size(work, slack float64) {
	for m.step = 2 * m.Tick; work > layersIn*m.step; {
		m.step *= 2
	}
	m.top = (int(quantity.Int(math.Ceil(work/m.step)))/block + 1) * block
	for m.slack = 1; m.slack < slack; {
		m.slack *= 1.25
	}
}

const (
	layersIn = 80
	block    = 4
	// mostFine bounds the places near the guard: a job with no restart time and a deadline years away has ticks of
	// weeks.
	mostFine = 5000
)

// Same reports whether the table of o answers for m. A table for more slack also serves less.
func (m *Model) Same(o *Model) bool {
	return m.step == o.step && m.top == o.top && m.slack <= o.slack && slices.Equal(m.Price, o.Price) &&
		slices.Equal(m.Loss, o.Loss) && slices.Equal(m.Back, o.Back) && slices.Equal(m.Up, o.Up) && slices.Equal(m.now, o.now)
}

// copyOf makes m a copy of o.
func (m *Model) copyOf(o *Model) {
	*m = *o
	for _, v := range []*[]float64{&m.Price, &m.Up, &m.now, &m.usual, &m.Demand, &m.Carry} {
		*v = slices.Clone(*v)
	}
	m.Loss, m.Back = slices.Clone(o.Loss), slices.Clone(o.Back)
}

// Drift is the logarithm of a scale that changes: the mood of the last hours passes within hours, what the run
// showed within days, and the effect of the price lasts.
type Drift struct{ trait, mood, lasting float64 }

// In is the scale h hours from now.
func (d Drift) In(h float64) float64 {
	return math.Exp(d.lasting + float64(d.trait*math.Exp(-h/traitLasts)) + float64(d.mood*math.Exp(-h/hazard.MoodLasts)))
}

// layer is the remaining cost at one amount of remaining work, by slack: place 0 is the slack under guard, the
// others are on the grid.
type layer struct {
	spot  [][hazard.Ages][]float64   // by zone, age
	none  [][hazard.Ages][]float64   // by home region, time since which nothing is up
	dem   [][hazard.Ages][]float64   // the same on on-demand
	take  [][][hazard.Ages][]float64 // by zone, way from the home region, age; the first is new
	cand  [][][hazard.Ages][]float64 // on on-demand while a zone is up, by the same
	lost  [][]float64                // by zone, at its loss
	back  [][]float64                // by home region, when the first zone returns
	come  [][]float64                // the same on on-demand
	cells []float64
}

// Table is the remaining cost for the layers nearest to the remaining work.
type Table struct {
	Model  Model
	ways   ways
	step   float64   // hours of work between layers
	grid   []float64 // slack by place; the first is the guard's
	top    int       // number of layers
	room   int
	layers []*layer // the last few, by number modulo their count

	hold    [][hazard.Ages]float64 // probability of a loss per step, by zone
	share   []float64              // share of each zone among returns
	scale   []float64              // of losses, by zone
	up      []float64
	all     float64                // sum of the scales of return
	ahead   float64                // hours from now that the hazards are for
	mean    [hazard.Ages]float64   // losses per hour in a zone of scale 1
	mix     [hazard.Ages]float64   // returns per hour, over the sum of the scales
	rate    [hazard.Ages]float64   // returns per hour
	stepped [hazard.Ages]float64   // probability of a return per step
	onward  [hazard.Ages]float64   // probability of the next bucket per step
	shift   [2]shift               // by same region or not
	waited  [hazard.Ages][]float64 // probability of a return while the slack falls by a place
	moved   [hazard.Ages][]float64 // probability of the next bucket in that time
	mid     [][]float64
	midA    [][]float64
	order   []int
	lines   lines
	spare   []float64 // a row
	after   [hazard.Ages][]float64
}

// shift is the effect of some hours of overhead, by place.
type shift struct {
	owed   float64
	whole  []spot           // after all of it
	half   []spot           // after half of it, on the way
	first  int              // first place at which the machine does work before the guard steps in
	bucket [hazard.Ages]int // ages after it
	part   [hazard.Ages]float64
	events [hazard.Ages]float64   // expected losses on the way, in a zone of scale 1
	last   [hazard.Ages][]float64 // probability that the machine outlasts it, by zone
}

// spot is a point between two places.
type spot struct {
	lo int
	f  float64
}

const kept = 16

const far = 1e9

func newLayer(zones, regions, ways, width int) *layer {
	l := &layer{}
	n := zones*((1+2*ways)*hazard.Ages+1) + regions*(2*hazard.Ages+2)
	l.cells = make([]float64, n*width)
	at := 0
	next := func() []float64 {
		at += width
		return l.cells[at-width : at : at]
	}
	l.spot = make([][hazard.Ages][]float64, zones)
	l.take = make([][][hazard.Ages][]float64, zones)
	l.cand = make([][][hazard.Ages][]float64, zones)
	l.lost = make([][]float64, zones)
	for z := range zones {
		for a := range hazard.Ages {
			l.spot[z][a] = next()
		}
		l.take[z], l.cand[z] = make([][hazard.Ages][]float64, ways), make([][hazard.Ages][]float64, ways)
		for k := range ways {
			for a := range hazard.Ages {
				l.take[z][k][a], l.cand[z][k][a] = next(), next()
			}
		}
		l.lost[z] = next()
	}
	l.none = make([][hazard.Ages][]float64, regions)
	l.dem = make([][hazard.Ages][]float64, regions)
	l.back = make([][]float64, regions)
	l.come = make([][]float64, regions)
	for h := range regions {
		for b := range hazard.Ages {
			l.none[h][b], l.dem[h][b] = next(), next()
		}
		l.back[h], l.come[h] = next(), next()
	}
	return l
}

// oldAge is the age of a neighbour that was up before it was needed.
const oldAge = 3

// begins is the age at which a machine in bucket b is taken; in the first bucket it is new.
func begins(b int) float64 {
	if b == 0 {
		return 0
	}
	return hazard.Centre(b)
}

// lay chooses the places of slack: fine near the guard, where each restart counts, and coarser further away.
func (t *Table) lay(slack float64) {
	t.grid = append(t.grid[:0], -1, 0)
	fine := 6 * max(t.Model.Restart, t.Model.Tick)
	gap := max(min(t.Model.Tick, max(t.Model.Restart, 0.02))*0.7, fine/mostFine)
	for s := 0.0; s < slack; {
		s += gap
		t.grid = append(t.grid, s)
		if s > fine {
			gap *= 1.1
		}
	}
	s := t.grid[len(t.grid)-1]
	t.grid = append(t.grid, s+gap)
}

// at returns the place of s hours of slack.
func (t *Table) at(s float64) spot {
	if s < -1e-9 {
		return spot{0, 0}
	}
	n := len(t.grid)
	if s >= t.grid[n-1] {
		return spot{n - 2, 1}
	}
	i, ok := slices.BinarySearch(t.grid, s)
	if ok {
		return spot{min(i, n-2), float64(i - min(i, n-2))}
	}
	i = max(i, 2)
	return spot{i - 1, max(0, (s-t.grid[i-1])/(t.grid[i]-t.grid[i-1]))}
}

func (p spot) of(v []float64) float64 {
	if p.f == 0 {
		return v[p.lo]
	}
	return float64((1-p.f)*v[p.lo]) + float64(p.f*v[p.lo+1])
}

// prepare sizes the rows of the table for its zones and its places, and works out what needs no price.
func (t *Table) prepare() {
	m := &t.Model
	zones, w := len(m.Price), len(t.grid)
	for _, v := range []*[]float64{&t.share, &t.scale, &t.up} {
		*v = slices.Grow((*v)[:0], zones)[:zones]
	}
	t.hold = slices.Grow(t.hold[:0], zones)[:zones]
	t.prepareShift(&t.shift[0], m.Restart)
	t.prepareShift(&t.shift[1], m.Restart+m.Further)
	for b := range hazard.Ages {
		t.mean[b], t.mix[b] = hazard.Loss.Mean(b), returnMix(b, zones)
		t.waited[b] = slices.Grow(t.waited[b][:0], w)[:w]
		t.moved[b] = slices.Grow(t.moved[b][:0], w)[:w]
	}
	for len(t.mid) < zones {
		t.mid = append(t.mid, nil)
	}
	for len(t.midA) < m.N {
		t.midA = append(t.midA, nil)
	}
	for i := range t.mid {
		t.mid[i] = slices.Grow(t.mid[i][:0], w)[:w]
	}
	for i := range t.midA {
		t.midA[i] = slices.Grow(t.midA[i][:0], w)[:w]
	}
	t.spare = slices.Grow(t.spare[:0], w)[:w]
	for b := range t.after {
		t.after[b] = slices.Grow(t.after[b][:0], w)[:w]
	}
	t.order = t.order[:0]
	for z := range zones {
		t.order = append(t.order, z)
	}
}

// prepareShift works out where that many hours of overhead lead from each place and each age.
func (t *Table) prepareShift(s *shift, owed float64) {
	zones := len(t.Model.Price)
	s.owed, s.first = owed, len(t.grid)
	s.whole, s.half = append(s.whole[:0], spot{}), append(s.half[:0], spot{})
	ticks := math.Ceil(s.owed/t.Model.Tick-1e-9) - 1
	for q, x := range t.grid[1:] {
		if x >= ticks*t.Model.Tick-1e-9 {
			s.first = min(s.first, q+1)
		}
		s.whole = append(s.whole, t.at(x-s.owed))
		h := t.at(x - s.owed/2)
		if h.lo > q || h.lo == q && h.f > 0 { // not beyond the place before it
			h = spot{q, 0}
		}
		s.half = append(s.half, h)
	}
	for i := range hazard.Ages {
		s.bucket[i], s.part[i] = hazard.Between(begins(i) + s.owed)
		s.events[i] = hazard.Loss.Cumulative(begins(i), begins(i)+s.owed)
		s.last[i] = slices.Grow(s.last[i][:0], zones)[:zones]
	}
}

// hazards sets the probabilities to their values that many hours from now.
func (t *Table) hazards(ahead float64) {
	m := &t.Model
	t.ahead = ahead
	zones := len(m.Price)
	all := 0.0
	later := math.Exp(-ahead / traitLasts)
	present := math.Exp(-math.Sqrt(ahead / nowLasts))
	for z := range zones {
		t.scale[z] = m.Loss[z].In(ahead)
		for a := range hazard.Ages {
			t.hold[z][a] = 1 - math.Exp(-float64(t.scale[z]*t.mean[a])*t.step)
		}
		for k := range t.shift {
			s := &t.shift[k]
			for i := range hazard.Ages {
				s.last[i][z] = math.Exp(-float64(t.scale[z] * s.events[i]))
			}
		}
		t.share[z] = m.Back[z].In(ahead)
		all += t.share[z]
		up := m.usual[z] + float64((m.Up[z]-m.usual[z])*later)
		t.up[z] = up + float64((m.now[z]-up)*present)
	}
	for z := range zones {
		t.share[z] /= all
	}
	t.all = all
	for b := range hazard.Ages {
		t.rate[b] = all * t.mix[b]
		t.stepped[b] = 1 - math.Exp(-t.rate[b]*t.step)
		t.onward[b] = 0
		if b < hazard.Ages-1 {
			t.onward[b] = 1 / (hazard.Edges[b+1] - hazard.Edges[b])
		}
		for q := 1; q < len(t.grid); q++ {
			wait := t.grid[q] - t.grid[q-1]
			t.waited[b][q] = 1 - math.Exp(-t.rate[b]*wait)
			t.moved[b][q] = min(1, t.onward[b]*wait)
		}
	}
}

// Build computes the remaining cost up to the work and slack of m.
func (t *Table) Build(m *Model) {
	t.Model.copyOf(m)
	t.step, t.top = m.step, m.top
	t.lay(m.slack)
	kinds := t.ways.kinds
	t.ways = m.ways()
	if len(t.grid) > t.room || len(t.layers) == 0 || kinds != t.ways.kinds {
		t.room = len(t.grid) + 8
		t.layers = nil
		for range kept {
			t.layers = append(t.layers, newLayer(len(m.Price), m.N, t.ways.kinds, t.room))
		}
	}
	t.prepare()
	zero := t.layer(0)
	for i := range zero.cells {
		zero.cells[i] = 0
	}
	for i := 1; i <= t.top; i++ {
		if h := max(0, float64(float64(t.top-block/2-i)*t.step)); i == 1 || t.ahead-h > max(0.5, t.ahead/16) {
			t.hazards(h)
		}
		t.fill(i)
	}
	t.hazards(0)
}

// returnMix is the mean hazard of return in bucket b of nothing up: the zone that was lost last has been down for
// that long, the others longer.
func returnMix(b, zones int) float64 {
	f := 1 / float64(zones)
	a := hazard.Centre(b) + otherAge
	later := hazard.Return.Cumulative(a, a+0.1) / 0.1
	return float64(f*hazard.Return.Mean(b)) + float64((1-f)*later)
}

func (t *Table) layer(i int) *layer { return t.layers[i%kept] }

// pick interpolates the remaining cost in the kept layers, by work and slack.
func (t *Table) pick(work, slack float64, of func(*layer) []float64) float64 {
	x := work / t.step
	i := max(min(int(x), t.top-1), t.top-kept+1, 0)
	f := min(x-float64(i), 1)
	at := t.at(slack)
	lo, hi := at.of(of(t.layer(i))), at.of(of(t.layer(i+1)))
	return float64((1-f)*lo) + float64(f*hi)
}
