package terms

import (
	"math"

	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/runhistory"
	"scrimp/internal/estimate"
	"scrimp/internal/estimate/hardware"
	"scrimp/internal/estimate/shape"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/size"
)

// mostCards bounds the number of accelerators per machine in a footprint.
const mostCards = 16

// footprint estimates the memory of the job's model by arithmetic (docs/formulas.md, "Estimates"). It is zero if the
// file does not describe a model sufficiently.
func footprint(j spec.Job) (f plan.Footprint) {
	if !j.Model.Named() {
		return f
	}
	m, ok := runhistory.Shape(j.Name, j.Model)
	if !ok {
		return f
	}
	e := estimate.New(hardware.Catalogued(), nil, nil)
	ask := runhistory.Request(j, m)
	machines := max(1, j.FewestNodes())
	cut := max(1, int(ask.TP)) * max(1, int(ask.PP))
	for n := 1; n <= mostCards; n++ {
		if n&(n-1) != 0 && (cut&(cut-1) == 0 || n*machines%cut != 0) {
			continue // only powers of two, and multiples of a model's own division
		}
		gb, ok := e.Card(ask, float64(n*machines))
		bytes := int64(math.Ceil(gb * float64(size.GB)))
		if !ok || gb > 1e9 || len(f.Cards) > 0 && bytes >= f.Cards[len(f.Cards)-1].Memory {
			continue
		}
		if f.Cards = append(f.Cards, plan.Card{Accelerators: n, Memory: bytes}); f.Machine == 0 {
			f.Machine = int64(n) * bytes // its processes share the machine
		}
		if m.Kind == shape.Trees { // their programs use one accelerator
			break
		}
	}
	return f
}

// withoutStated drops the parts of the footprint that the resources decide: if the file states a number of accelerators
// of a kind, or memory, the job runs on that, whatever the estimate.
func withoutStated(f plan.Footprint, r spec.Resources) plan.Footprint {
	kind, count := r.GPUs()
	if kind != "" && kind != spec.AnyAccelerator && count.Min == count.Max {
		return plan.Footprint{}
	}
	if r.Memory.Min > 0 || r.Memory.Max > 0 {
		f.Machine = 0
	}
	return f
}
