package estimate

import (
	"math"
	"testing"

	"scrimp/internal/estimate/hardware"
	"scrimp/internal/estimate/physics"
	"scrimp/internal/estimate/runs"
)

func TestBound_TransfersRateBetweenComputingAndMemory(t *testing.T) {
	chips := hardware.Catalogued()
	r, m, err := physics.ParseMeasured("measured: 120 samples/s on L4", chips)
	if err != nil {
		t.Fatal(err)
	}
	q := Request{Model: m, Count: 1, Precision: "bf16", Unit: r.Unit, Program: r.Source}
	l4, _ := chips.Find("L4")
	for _, kind := range []string{"A10G", "T4", "V100-SXM2-16GB", "A100-SXM-80GB", "H100-SXM-80GB", "B200-SXM"} {
		q.Chip = kind
		c, _ := chips.Find(kind)
		products, memory := 120*c.Half/l4.Half*c.Ceiling()/l4.Ceiling(), 120*c.Band/l4.Band
		o, err := New(chips, nil, []runs.Row{r}).Answer(q)
		if err != nil || o.Throughput == nil {
			t.Fatal(err, o.Provenance)
		}
		if low, high := min(products, memory), max(products, memory); o.Throughput.Low > 1.02*low ||
			o.Throughput.High < high/1.02 {
			t.Errorf("%s: %.0f to %.0f does not hold %.0f and %.0f", kind, o.Throughput.Low, o.Throughput.High, low, high)
		}
		q.Micro = 8
		if with, err := New(chips, nil, []runs.Row{r}).Answer(q); err != nil ||
			math.Abs(with.Throughput.Value/o.Throughput.Value-1) > 0.01 || with.PeakMemory != nil {
			t.Errorf("%s: with a batch %+v, without %+v; memory %+v", kind, with.Throughput, o.Throughput, with.PeakMemory)
		}
		q.Micro = 0
	}
}
