package savings

import (
	"testing"

	"scrimp/internal/estimate"
	"scrimp/internal/estimate/hardware"
	"scrimp/internal/job/spec"
)

// Matrix units multiply 16-bit numbers several times as fast, so a model that computes in 32 bits would cost less. One
// that does not, or of which too little is known, has no saving.
func TestIn16_SavesOnlyWhereAJobComputesIn32Bits(t *testing.T) {
	e := estimate.New(hardware.Catalogued(), nil, nil)
	of := func(model, precision string) spec.Job {
		return spec.Job{Name: "train", Model: spec.Model{Shape: model, Precision: precision, Batch: 32}}
	}
	for _, accelerator := range []string{"V100-SXM2-16GB", "A100-SXM-40GB", "H100-SXM-80GB", "T4"} {
		if share := in16(e, of("resnet50", "fp32"), accelerator, 1); share < 0.2 || share > 0.95 {
			t.Errorf("%s: saves %g of the cost", accelerator, share)
		}
	}
	for name, share := range map[string]float64{
		"bf16":               in16(e, of("resnet50", "bf16"), "T4", 1),
		"no precision":       in16(e, of("resnet50", ""), "T4", 1),
		"no such model":      in16(e, of("nothing", "fp32"), "T4", 1),
		"no accelerator":     in16(e, of("resnet50", "fp32"), "", 1),
		"unknown to anybody": in16(e, of("resnet50", "fp32"), "X9", 1),
	} {
		if share != 0 {
			t.Errorf("%s: saves %g of the cost", name, share)
		}
	}
}
