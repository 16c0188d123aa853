package estimate

import (
	"math"
	"strings"
	"testing"

	"scrimp/internal/estimate/hardware"
	"scrimp/internal/estimate/runs"
	"scrimp/internal/estimate/shape"
)

// Two publishers state rates of operations in their own conventions. In these, our shapes must reproduce their figures
// from their throughputs; otherwise rates could not be compared.
func TestOpsBy_ReproducesPublishedRates(t *testing.T) {
	chips := publishedChips(t)
	type sum struct {
		n     int
		worst float64
		errs  []float64
	}
	seen := map[shape.Convention]*sum{shape.Mosaic: {}, shape.Megatron: {}}
	for _, r := range publishedRows(t) {
		if !runs.Known(r.Throughput) || !runs.Known(r.Seq) {
			continue
		}
		m := r.Shape()
		var c shape.Convention
		var stated float64 // 1e12 operations per second and accelerator
		switch {
		case strings.Contains(r.Source, "llm-foundry") && runs.Known(r.MFU):
			// Its utilization is relative to the dense 16-bit or 8-bit rate.
			chip, ok := chips.Find(r.Spec, r.GPU)
			peak, ok2 := chip.Peak(hardware.ParsePrecision(r.Precision, true))
			if !ok || !ok2 {
				t.Errorf("%s: nothing is known of %s", r.ID, r.GPU)
				continue
			}
			c, stated = shape.Mosaic, r.MFU/100*peak
		case strings.Contains(r.Source, "Megatron-Bridge") && runs.Known(r.TFLOPS) && m.Kind == shape.Transformer &&
			r.Family == string(shape.Transformer):
			c, stated = shape.Megatron, r.TFLOPS
		default:
			continue
		}
		ours := r.Throughput / r.N * m.OpsBy(c, r.Seq, r.Tuning()) / 1e12
		e := math.Abs(ours/stated - 1)
		s := seen[c]
		s.n++
		s.errs = append(s.errs, e)
		if e > s.worst {
			s.worst = e
		}
		if e > 0.06 {
			t.Logf("%s %s %s %s seq %g: %.1f by ours, %.1f published", r.ID, c, r.Model, r.Task, r.Seq, ours, stated)
		}
	}
	for c, s := range seen {
		t.Logf("%s: %d rows, median %.2f %%, worst %.1f %%", c, s.n, 100*quantile(s.errs, 0.5), 100*s.worst)
		if s.n < 20 {
			t.Errorf("%s: only %d rows state both", c, s.n)
		}
		if quantile(s.errs, 0.5) > 0.01 || quantile(s.errs, 0.9) > 0.05 {
			t.Errorf("%s: median %.3f, 90 %% quantile %.3f of the difference", c, quantile(s.errs, 0.5), quantile(s.errs, 0.9))
		}
	}
}
