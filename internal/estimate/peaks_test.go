package estimate

import (
	"encoding/json"
	"fmt"
	"math"
	"os/exec"
	"testing"

	"scrimp/internal/estimate/hardware"
	"scrimp/internal/estimate/physics"
	"scrimp/internal/estimate/shape"
	"scrimp/internal/test/lane"
)

// What a layer keeps for the backward pass is what PyTorch counts in a model of that shape: the difference between models
// of three layers and one.
func TestMemory_CountsWhatPyTorchKeeps(t *testing.T) {
	lane.Component(t, "pytorch")
	t.Parallel()
	const python, width, batch, length = "/usr/bin/python3", 128, 8, 128
	if exec.Command(python, "-c", "import torch").Run() != nil {
		t.Skip("python3-torch is not installed")
	}
	for _, c := range []struct{ shape, precision string }{
		{"plain", "bf16"}, {"plain", "fp32"}, {"gated", "bf16"}, {"gated", "fp32"},
	} {
		kept := func(layers int) (counted, estimated float64) {
			cmd := exec.CommandContext(t.Context(), python, "testdata/peaks.py", c.shape, c.precision, "none",
				fmt.Sprint(layers), fmt.Sprint(width), "512", fmt.Sprint(batch), fmt.Sprint(length))
			out, err := cmd.Output()
			var answer struct{ Kept float64 }
			if err != nil || json.Unmarshal(out, &answer) != nil {
				t.Fatalf("%v: %v, %s", c, err, out)
			}
			s := physics.Setup{Class: hardware.Half, Micro: batch, Seq: length, Model: shape.Model{Kind: shape.Transformer,
				Params: 1e6, Layers: float64(layers), Dim: width, Heads: 2, FF: 4 * width, Vocab: 512}}
			if c.precision == "fp32" {
				s.Class = hardware.FP32
			}
			if c.shape == "gated" {
				s.Model.Gated, s.Model.FF = true, 3*width
			}
			g, _ := s.Memory()
			return answer.Kept, 1e9 * g.Activations
		}
		most, mostIs := kept(3)
		least, leastIs := kept(1)
		counted, estimated := (most-least)/2, (mostIs-leastIs)/2
		t.Logf("%v: a layer keeps %.1f widths a token, estimated %.1f", c, counted/width/batch/length,
			estimated/width/batch/length)
		if math.Abs(estimated/counted-1) > 0.02 {
			t.Errorf("%v: a layer keeps %.0f bytes, estimated %.0f", c, counted, estimated)
		}
	}
}
