// Package hazard has what was observed of the spot capacity of zones, and the hazards by age that all zones share.
package hazard

import "math"

// A Shape is the hazard by age that all zones share: zero before age from, then rate · (age − from + shift)^−power
// events per hour, with ages in hours. Spot periods and the gaps between them are heavy-tailed everywhere: what has
// lasted lasts longer. No change is seen before the next poll, which in the public markets comes every ten minutes.
type Shape struct{ from, rate, power, shift float64 }

// The hazards of a loss and of a return of spot capacity.
var (
	Loss   = Shape{0.14, 0.53, 0.84, 0.4}
	Return = Shape{0.14, 0.9, 0.72, 0.4}
)

// Cumulative is the expected number of events from age a to age b in a zone of scale 1.
func (s Shape) Cumulative(a, b float64) float64 {
	e := 1 - s.power
	a, b = max(a-s.from, 0), max(b-s.from, 0)
	return s.rate / e * (math.Pow(b+s.shift, e) - math.Pow(a+s.shift, e))
}

// Edges are the ages, in hours, that separate the age buckets. A period moves from one bucket to the next; the last
// has no end.
var Edges = [...]float64{0, 1. / 6, 0.5, 1.5, 4.5, 13.5}

// Ages is the number of age buckets.
const Ages = len(Edges)

// Centre is the age that represents bucket b.
func Centre(b int) float64 {
	if b == Ages-1 {
		return 1.5 * Edges[b]
	}
	return (Edges[b] + Edges[b+1]) / 2
}

// Mean is the hourly hazard in bucket b of a zone of scale 1.
func (s Shape) Mean(b int) float64 {
	lo, hi := Edges[b], 2.5*Edges[b]
	if b < Ages-1 {
		hi = Edges[b+1]
	}
	return s.Cumulative(lo, hi) / (hi - lo)
}

// Between divides age a between the two buckets whose centres enclose it.
func Between(a float64) (lo int, f float64) {
	if a <= Centre(0) {
		return 0, 0
	}
	for b := range Ages - 1 {
		if c, d := Centre(b), Centre(b+1); a < d {
			return b, (a - c) / (d - c)
		}
	}
	return Ages - 1, 0
}

// Times of the records, in hours.
const (
	forget    = 72.0 // age at which an observation counts 1/e
	seenFirst = 2.5  // age of a state whose start was not seen
	mixing    = 3.0  // time constant with which an unobserved state fades
	MoodLasts = 5.0  // time constant of the mood
)
