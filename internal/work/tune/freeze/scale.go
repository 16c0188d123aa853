package freeze

import (
	"math"
	"slices"

	"scrimp/internal/work/tune"
)

// A scale maps values to numbers for the model: 0 is the best value at the time of the fit, 1 is where the good trials
// end, and above it is logarithmic, so that a diverged run is bad, but not extreme.
type scale struct{ zero, unit float64 }

// linearShare is the share of trials in the linear part of the scale, and noScale bounds the scale on both sides.
const (
	linearShare = 0.2
	noScale     = 12
)

func newScale(h *tune.History) scale {
	var bests []float64
	for _, t := range h.Order {
		if b := h.Runs[t].Best; tune.Finite(b) {
			bests = append(bests, b)
		}
	}
	for _, p := range h.Past {
		best := math.Inf(1)
		for _, v := range p.Points {
			if tune.Finite(v.Value) {
				best = math.Min(best, v.Value)
			}
		}
		if tune.Finite(best) {
			bests = append(bests, best)
		}
	}
	if len(bests) == 0 {
		return scale{0, 1}
	}
	slices.Sort(bests)
	s := scale{zero: bests[0]}
	for k := min(len(bests)-1, max(2, int(linearShare*float64(len(bests))))); k < len(bests) && s.unit <= 0; k++ {
		s.unit = bests[k] - s.zero
	}
	if s.unit <= 0 {
		s.unit = math.Max(1e-12, 1e-3*math.Abs(s.zero))
	}
	return s
}

// of returns the number of a value. A value that is not finite gets the worst number.
func (s scale) of(v float64) float64 {
	if !tune.Finite(v) {
		return noScale
	}
	z := (v - s.zero) / s.unit
	if z > 1 {
		z = 1 + math.Log(z)
	}
	return math.Max(-noScale, math.Min(noScale, z))
}

// value is the inverse of of.
func (s scale) value(z float64) float64 {
	if z > 1 {
		z = math.Exp(z - 1)
	}
	return s.zero + s.unit*z
}
