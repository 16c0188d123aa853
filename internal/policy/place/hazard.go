package place

import "math"

// A shape is the hazard by age that is common to all zones: events an hour at
// age a hours are rate · (a + shift)^−power. Spot periods and the gaps between
// them are heavy-tailed everywhere: what has lasted lasts.
type shape struct{ rate, power, shift float64 }

var (
	lossShape   = shape{0.53, 0.84, 0.4}
	returnShape = shape{0.9, 0.72, 0.4}
)

// cumulative is the expected number of events from age a to age b of a zone of
// scale 1.
func (s shape) cumulative(a, b float64) float64 {
	e := 1 - s.power
	return s.rate / e * (math.Pow(b+s.shift, e) - math.Pow(a+s.shift, e))
}

// edges are the ages, in hours, that split what is remembered of an age; a
// period moves on from one to the next. The last has no end.
var edges = [...]float64{0, 1. / 6, 0.5, 1.5, 4.5, 13.5}

const ages = len(edges)

// centre is the age that stands for bucket b.
func centre(b int) float64 {
	if b == ages-1 {
		return 1.5 * edges[b]
	}
	return (edges[b] + edges[b+1]) / 2
}

// mean is the hazard an hour in bucket b of a zone of scale 1.
func (s shape) mean(b int) float64 {
	lo, hi := edges[b], 2.5*edges[b]
	if b < ages-1 {
		hi = edges[b+1]
	}
	return s.cumulative(lo, hi) / (hi - lo)
}

// between splits age a over the two buckets whose centres it lies between.
func between(a float64) (lo int, f float64) {
	if a <= centre(0) {
		return 0, 0
	}
	for b := range ages - 1 {
		if c, d := centre(b), centre(b+1); a < d {
			return b, (a - c) / (d - c)
		}
	}
	return ages - 1, 0
}

// count is what was seen of one kind of event: events, and how many a zone of
// scale 1 would have had in the same time.
type count struct{ events, expected float64 }

// record is what a run has seen of one zone.
type record struct {
	known      bool    // whether it was seen at all
	up         bool    // when last seen
	age        float64 // hours of the present state, when last seen
	at         int     // tick in which it was last seen
	loss, back count
	upFor, all float64 // hours seen up, hours seen
}

// memory is what a run has seen of all zones.
type memory struct {
	zones   []record
	regions []int     // region by zone
	n       int       // regions
	dear    []float64 // logarithm of the price over on-demand's, against the usual third
	usual   []float64 // share of the time that a zone of such a price is up
}

// priced takes zone z's spot price over its on-demand price: where spot is dear
// little is left over, and machines are lost more often.
func (m *memory) priced(z int, ratio float64) {
	x := math.Log(max(ratio, 0.01) / 0.33)
	m.dear[z] = min(max(x, -dearest), dearest)
	odds := upOdds * math.Exp(-float64(upPrice*m.dear[z]))
	m.usual[z] = odds / (1 + odds)
}

func newMemory(j *Job) *memory {
	m := &memory{zones: make([]record, len(j.Zones))}
	index := map[string]int{}
	for z := range j.Zones {
		name := j.Zones[z].Region
		k, ok := index[name]
		if !ok {
			k = len(index)
			index[name] = k
		}
		m.regions = append(m.regions, k)
	}
	m.n = len(index)
	m.dear, m.usual = make([]float64, len(j.Zones)), make([]float64, len(j.Zones))
	return m
}

// What is taken for granted before a run has seen anything, and how fast what it
// sees counts. The figures are the formulas document's; hours where no unit stands.
const (
	forget     = 72.0 // what was seen so long ago counts 1/e
	zoneWeight = 20.0 // of the region's scale against the zone's own, in events
	allWeight  = 30.0 // of the common shape against what all zones showed, in events
	upWeight   = 20.0 // of the usual share of time against the one seen
	lossScale  = 1.2  // losses beside the common shape: hope is dearer than fear
	seenFirst  = 2.5  // age of a state that was found and not seen to begin
	mixing     = 3.0  // a state that nobody looked at fades so fast

	lossPrice = 1.5  // losses go with the price to this power
	backPrice = -0.4 // returns too
	upPrice   = 5.4  // and the odds of being up, to minus this
	upOdds    = 3.3  // at a third of on-demand's price
	dearest   = 0.7  // largest logarithm of the price that counts

	traitLasts = 48.0 // what the run says of a zone passes
	nowLasts   = 3.0  // so does the state that it is in
	otherAge   = 1.0  // a zone that is down with others is so much longer down
	together   = 0.8  // chance that a live neighbour of the region outlives a loss
)

// see takes zone z's state in tick t, of so many hours a tick. Seeing it twice in
// a tick is seeing it once.
func (m *memory) see(z int, up bool, t int, tick float64) {
	r := &m.zones[z]
	if !r.known {
		r.known, r.up, r.age, r.at = true, up, seenFirst, t
		return
	}
	h := float64(t-r.at) * tick
	if h == 0 {
		return
	}
	r.at = t
	keep := math.Exp(-h / forget)
	c, s, scale := &r.back, returnShape, math.Exp(backPrice*m.dear[z])
	if r.up {
		c, s, scale = &r.loss, lossShape, math.Exp(lossPrice*m.dear[z])
	}
	for _, c := range []*count{&r.loss, &r.back} {
		c.events *= keep
		c.expected *= keep
	}
	r.upFor, r.all = r.upFor*keep, r.all*keep
	r.all += h
	if r.up {
		r.upFor += h
	}
	if up == r.up {
		c.expected += scale * s.cumulative(r.age, r.age+h)
		r.age += h
		return
	}
	c.events++
	c.expected += scale * s.cumulative(r.age, r.age+h/2)
	r.up, r.age = up, h/2
}

// chance is that of zone z being up in tick t, where share of the time it is.
func (m *memory) chance(z, t int, tick, share float64) float64 {
	r := &m.zones[z]
	if !r.known {
		return share
	}
	last := 0.0
	if r.up {
		last = 1
	}
	return share + float64((last-share)*math.Exp(-float64(t-r.at)*tick/mixing))
}

// scales returns how many times as often as in the common shape each zone is
// lost and comes back, and the share of the time that it is up: each the zone's
// own, shrunk to its region's, shrunk to that of all, shrunk to the prior.
func (m *memory) scales() (loss, back []drift, up []float64) {
	shrink := func(of func(*record) (n, e float64), prior float64) []float64 {
		var an, ae float64
		rn, re := make([]float64, m.n), make([]float64, m.n)
		for z := range m.zones {
			n, e := of(&m.zones[z])
			an, ae = an+n, ae+e
			rn[m.regions[z]] += n
			re[m.regions[z]] += e
		}
		whole := (an + float64(prior*allWeight)) / (ae + allWeight)
		out := make([]float64, len(m.zones))
		for z := range m.zones {
			k := m.regions[z]
			region := (rn[k] + float64(zoneWeight*whole)) / (re[k] + zoneWeight)
			n, e := of(&m.zones[z])
			out[z] = (n + float64(zoneWeight*region)) / (e + zoneWeight)
		}
		return out
	}
	l := shrink(func(r *record) (float64, float64) { return r.loss.events, r.loss.expected }, lossScale)
	b := shrink(func(r *record) (float64, float64) { return r.back.events, r.back.expected }, 1)
	for z := range m.zones {
		r := &m.zones[z]
		up = append(up, (r.upFor+float64(upWeight*m.usual[z]))/(r.all+upWeight))
	}
	for z := range l {
		loss = append(loss, drift{math.Log(l[z]), lossPrice * m.dear[z]})
		back = append(back, drift{math.Log(b[z]), backPrice * m.dear[z]})
	}
	return loss, back, up
}
