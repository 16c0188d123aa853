package estimate

import (
	"math/rand/v2"
	"testing"

	"scrimp/internal/estimate/hardware"
	"scrimp/internal/estimate/runs"
	"scrimp/internal/estimate/shape"
)

// The chosen batch is the largest that fits by the whole estimate.
func TestLargest_ChosenBatchFitsAndNextDoesNot(t *testing.T) {
	chips := hardware.Catalogued()
	list := chips.Sorted()
	r := rand.New(rand.NewPCG(5, 5))
	var rows []runs.Row
	for i := range 60 {
		m, _ := shape.Published("llama-3-8b")
		row := Request{Model: m, Precision: "bf16", Seq: 2048, Zero: 3}.Row(list[i%len(list)], 8, float64(int(1)<<(i%4)))
		row.Mem, row.Throughput, row.Source = 20+40*r.Float64(), 1000, "own/x"
		rows = append(rows, row)
	}
	ends := map[float64]int{}
	for _, e := range []*Estimator{New(chips, nil, nil), New(chips, nil, rows)} {
		for _, name := range []string{"llama-3-8b", "gpt2", "resnet-50", "mixtral-8x7b"} {
			m, _ := shape.Published(name)
			for _, chip := range list {
				q := Request{Model: m, Precision: "bf16", Seq: 2048, Zero: 3, Tuning: shape.Tuning(r.IntN(3)),
					Keep: runs.Recompute(r.IntN(3))}
				o := e.one(q, chip, 8)
				ends[o.Micro]++
				if o.Fits == nil {
					continue
				}
				if !*o.Fits && o.Micro != 1 {
					t.Errorf("%s on %s: %g is chosen and does not fit", name, chip.Name, o.Micro)
				}
				q.Micro = 2 * o.Micro
				if next := e.one(q, chip, 8); *o.Fits && o.Micro < 256 && *next.Fits {
					t.Errorf("%s on %s: %g is chosen, and %g fits", name, chip.Name, o.Micro, q.Micro)
				}
			}
		}
	}
	if len(ends) < 5 {
		t.Errorf("batches chosen: %v", ends)
	}
}
