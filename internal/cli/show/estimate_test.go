package show_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"scrimp/internal/cli/show"
	"scrimp/internal/cli/show/sizing"
	"scrimp/internal/decide/runhistory"
	"scrimp/internal/estimate"
	"scrimp/internal/estimate/hardware"
	"scrimp/internal/estimate/physics"
	"scrimp/internal/job/spec"
	"scrimp/internal/test/golden"
)

func span(v float64) *estimate.Range { return &estimate.Range{Value: v, Low: v * 0.8, High: v * 1.3} }

func estimates(p show.Place) map[string]string {
	whole := estimate.Option{Chip: "H100-SXM-80GB", Count: 8, Micro: 4, Answer: estimate.Answer{
		Throughput: span(81234.5), Unit: "tokens/s", Hours: span(6.84), Cost: span(376.4), Hourly: 55.04, PeakMemory: span(61.2), Fits: ptr(true),
		Memory:     &physics.Memory{Weights: 4.02, Gradients: 4.02, Optimiser: 8.03, Activations: 28.1, Logits: 10.5, Overhead: 1.2},
		Provenance: "throughput by arithmetic × 1.08, learned from 691 measured runs, most of all Llama-3-8B on 8 H100-SXM-80GB (NVIDIA-NeMo/Megatron-Bridge), none of this program; memory by component × 1.00, against 80 GB; price aws p5.48xlarge in us-east-1, 2026-07-20.",
	}}
	whole.Machine = &hardware.Machine{Name: "aws p5.48xlarge", Count: 1, Each: 8, CPUs: 192, Network: 3200}
	small := whole
	small.Machine = &hardware.Machine{Name: "gcp g2-standard-4", Count: 2, Each: 1, CPUs: 4, Network: 10}
	small.Micro, small.Throughput, small.Unit = 1, &estimate.Range{Value: 2.5312e6, Low: 999400, High: 4.17e9}, "row-trees/s"
	big := whole
	big.Chip, big.Fits, big.Cost, big.Hourly = "A100-SXM-40GB", ptr(false), nil, 0
	week := whole.Programme(40)
	unknown := estimate.Option{Chip: "T4", Count: 1, Answer: estimate.Answer{Unit: "samples/s", Provenance: "throughput is unknown: the shape of the model x is not known."}}
	errors := []estimate.Error{
		{Kind: "all", What: "throughput", LeftOut: "stack", Runs: 691, Groups: 193, Mean: 0.179, Median: 0.081, Covered: 0.79},
		{Kind: "transformer-dense", What: "memory", LeftOut: "source", Runs: 83, Groups: 5, Mean: 0.115, Median: 0.075, Covered: 0.81},
	}
	runs := []runhistory.Run{
		{Job: "llama-ft-3", Name: "llama-ft", Finished: now, Machine: "p5.48xlarge", Accelerator: "H100-SXM-80GB", Accelerators: 8, StepsPerHour: ptr(1234.5), WorkS: ptr(5 * 3600.0), Unit: "tokens/s", Throughput: ptr(111111.0), PeakMemory: ptr(71.5), Cost: amount("275.2"), Model: &spec.Model{Config: "llama-3-8b"}},
		{Job: "chargpt-profile", Name: "chargpt-profile", Finished: now, Machine: "m1", StepsPerHour: ptr(2870.0), Cost: amount("0.016")},
		{Job: "sh", Name: "sh", Finished: now, WorkS: ptr(1.0)},
	}
	past := sizing.History{Pairs: []runhistory.Pair{
		{Job: "llama-ft-3", Finished: now, What: "throughput", Kind: "transformer-dense", Unit: "tokens/s", Expected: 104000, Actual: 111111, Within: ptr(true)},
		{Job: "llama-ft-3", Finished: now, What: "hours", Kind: "experiment", Unit: "h", Expected: 6, Actual: 5},
		{Job: "llama-ft-3", Finished: now, What: "dollars", Kind: "experiment", Unit: "USD", Expected: 250, Actual: 275.2},
	}}
	past.Missed = runhistory.Missing(past.Pairs)
	both := past
	both.LeftOut = errors
	chips := hardware.Catalogued()
	return map[string]string{
		"measured":          sizing.MeasuredRuns(runs, chips, 2, p),
		"measured-nothing":  sizing.MeasuredRuns(nil, chips, 2, p),
		"past":              past.Text(2, p),
		"past-both":         both.Text(0, p),
		"estimate":          sizing.Text(sizing.Page{Model: "llama-3-8b", Option: whole, Programme: &week}, p),
		"estimate-millions": sizing.Text(sizing.Page{Model: "gbdt", Option: small}, p),
		"estimate-unheld":   sizing.Unheld(false, p),
		"estimate-too-few":  sizing.Unheld(true, p),
		"estimate-unknown":  sizing.Text(sizing.Page{Model: "x", Option: unknown}, p),
		"estimate-options":  sizing.Options([]estimate.Option{whole, big, unknown}, 2, "the oldest of 2026-06-18, some of unknown age", p),
		"estimate-knobs": sizing.Knobs([]sizing.Knob{
			{Flag: "--zero 3", Option: whole}, {Flag: "--zero 3 --checkpointing full", Option: big}, {Flag: "--lora", Option: unknown}}, p),
		"estimate-none":     sizing.NoOption("llama-3-8b", "", p),
		"estimate-none-of":  sizing.NoOption("llama-3-8b", "H100:8", p),
		"estimate-accuracy": sizing.Accuracy(errors, p),
		"estimate-nothing":  (sizing.History{}).Text(0, p),
	}
}

func TestEstimates_MatchGolden(t *testing.T) {
	for width, p := range map[string]show.Place{"80": {Width: 80, Now: now}, "120": {Width: 120, Now: now}, "piped": {}} {
		for name, text := range estimates(p) {
			golden.Check(t, name+"."+width+".txt", text)
		}
	}
}

func TestHistory_ForPrograms(t *testing.T) {
	within := 0.8
	golden.JSON(t, "json/measured-run.json", runhistory.Run{
		Job: "llama-ft-3", Name: "llama-ft", Kind: "experiment", State: "succeeded", Submitted: now, Finished: now, Offer: "aws/us-east-1/p5.48xlarge/on-demand", Machine: "p5.48xlarge", Accelerator: "H100-SXM-80GB", Accelerators: 8, Speed: 1,
		Steps: 1000, Total: ptr(int64(1000)), StepsPerHour: ptr(200.0), WorkS: ptr(18000.0), Currency: "USD", Cost: amount("275.2"), Model: &spec.Model{Config: "llama-3-8b"}, Unit: "tokens/s", Throughput: ptr(111111.0),
	})
	golden.JSON(t, "json/measured-unknown.json", runhistory.Run{Job: "sh", Name: "sh"})
	golden.JSON(t, "json/measured-missed.json", runhistory.Missed{What: "throughput", Kind: "all", Runs: 5, Median: 0.06, Mean: 0.08, Bias: -0.02, Within: &within})
	golden.JSON(t, "json/measured-pair.json", runhistory.Pair{Job: "llama-ft-3", Name: "llama-ft", Finished: now, What: "hours", Kind: "experiment", Unit: "h", Expected: 6, Actual: 5})
}

func TestEstimates_FitTerminal(t *testing.T) {
	for _, width := range []int{60, 80, 100} {
		for name, text := range estimates(show.Place{Width: width, Now: now}) {
			for line := range strings.Lines(text) {
				if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
					t.Errorf("%s at %d columns has a line of %d: %q", name, width, n, line)
				}
			}
		}
	}
}
