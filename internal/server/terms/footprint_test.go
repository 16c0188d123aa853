package terms_test

import (
	"cmp"
	"math"
	"strings"
	"testing"

	"scrimp/internal/decide/plan"
	"scrimp/internal/job/spec"
	"scrimp/internal/server/terms"
)

// llama is Llama-3-8B in the notation of a job file.
const llama = "{shape: 'transformer layers=32 dim=4096 heads=32 kv=8 ff=14336 vocab=128256 gated=1', sequence: 2048"

// The footprint matches a computation by hand, in GB: weights, gradients and optimiser by their bytes per parameter,
// activations 2·(6d + 2kv + 4f) bytes per token and layer, logits 10 bytes per token and word, 0.2 GB of overhead; without
// sharding in full, a copy of the weights in 16 bits, activations 2·(15d + 2kv + 4f), and logits 14 bytes.
func TestFootprint_MatchesHandComputation(t *testing.T) {
	t.Parallel()
	const params, tokens, layers, words = 8.03e9, 2048.0, 32.0, 128256.0
	keeps := tokens * (2*(6*4096+2*1024+4*14336)*layers + 10*words) / 1e9
	whole := (18*params + tokens*(2*(15*4096+2*1024+4*14336)*layers+14*words)) / 1e9
	ends := tokens*(2*4096*layers+2*(6*4096+2*1024+4*14336)+10*words)/1e9 + 0.2
	layer := 2 * 2 * params / layers / 1e9 // two layers are gathered in 16 bit
	margin := (1 + (math.Exp(0.25)-1)/4) / 0.97
	for name, c := range map[string]struct {
		job  string
		each map[int]float64 // by accelerators of a machine
		host float64
	}{
		"full":            {"", map[int]float64{1: whole + 0.2}, whole + 0.2},
		"lora":            {", tuning: lora", map[int]float64{1: 2*params/1e9 + 12*0.002*params/1e9 + keeps + 0.2}, 2*params/1e9 + 12*0.002*params/1e9 + keeps + 0.2},
		"shared out":      {", sharding: fsdp, activation_checkpointing: full", map[int]float64{8: 16*params/8e9 + layer + ends}, 16*params/1e9 + layer + ends},
		"on two machines": {", sharding: fsdp, activation_checkpointing: full}\nnodes: 2 #", map[int]float64{4: 16*params/8e9 + layer + ends}, 16*params/2e9 + layer + ends},
	} {
		f := needOf(t, "command: a\nmodel: "+llama+c.job+"}\n").Footprint
		for n, want := range c.each {
			if got := cardOf(f, n); math.Abs(got/(want*margin)-1) > 0.01 {
				t.Errorf("%s: %d take %.1f GB each, want %.1f", name, n, got, want*margin)
			}
		}
		if got := float64(f.Machine) / 1e9; math.Abs(got/(c.host*margin)-1) > 0.01 {
			t.Errorf("%s: a machine takes %.1f GB, want %.1f", name, got, c.host*margin)
		}
	}
	trees := needOf(t, "command: a\nmodel: {shape: trees, features: 28}\nwork: {steps: 100, samples: 50M}\n").Footprint
	if want := (5*28 + 4) * 50e6 * margin; math.Abs(float64(trees.Machine)/want-1) > 0.01 || len(trees.Cards) != 1 {
		t.Errorf("a table takes %+v, want %.3g", trees, want)
	}
}

// Stated resources override the estimate; the estimate does not apply to an alternative that trains differently.
func TestFootprint_YieldsToStatedResources(t *testing.T) {
	t.Parallel()
	for resources, want := range map[string]string{
		"":                           "33.2 GB of memory on one accelerator, or 33.2 GB on a machine without",
		"{accelerator: 'A100:1'}":    "",
		"{accelerator: A100}":        "",
		"{accelerator: 'A100:1..4'}": "33.2 GB of memory on one accelerator, or 33.2 GB on a machine without",
		"{accelerator: 'any:2'}":     "33.2 GB of memory on one accelerator, or 33.2 GB on a machine without",
		"{memory: 8GiB+}":            "33.2 GB of memory on one accelerator",
	} {
		n := needOf(t, "command: a\nmodel: "+llama+", tuning: lora}\nresources: "+cmp.Or(resources, "{}")+"\n")
		if got := n.Footprint.String(); got != want {
			t.Errorf("%s takes %q, want %q", resources, got, want)
		}
	}
	n := needOf(t, "command: a\nmodel: "+llama+", tuning: lora}\nany_of: [{name: big, resources: {cpus: 8+}}, "+
		"{name: small, args: [--qlora]}, {name: exact, resources: {accelerator: 'T4:1'}}]\n")
	for i, want := range []bool{true, false, false} {
		if got := len(n.Variants[i].Footprint.Cards) > 0; got != want {
			t.Errorf("%s: estimated: %v", n.Variants[i].Name, got)
		}
	}
	if f := needOf(t, "command: a\nmodel: {shape: 'transformer layers=32 dim=4096', tensor_parallel: 4, sequence: 128}\n").Footprint; f.Cards[0].Accelerators != 4 {
		t.Errorf("a model that is cut over four goes on %+v", f)
	}
	three := needOf(t, "command: a\nmodel: {shape: 'transformer layers=32 dim=4096', tensor_parallel: 3, sharding: zero3}\n").Footprint
	for i, want := range []int{3, 6, 9, 12, 15} {
		if i >= len(three.Cards) || three.Cards[i].Accelerators != want {
			t.Fatalf("a model that is cut over three goes on %+v", three)
		}
	}
	six := needOf(t, "command: a\nnodes: 2\nmodel: {shape: 'transformer layers=32 dim=4096', tensor_parallel: 3, pipeline_parallel: 2}\n").Footprint
	if len(six.Cards) == 0 || six.Cards[0].Accelerators != 3 {
		t.Errorf("a model that is cut over six goes on two machines of %+v", six)
	}
	for _, unknown := range []string{"{sharding: fsdp}", "{config: config.json}", "{shape: nonsense}"} {
		if f := needOf(t, "command: a\nmodel: "+unknown+"\n").Footprint; f.Machine != 0 || len(f.Cards) > 0 {
			t.Errorf("%s takes %+v", unknown, f)
		}
	}
}

// cardOf returns the memory that each of n accelerators of a machine needs, in GB.
func cardOf(f plan.Footprint, n int) (gb float64) {
	for _, c := range f.Cards {
		if c.Accelerators <= n {
			gb = float64(c.Memory) / 1e9
		}
	}
	return gb
}

func needOf(t *testing.T, job string) plan.Need {
	t.Helper()
	j, _, err := spec.Parse(spec.Run, "job.yaml", []byte(job), "", now)
	if err != nil && !strings.Contains(job, "nonsense") {
		t.Fatal(err)
	}
	return terms.Need(j)
}
