package place

import (
	"math"
	"time"
)

// A shape is the hazard by age that all zones share: zero before age from, then rate · (age − from + shift)^−power
// events per hour, with ages in hours. Spot periods and the gaps between them are heavy-tailed everywhere: what has
// lasted lasts longer. No change is seen before the next poll, which in the public markets comes every ten minutes.
type shape struct{ from, rate, power, shift float64 }

var (
	lossShape   = shape{0.14, 0.53, 0.84, 0.4}
	returnShape = shape{0.14, 0.9, 0.72, 0.4}
)

// cumulative is the expected number of events from age a to age b in a zone of scale 1.
func (s shape) cumulative(a, b float64) float64 {
	e := 1 - s.power
	a, b = max(a-s.from, 0), max(b-s.from, 0)
	return s.rate / e * (math.Pow(b+s.shift, e) - math.Pow(a+s.shift, e))
}

// edges are the ages, in hours, that separate the age buckets. A period moves from one bucket to the next; the last
// has no end.
var edges = [...]float64{0, 1. / 6, 0.5, 1.5, 4.5, 13.5}

const ages = len(edges)

// centre is the age that represents bucket b.
func centre(b int) float64 {
	if b == ages-1 {
		return 1.5 * edges[b]
	}
	return (edges[b] + edges[b+1]) / 2
}

// mean is the hourly hazard in bucket b of a zone of scale 1.
func (s shape) mean(b int) float64 {
	lo, hi := edges[b], 2.5*edges[b]
	if b < ages-1 {
		hi = edges[b+1]
	}
	return s.cumulative(lo, hi) / (hi - lo)
}

// between divides age a between the two buckets whose centres enclose it.
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

// Priors for a run without observations, and how fast observations count. The figures are from the formulas
// document; times without a unit are in hours.
const (
	forget     = 72.0 // age at which an observation counts 1/e
	zoneWeight = 20.0 // of the region's scale against the zone's own, in events
	allWeight  = 12.0 // of the common shape against all zones' observations, in events
	upWeight   = 20.0 // of the usual share of time against the observed one
	lossScale  = 1.5  // losses relative to the common shape: optimism costs more than pessimism
	seenFirst  = 2.5  // age of a state whose start was not seen
	mixing     = 3.0  // time constant with which an unobserved state fades

	lossPrice = 1.5  // losses grow with the price to this power
	backPrice = -0.4 // returns likewise
	upPrice   = 5.4  // and the odds of being up, to minus this power
	upOdds    = 3.3  // at a third of the on-demand price
	dearest   = 0.7  // largest logarithm of the price that counts

	moodWeight = 8.0  // of none against the observations of the last hours, in events
	moodLasts  = 5.0  // time constant of the mood
	traitLasts = 48.0 // time constant of the evidence about a zone within the run
	nowLasts   = 3.0  // time constant of the zone's current state
	otherAge   = 1.0  // extra age of a zone that is down with others
	inHand     = 0.2  // in hours of on-demand: a live machine is not left for a smaller gain
	together   = 0.8  // probability that a live neighbour in the region survives a loss
)

// Tables are computed for values on these grids, so that one table serves until something has moved, and the choice
// of the table does not depend on the history.
const (
	priceGrid = 0.005 // of the logarithm of a price
	scaleGrid = 0.35  // of the logarithm of a scale
	shareGrid = 0.1
	nowGrid   = 0.25
)

// snap rounds to the grid. It never returns minus zero, which would differ in a request.
func snap(x, grid float64) float64 { return float64(math.Round(x/grid)*grid) + 0 }

// dear is dear for a zone's current price.
func (m *model) dear(zone int) float64 { return dear(m.price[zone], m.demandAt(zone)) }

// dear is the logarithm of a spot price relative to on-demand, against the usual third. Where spot is expensive,
// little is left over and machines are lost more often.
func dear(price, demand float64) float64 {
	x := math.Log(max(price/demand, 0.01) / 0.33)
	return min(max(x, -dearest), dearest)
}

// usual is the share of time that a zone with such a price is up.
func usual(dear float64) float64 {
	odds := upOdds * math.Exp(-float64(upPrice*dear))
	return odds / (1 + odds)
}

// learn sets the hazards of m from the records at a time: how often each zone is lost and comes back relative to
// the common shape, and its share of time up. Each is the zone's own value, shrunk towards its region's, that
// towards all zones', and that towards the prior. It also sets the probability that each zone is up at that time.
func (m *model) learn(records []Record, at time.Time) {
	n := len(m.price)
	m.loss, m.back = m.loss[:0], m.back[:0]
	m.up, m.now, m.usual = m.up[:0], m.now[:0], m.usual[:0]
	loss, back, up, now := make([]float64, 2*n), make([]float64, 2*n), make([]float64, n), make([]Record, n)
	for z := range n {
		r := records[z]
		if r.Known {
			r = r.until(r.Seen)
		}
		now[z] = r
		d := m.dear(z)
		loss[z], loss[n+z] = r.Loss.Events, r.Loss.Expected*math.Exp(lossPrice*d)
		back[z], back[n+z] = r.Back.Events, r.Back.Expected*math.Exp(backPrice*d)
		m.usual = append(m.usual, usual(d))
		up[z] = (r.UpFor + float64(upWeight*m.usual[z])) / (r.All + upWeight)
	}
	m.shrink(loss, lossScale)
	m.shrink(back, 1)
	mood := m.mood(now, loss)
	for z := range n {
		d := m.dear(z)
		m.loss = append(m.loss, drift{snap(math.Log(loss[z]), scaleGrid), mood, lossPrice * d})
		m.back = append(m.back, drift{snap(math.Log(back[z]), scaleGrid), 0, backPrice * d})
		m.now = append(m.now, snap(records[z].chance(at, up[z]), nowGrid))
		m.up = append(m.up, snap(up[z], shareGrid))
	}
}

// mood is the logarithm of how many more machines were lost in the last hours than these scales predict, over all
// zones: bad hours affect all of them, and pass within a few more.
func (m *model) mood(now []Record, scale []float64) float64 {
	n, e := moodWeight, moodWeight
	for z, r := range now {
		n += r.Lately.Events
		e += float64(r.Lately.Expected * scale[z] * math.Exp(float64(lossPrice*m.dear(z))))
	}
	return snap(math.Log(n/e), scaleGrid)
}

// shrink takes the events of each zone, followed by the expected events, and replaces the events with the scales.
func (m *model) shrink(x []float64, prior float64) {
	zones := len(x) / 2
	var an, ae float64
	rn, re := make([]float64, m.n), make([]float64, m.n)
	for z, n := range x[:zones] {
		e := x[zones+z]
		an, ae = an+n, ae+e
		rn[m.regions[z]] += n
		re[m.regions[z]] += e
	}
	whole := (an + float64(prior*allWeight)) / (ae + allWeight)
	for z, n := range x[:zones] {
		k := m.regions[z]
		region := (rn[k] + float64(zoneWeight*whole)) / (re[k] + zoneWeight)
		x[z] = (n + float64(zoneWeight*region)) / (x[zones+z] + zoneWeight)
	}
}
