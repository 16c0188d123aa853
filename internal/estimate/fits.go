package estimate

import (
	"fmt"
	"math"
	"strings"

	"scrimp/internal/estimate/hardware"
	"scrimp/internal/estimate/physics"
	"scrimp/internal/estimate/runs"
	"scrimp/internal/estimate/shape"
)

// memory sets the peak and whether it fits, and returns the provenance.
func (e *Estimator) memory(r runs.Row, a *Answer) string {
	s := physics.SetupOf(r, e.chips)
	m, ok := s.Memory()
	if !ok {
		if shape.Kind(r.Family) == shape.Trees {
			return "memory is unknown: rows are not stated"
		}
		return "memory is unknown: batch, sequence or parameters are not stated"
	}
	mean, half := e.weigh(r)
	gb := around(m.Total()*math.Exp(mean), half)
	peak := gb.Times(1 / r.UnitGB())
	a.PeakMemory, a.Memory = &peak, &m
	if s.Card <= 0 || shape.Kind(r.Family) == shape.Trees {
		return "memory by component"
	}
	fits := Fits(*gb, s.Card)
	a.Fits = &fits
	return fmt.Sprintf("memory by component × %.2f, against %.3g GB", math.Exp(mean), s.Card)
}

// weigh returns the learned correction of a peak and half its interval, in ln.
func (e *Estimator) weigh(r runs.Row) (mean, half float64) {
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

// Fits reports whether a peak fits a card, in GB: the peak plus a quarter of the way to the upper end of the interval
// must leave 3 % for fragmentation and the driver. On the public runs no run that it accepts ran out of memory
// (TestBench).
func Fits(peak Range, card float64) bool { return least(peak) <= 0.97*card }

// least returns the smallest card for a peak, in GB.
func least(peak Range) float64 { return peak.Value + 0.25*(peak.High-peak.Value) }

// Card returns the smallest nominal memory, in GB, with which the run fits on the given count, with one sample at a
// time unless the batch is stated. It returns false if the run cannot be split over the count, or the memory is
// unknown.
//
// Example: Llama-3-8B with LoRA on one, 2048 tokens: 16.1 GB of weights, 11.0 of activations, 2.6 of logits and 0.4 of
// the rest are 30.1 by arithmetic; a quarter of the way to the upper end, times e^0.25, gives 32.2; divided by 0.97,
// 33.2.
func (e *Estimator) Card(q Request, count float64) (gb float64, ok bool) {
	if q.Count = count; q.Check() != nil || !q.divides(count) {
		return 0, false
	}
	r := q.Row(hardware.Chip{}, count, max(1, q.Micro))
	m, ok := physics.SetupOf(r, e.chips).Memory()
	if !ok {
		return 0, false
	}
	mean, half := e.weigh(r)
	gb = least(*around(m.Total()*math.Exp(mean), half)) / 0.97
	return gb, gb > 0 && !math.IsInf(gb, 0) && !math.IsNaN(gb)
}
