package terms

import (
	"math"

	"scrimp/internal/decide/measured"
	"scrimp/internal/decide/plan"
	"scrimp/internal/estimate"
	"scrimp/internal/estimate/shape"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/size"
)

// mostCards is the most accelerators of a machine that a footprint tells apart.
const mostCards = 16

// footprint is the memory that the job's model takes, by arithmetic (docs/formulas.md, "Estimates"); zero where the
// file names no model, or too little of it.
func footprint(j spec.Job) (f plan.Footprint) {
	if !j.Model.Named() {
		return f
	}
	m, ok := measured.Shape(j.Name, j.Model)
	if !ok {
		return f
	}
	e := estimate.New(estimate.Catalogued(), nil, nil)
	ask := measured.Request(j, m)
	machines := max(1, j.FewestNodes())
	cut := max(1, int(ask.TP)) * max(1, int(ask.PP))
	for n := 1; n <= mostCards; n++ {
		if n&(n-1) != 0 && (cut&(cut-1) == 0 || n*machines%cut != 0) {
			continue // the powers of two, and what a model that is cut otherwise runs on
		}
		gb, ok := e.Card(ask, float64(n*machines))
		bytes := int64(math.Ceil(gb * float64(size.GB)))
		if !ok || gb > 1e9 || len(f.Cards) > 0 && bytes >= f.Cards[len(f.Cards)-1].Memory {
			continue
		}
		if f.Cards = append(f.Cards, plan.Card{Accelerators: n, Memory: bytes}); f.Machine == 0 {
			f.Machine = int64(n) * bytes // its processes lie beside each other
		}
		if m.Kind == shape.Trees { // their programs take one
			break
		}
	}
	return f
}

// leftOpen is the footprint as far as the resources leave open what holds it: a number of accelerators of a kind,
// or memory, that the file states is what the job runs on, whatever the estimate says.
func leftOpen(f plan.Footprint, r spec.Resources) plan.Footprint {
	kind, count := r.GPUs()
	if kind != "" && kind != spec.AnyAccelerator && count.Min == count.Max {
		return plan.Footprint{}
	}
	if r.Memory.Min > 0 || r.Memory.Max > 0 {
		f.Machine = 0
	}
	return f
}
