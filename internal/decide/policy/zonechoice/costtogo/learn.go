package costtogo

import (
	"math"
	"time"

	"scrimp/internal/decide/policy/zonechoice/hazard"
)

// Priors for a run without observations, and how fast observations count. The figures are from the formulas
// document; times without a unit are in hours.
const (
	zoneWeight = 20.0 // of the region's scale against the zone's own, in events
	allWeight  = 12.0 // of the common shape against all zones' observations, in events
	upWeight   = 20.0 // of the usual share of time against the observed one
	lossScale  = 1.5  // losses relative to the common shape: optimism costs more than pessimism

	lossPrice = 1.5  // losses grow with the price to this power
	backPrice = -0.4 // returns likewise
	upPrice   = 5.4  // and the odds of being up, to minus this power
	upOdds    = 3.3  // at a third of the on-demand price
	dearest   = 0.7  // largest logarithm of the price that counts

	moodWeight = 8.0  // of none against the observations of the last hours, in events
	traitLasts = 48.0 // time constant of the evidence about a zone within the run
	nowLasts   = 3.0  // time constant of the zone's current state
	otherAge   = 1.0  // extra age of a zone that is down with others
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

// OnGrid returns a spot price in dollars per hour as tables have it, rounded so that small changes need no new one.
func OnGrid(price float64) float64 { return math.Exp(snap(math.Log(max(price, 1e-6)), priceGrid)) }

// relativePrice is relativePrice for the current price of a zone.
func (m *Model) relativePrice(zone int) float64 {
	return relativePrice(m.Price[zone], m.DemandAt(zone))
}

// relativePrice is the logarithm of a spot price relative to on-demand, against the usual third. If spot is expensive,
// little capacity is spare, and providers interrupt machines more often.
func relativePrice(price, demand float64) float64 {
	x := math.Log(max(price/demand, 0.01) / 0.33)
	return min(max(x, -dearest), dearest)
}

// usual is the share of time that a zone with such a price is up.
func usual(dear float64) float64 {
	odds := upOdds * math.Exp(-float64(upPrice*dear))
	return odds / (1 + odds)
}

// Learn sets the hazards of m from the records at a time: how often each zone is lost and comes back relative to
// the common shape, and its share of time up. Each is the zone's own value, shrunk towards its region's, that
// towards all zones', and that towards the prior. It also sets the probability that each zone is up at that time.
func (m *Model) Learn(records []hazard.Record, at time.Time) {
	n := len(m.Price)
	m.Loss, m.Back = m.Loss[:0], m.Back[:0]
	m.Up, m.now, m.usual = m.Up[:0], m.now[:0], m.usual[:0]
	loss, back, up, now := make([]float64, 2*n), make([]float64, 2*n), make([]float64, n), make([]hazard.Record, n)
	for z := range n {
		r := records[z]
		if r.Known {
			r = r.Until(r.Seen)
		}
		now[z] = r
		d := m.relativePrice(z)
		loss[z], loss[n+z] = r.Loss.Events, r.Loss.Expected*math.Exp(lossPrice*d)
		back[z], back[n+z] = r.Back.Events, r.Back.Expected*math.Exp(backPrice*d)
		m.usual = append(m.usual, usual(d))
		up[z] = (r.UpFor + float64(upWeight*m.usual[z])) / (r.All + upWeight)
	}
	m.shrink(loss, lossScale)
	m.shrink(back, 1)
	mood := m.mood(now, loss)
	gang := snap(math.Log(max(m.Losses, 1)), scaleGrid)
	for z := range n {
		d := m.relativePrice(z)
		m.Loss = append(m.Loss, Drift{snap(math.Log(loss[z]), scaleGrid), mood, float64(lossPrice*d) + gang})
		m.Back = append(m.Back, Drift{snap(math.Log(back[z]), scaleGrid), 0, backPrice * d})
		m.now = append(m.now, snap(records[z].Chance(at, up[z]), nowGrid))
		m.Up = append(m.Up, snap(up[z], shareGrid))
	}
}

// mood is the logarithm of how many more machines were lost in the last hours than these scales predict, over all
// zones: bad hours affect all of them, and pass within a few more.
func (m *Model) mood(now []hazard.Record, scale []float64) float64 {
	n, e := moodWeight, moodWeight
	for z, r := range now {
		n += r.Lately.Events
		e += float64(r.Lately.Expected * scale[z] * math.Exp(float64(lossPrice*m.relativePrice(z))))
	}
	return snap(math.Log(n/e), scaleGrid)
}

// shrink takes the events of each zone, followed by the expected events, and replaces the events with the scales.
func (m *Model) shrink(x []float64, prior float64) {
	zones := len(x) / 2
	var an, ae float64
	rn, re := make([]float64, m.N), make([]float64, m.N)
	for z, n := range x[:zones] {
		e := x[zones+z]
		an, ae = an+n, ae+e
		rn[m.Regions[z]] += n
		re[m.Regions[z]] += e
	}
	whole := (an + float64(prior*allWeight)) / (ae + allWeight)
	for z, n := range x[:zones] {
		k := m.Regions[z]
		region := (rn[k] + float64(zoneWeight*whole)) / (re[k] + zoneWeight)
		x[z] = (n + float64(zoneWeight*region)) / (x[zones+z] + zoneWeight)
	}
}
