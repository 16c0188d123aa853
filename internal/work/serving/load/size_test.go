package load_test

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"scrimp/internal/estimate/shape"
	"scrimp/internal/lib/figure"
	"scrimp/internal/lib/money"
	"scrimp/internal/market/accelerator"
	"scrimp/internal/test/must"
	"scrimp/internal/work/serving/load"
)

func named(t *testing.T, name string) shape.Model {
	t.Helper()
	m, ok := shape.Named(name)
	if !ok {
		t.Fatalf("no model %s", name)
	}
	return m
}

func chip(t *testing.T, name string) accelerator.Accelerator {
	t.Helper()
	a, ok := accelerator.Find(name)
	if !ok {
		t.Fatalf("no accelerator %s", name)
	}
	return a
}

// chat is n requests, one a second, with so many tokens in and out.
func chat(n, in, out int) load.Trace {
	var t load.Trace
	for i := range n {
		t.At = append(t.At, time.Duration(i)*time.Second)
		t.In, t.Out = append(t.In, int32(in)), append(t.Out, int32(out))
	}
	t.Window = time.Duration(n) * time.Second
	return t
}

// Small models fit on a T4 or an L4, medium ones on an A10G or in 8 bits, large ones on several A100 or in 8 bits. The memory is
// parameters × bytes and, for each token of the longest request, 2 × layers × key heads × width × 2 bytes.
func TestFits_SizesModelsByMemoryAndFormat(t *testing.T) {
	for _, x := range []struct {
		model, chip string
		count       int
		format      string
		shards      int
		params, kv  float64
		bytes       float64
	}{
		{"llama-3.2-3b", "T4", 1, "fp16", 1, 3.21e9, 2 * 28 * 8 * 128 * 2, 2},
		{"llama-3-8b", "T4", 1, "int8", 1, 8.03e9, 2 * 32 * 8 * 128 * 2, 1},
		{"llama-3-8b", "L4", 1, "fp16", 1, 8.03e9, 2 * 32 * 8 * 128 * 2, 2},
		{"llama-3-8b", "A10G", 1, "fp16", 1, 8.03e9, 2 * 32 * 8 * 128 * 2, 2},
		{"llama-2-13b", "A10G", 1, "int8", 1, 13.02e9, 2 * 40 * 40 * 128 * 2, 1},
		{"llama-2-13b", "A100-SXM-80GB", 1, "fp16", 1, 13.02e9, 2 * 40 * 40 * 128 * 2, 2},
		{"llama-3-70b", "A100-SXM-80GB", 1, "int8", 1, 70.6e9, 2 * 80 * 8 * 128 * 2, 1},
		{"llama-3-70b", "A100-SXM-80GB", 8, "fp16", 2, 70.6e9, 2 * 80 * 8 * 128 * 2, 2},
		{"llama-3-70b", "A100-SXM-40GB", 2, "int8", 2, 70.6e9, 2 * 80 * 8 * 128 * 2, 1},
		{"llama-3-70b", "L4", 2, "int4", 2, 70.6e9, 2 * 80 * 8 * 128 * 2, (4 + 20.0/128) / 8},
	} {
		m, err := load.ModelOf(named(t, x.model), chat(3, 300, 212))
		must.Do(t, err)
		f, ok := m.Fits(load.Formats, chip(t, x.chip), x.count)
		if !ok || f.Format.Name != x.format || f.Shards != x.shards || f.Copies != x.count/x.shards {
			t.Errorf("%s on %d %s: %+v, %v", x.model, x.count, x.chip, f, ok)
			continue
		}
		if need := x.params*x.bytes + 512*x.kv; math.Abs(float64(f.Need)-need) > 1 {
			t.Errorf("%s on %s needs %d, want %.0f", x.model, x.chip, f.Need, need)
		}
		have := 0.9 * float64(chip(t, x.chip).Usable()) * float64(x.shards)
		if most := int((have - x.params*x.bytes) / (512 * x.kv)); f.Batch != min(most, load.MaxBatch) {
			t.Errorf("%s on %s: batch %d, want %d", x.model, x.chip, f.Batch, most)
		}
	}
	m, _ := load.ModelOf(named(t, "llama-3.1-405b"), chat(3, 300, 212))
	if f, ok := m.Fits(load.Formats, chip(t, "A100-SXM-80GB"), 2); ok {
		t.Errorf("405 billion parameters fit on two A100: %+v", f)
	}
}

// The guide's table names the smallest accelerators that hold a copy, and its figures are those of the formulas.
func TestGuide_SizesModelsAsScrimpDoes(t *testing.T) {
	b, err := os.ReadFile("../../../../docs/serving.md")
	must.Do(t, err)
	ladder := []struct {
		name, chip string
		count      int
	}{{"T4", "T4", 1}, {"L4, A10G", "L4", 1}, {"A100 40 GB", "A100-SXM-40GB", 1},
		{"A100 80 GB", "A100-SXM-80GB", 1}, {"2 × A100 80 GB", "A100-SXM-80GB", 2}}
	for _, model := range []string{"llama-3.2-3b", "llama-3-8b", "llama-2-13b", "llama-3-70b"} {
		m, err := load.ModelOf(named(t, model), chat(1, 300, 212))
		must.Do(t, err)
		row := "| " + model + " |"
		for _, f := range load.Formats {
			for _, l := range ladder {
				if _, ok := m.Fits([]load.Format{f}, chip(t, l.chip), l.count); ok {
					row += " " + l.name + " |"
					break
				}
			}
		}
		if !strings.Contains(string(b), row+"\n") {
			t.Errorf("docs/serving.md does not have %s", row)
		}
	}
	text, thirteen := string(b), named(t, "llama-2-13b")
	m, _ := load.ModelOf(thirteen, chat(1, 300, 212))
	for _, name := range []string{"Inferentia2", "Trainium1", "TPU-v6e"} {
		if _, ok := m.Fits(load.Formats[:1], chip(t, name), 1); !ok || !strings.Contains(text, name) {
			t.Errorf("%s holds llama-2-13b in fp16: %v", name, ok)
		}
	}
	rate, _ := money.ParseRate("0.80")
	all := rate.Until(48 * time.Hour).Times(2)
	for _, text := range []string{money.Format(all, money.USD, 2), money.Format(all.Over(36_168), money.USD, 5),
		fmt.Sprintf("%.1f ms", 2*8.03e9/300e9*1e3)} {
		if !strings.Contains(string(b), text) {
			t.Errorf("docs/serving.md does not print %s", text)
		}
	}
}

// By hand, Llama-3-8B in fp16 on an L4 at its limits (121e12 operations and 300e9 bytes a second): a prompt of 300 tokens takes
// 300 · (2 · 7.505e9 + 2 · 32 · 4096 · 300) / 121e12 s, less than reading the weights (53.5 ms), and each of 9 more tokens
// takes as long as reading the weights and the cache.
func TestRoofline_IsTheSlowerOfComputeAndMemory(t *testing.T) {
	m, err := load.ModelOf(named(t, "llama-3-8b"), chat(4, 300, 10))
	must.Do(t, err)
	f, _ := m.Fits(load.Formats, chip(t, "L4"), 1)
	r, ok := load.NewRoofline(m, f, chip(t, "L4"), figure.Figure{}, load.Fast)
	if !ok {
		t.Fatal("nothing is known of L4")
	}
	read := 2 * 8.03e9 / 300e9
	cache := 9 * (300 + 4.5) * 131072 / 300e9
	if p, d := r.Phases(0, 1); math.Abs(p-read) > 1e-9 || math.Abs(d-9*read-cache) > 1e-9 {
		t.Errorf("prompt %v, want %v; decode %v, want %v", p, read, d, 9*read+cache)
	}
	compute := 4 * 300 * (2*(8.03e9-128256*4096) + 2*32*4096*300) / 121e12
	if p, _ := r.Phases(0, 4); math.Abs(p-compute) > 1e-9 {
		t.Errorf("four prompts take %v, want %v", p, compute)
	}
	slow, _ := load.NewRoofline(m, f, chip(t, "L4"), figure.Figure{}, load.Slow)
	typical, _ := load.NewRoofline(m, f, chip(t, "L4"), figure.Figure{}, load.Typical)
	if r.Time(0, 4) >= typical.Time(0, 4) || typical.Time(0, 4) >= slow.Time(0, 4) {
		t.Errorf("%v, %v, %v", r.Time(0, 4), typical.Time(0, 4), slow.Time(0, 4))
	}
}

func TestModelOf_RefusesWhatItCannotEstimate(t *testing.T) {
	bare := load.Trace{At: []time.Duration{0}}
	for name, says := range map[string]string{"llama-3-8b": "reads tokens, and the trace has no column input_tokens",
		"ncf": "no formula"} {
		if _, err := load.ModelOf(named(t, name), bare); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := load.ModelOf(named(t, "resnet-50"), bare); err != nil {
		t.Error(err)
	}
}

func TestMeasured_InterpolatesBetweenBatches(t *testing.T) {
	all, err := load.ReadMeasured("m.csv", strings.NewReader("accelerator,batch,seconds\nL4,8,0.080\nL4,1,0.010\nL4,4,0.040\n"))
	must.Do(t, err)
	for n, want := range map[int]time.Duration{1: 10 * ms, 2: 20 * ms, 4: 40 * ms, 6: 60 * ms, 8: 80 * ms} {
		if got := all["l4"].Time(0, n); got.Round(time.Microsecond) != want {
			t.Errorf("batch %d takes %v, want %v", n, got, want)
		}
	}
	for text, says := range map[string]string{
		"":                                            "has no measurement",
		"accelerator,batch,seconds":                   "has no measurement",
		"time,input_tokens\n":                         "is not the header of measurements",
		"accelerator,batch,seconds\nL4,0,1\n":         "line 2: batch: \"0\" is out of range",
		"accelerator,batch,seconds\nL4,1,0\n":         "seconds: \"0\" is out of range",
		"accelerator,batch,seconds\nL4,1,-1\n":        "seconds: \"-1\" is out of range",
		"accelerator,batch,seconds\nL4,1,NaN\n":       "seconds: \"NaN\" is out of range",
		"accelerator,batch,seconds\nL4,1,500ms\n":     "seconds: \"500ms\" is not a number: write the seconds",
		"accelerator,batch,seconds\nL4,1,1e-1\n":      "seconds: \"1e-1\" is not a plain decimal: write the seconds",
		"accelerator,batch,seconds\nL4,one,1\n":       "batch: \"one\" is not a number",
		"\x1f\x8b\x08\x00":                            "compressed with gzip",
		"accelerator,batch,seconds\nL4,1,99999999\n":  "is out of range",
		"accelerator,batch,seconds\nL4,1,1\nl4,1,2\n": "has batch 1 twice",
		"accelerator,batch,seconds\nL4,1\n":           "has 2 fields",
		"accelerator,batch,seconds\n,1,1\n":           "write accelerator,batch,seconds",
	} {
		if _, err := load.ReadMeasured("m.csv", strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", text, err, says)
		}
	}
}

// Formats are read in any order and kept from the widest on.
func TestParseFormats_KeepsTheWidestFirst(t *testing.T) {
	list, err := load.ParseFormats("int4, FP16")
	if err != nil || len(list) != 2 || list[0].Name != "fp16" {
		t.Errorf("%v %v", list, err)
	}
	if _, err := load.ParseFormats("fp16,fp64"); err == nil {
		t.Error("fp64")
	}
}
