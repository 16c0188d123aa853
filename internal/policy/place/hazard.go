package place

import "math"

// A shape is the hazard by age that is common to all zones: events an hour at
// age a hours are rate · a^−power, with the age held above floor. Spot periods
// and the gaps between them are heavy-tailed everywhere: what has lasted lasts.
type shape struct{ rate, power, floor float64 }

var (
	lossShape   = shape{0.4, 0.7, 0.05}
	returnShape = shape{0.45, 0.55, 0.05}
)

// cumulative is the expected number of events from age a to age b of a zone of
// scale 1.
func (s shape) cumulative(a, b float64) float64 { return s.upTo(b) - s.upTo(a) }

func (s shape) upTo(a float64) float64 {
	flat := math.Pow(s.floor, -s.power)
	if a <= s.floor {
		return s.rate * a * flat
	}
	e := 1 - s.power
	return s.rate * (float64(s.floor*flat) + (math.Pow(a, e)-math.Pow(s.floor, e))/e)
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
	regions []int // region by zone
	n       int   // regions
}

func newMemory(j *Job) *memory {
	m := &memory{zones: make([]record, len(j.Zones))}
	index := map[string]int{}
	for _, z := range j.Zones {
		k, ok := index[z.Region]
		if !ok {
			k = len(index)
			index[z.Region] = k
		}
		m.regions = append(m.regions, k)
	}
	m.n = len(index)
	return m
}

// seenFirst is the age of a state that was found and not seen to begin: such a
// state is more likely one of the long ones.
const seenFirst = 1.3

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
	c, s := &r.back, returnShape
	if r.up {
		c, s = &r.loss, lossShape
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
		c.expected += s.cumulative(r.age, r.age+h)
		r.age += h
		return
	}
	c.events++
	c.expected += s.cumulative(r.age, r.age+h/2)
	r.up, r.age = up, h/2
}

// mixing is the time, in hours, in which what was last seen of a zone loses its
// weight against the share of the time that it is up.
const mixing = 3

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

// Weights of what is not the zone's own: in events for hazards, in hours for
// the share of the time that it is up.
var (
	forget     = 72.0
	zoneWeight = 2.0
	allWeight  = 3.0
	upWeight   = 6.0
	upPrior    = 0.7
)

// scales returns how many times as often as in the common shape each zone is
// lost and comes back, and the share of the time that it is up: each the zone's own, shrunk to its region's, shrunk to that of all,
// shrunk to 1.
func (m *memory) scales() (loss, back, up []float64) {
	shrink := func(of func(*record) (n, e float64), own, prior, priorWeight float64) []float64 {
		var an, ae float64
		rn, re := make([]float64, m.n), make([]float64, m.n)
		for z := range m.zones {
			n, e := of(&m.zones[z])
			an, ae = an+n, ae+e
			rn[m.regions[z]] += n
			re[m.regions[z]] += e
		}
		whole := (an + prior*priorWeight) / (ae + priorWeight)
		out := make([]float64, len(m.zones))
		for z := range m.zones {
			k := m.regions[z]
			region := (rn[k] + float64(own*whole)) / (re[k] + own)
			n, e := of(&m.zones[z])
			out[z] = (n + float64(own*region)) / (e + own)
		}
		return out
	}
	loss = shrink(func(r *record) (float64, float64) { return r.loss.events, r.loss.expected }, zoneWeight, 1, allWeight)
	back = shrink(func(r *record) (float64, float64) { return r.back.events, r.back.expected }, zoneWeight, 1, allWeight)
	up = shrink(func(r *record) (float64, float64) { return r.upFor, r.all }, upWeight, upPrior, upWeight)
	return loss, back, up
}
