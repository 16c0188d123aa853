package estimate

import (
	"fmt"
	"math"
	"strings"

	"scrimp/internal/estimate/shape"
)

// memory fills in the peak and whether it fits, and says where that comes from.
func (e *Estimator) memory(r Row, a *Answer) string {
	s := r.Setup(e.chips)
	m, ok := s.Memory()
	if !ok {
		if shape.Kind(r.Family) == shape.Trees {
			return "memory is unknown: rows are not stated"
		}
		return "memory is unknown: batch, sequence or parameters are not stated"
	}
	mean, half := e.weigh(r)
	gb := around(m.Total()*math.Exp(mean), half)
	peak := gb.Times(1 / r.memUnit())
	a.PeakMemory, a.Memory = &peak, &m
	if s.Card <= 0 || shape.Kind(r.Family) == shape.Trees {
		return "memory by component"
	}
	fits := Fits(*gb, s.Card)
	a.Fits = &fits
	return fmt.Sprintf("memory by component × %.2f, against %.3g GB", math.Exp(mean), s.Card)
}

// weigh is the learned correction of a peak and half its interval, in ln.
func (e *Estimator) weigh(r Row) (mean, half float64) {
	if len(e.weight.Seen) == 0 {
		return 0, unlearnedMemory
	}
	p := describe(r, e.chips, e.names)
	g := e.heavy.Guess(&p)
	w := e.weight.Afar
	if e.weighed[strings.ToLower(r.Source)] {
		w = e.weight.Near
	}
	return g.Mean, math.Min(math.Max(floor, g.SD*w.Of(p.Name[cFamily])), 2*unlearnedMemory)
}

// Fits says whether a peak fits a card, in GB: a quarter of the way to the upper
// end of the interval must leave 3 % for fragments and the driver. On the public
// runs this says yes of none that ran out of memory (TestBench).
func Fits(peak Range, card float64) bool {
	return peak.Value+0.25*(peak.High-peak.Value) <= 0.97*card
}
