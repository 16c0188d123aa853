package estimate

import (
	"errors"
	"math"
	"strings"
	"testing"

	"scrimp/internal/estimate/hardware"
	"scrimp/internal/estimate/runs"
	"scrimp/internal/estimate/shape"
	"scrimp/internal/market/accelerator"
	"scrimp/internal/market/catalog"
)

func model(t testing.TB, name string) shape.Model {
	t.Helper()
	m, ok := shape.Named(name)
	if !ok {
		t.Fatalf("%s is not published", name)
	}
	return m
}

// If one machine carries all accelerators, it is chosen and paid for whole, even if several small ones would cost less.
func TestMachines_PrefersOneMachineThatCarriesAll(t *testing.T) {
	for _, c := range []struct {
		kind    string
		n       float64
		machine string
		count   float64
		usd     float64
	}{
		{"A10G", 8, "aws g5.48xlarge", 1, 16.288},
		{"A10G", 1, "aws g5.xlarge", 1, 1.006},
		{"A10G", 16, "aws g5.48xlarge", 2, 2 * 16.288},
		{"T4", 4, "aws g4dn.12xlarge", 1, 3.912},
		{"T4", 3, "aws g4dn.12xlarge", 1, 3.912},
		{"H100-SXM-80GB", 16, "aws p5.48xlarge", 2, 2 * 55.04},
	} {
		q := Request{Model: model(t, "llama-3-8b"), Chip: c.kind, Count: c.n, Precision: "fp16", Seq: 2048, Micro: 1,
			Zero: 3, Tokens: 1e9}
		o := answer(t, alone(), q)
		if o.Machine == nil || o.Machine.Name != c.machine || o.Machine.Count != c.count ||
			math.Abs(o.Hourly-c.usd) > 1e-6 {
			t.Errorf("%g %s: %+v at %g, to be %g × %s at %g", c.n, c.kind, o.Machine, o.Hourly, c.count, c.machine, c.usd)
		}
		if c.count > 1 != strings.Contains(o.Provenance, "machines exchange over") {
			t.Errorf("%g %s: the network is not spoken of: %s", c.n, c.kind, o.Provenance)
		}
	}
}

// n accelerators do at most n times what one does with the same batch, apart from the saving when each updates only its
// share of the optimizer.
func TestRate_ScalesAtMostLinearly(t *testing.T) {
	e := alone()
	for _, name := range []string{"llama-3-8b", "gpt2", "resnet-50"} {
		for _, tuning := range []shape.Tuning{shape.Full, shape.LoRA, shape.QLoRA} {
			for _, kind := range []string{"T4", "A10G", "L4", "V100-SXM2-16GB", "H100-SXM-80GB", "TPU-v5e"} {
				q := Request{Model: model(t, name), Chip: kind, Count: 1, Precision: "bf16", Seq: 1024, Micro: 4,
					Tuning: tuning, Decoded: true}
				one := answer(t, e, q).Throughput.Value
				for _, n := range []float64{2, 4, 8, 16, 64} {
					for _, zero := range []int{0, 3} {
						q.Count, q.Zero = n, zero
						most := n * 1.001
						if zero == 3 && tuning == shape.Full {
							most = n * 1.07
						}
						if got := answer(t, e, q).Throughput.Value / one; got > most {
							t.Errorf("%s, tuning %d, ZeRO %d: %g %s do %.2f times what one does", name, tuning, zero, n, kind, got)
						}
					}
				}
			}
		}
	}
}

// The same accelerators in small machines with slow networks do less than in one machine.
func TestRate_SlowNetworkReducesThroughput(t *testing.T) {
	chips := hardware.Catalogued()
	e := New(chips, nil, nil)
	q := Request{Model: model(t, "llama-3-8b"), Chip: "A10G", Count: 8, Precision: "bf16", Seq: 2048, Micro: 1, Zero: 3}
	rate := func(h hardware.Machine, change func(*Request)) float64 {
		x := q
		x.Host = &h
		change(&x)
		return answer(t, e, x).Throughput.Value
	}
	as := func(*Request) {}
	one := hardware.Machine{Count: 1, Each: 8, CPUs: 192, Network: 100}
	eight := hardware.Machine{Count: 8, Each: 1, CPUs: 4, Network: 2.5}
	if a, b := rate(one, as), rate(eight, as); b > a/5 {
		t.Errorf("eight g5.xlarge share out weights at %.0f tokens/s, one g5.48xlarge at %.0f", b, a)
	}
	fast := eight
	fast.Network = 3200
	if a, b := rate(eight, as), rate(fast, as); b < 5*a {
		t.Errorf("3200 Gbit/s do %.0f, 2.5 do %.0f", b, a)
	}
	for name, change := range map[string]func(*Request){
		"tensor parallel":   func(x *Request) { x.TP, x.Zero = 8, 0 },
		"a pipeline":        func(x *Request) { x.PP, x.Zero = 8, 0 },
		"gradients":         func(x *Request) { x.Zero = 0 },
		"frozen weights":    func(x *Request) { x.Tuning = shape.LoRA },
		"small gradients":   func(x *Request) { x.Tuning, x.Zero = shape.LoRA, 0 },
		"4 bit weights":     func(x *Request) { x.Tuning = shape.QLoRA },
		"one of two levels": func(x *Request) { x.TP = 2 },
	} {
		if a, b := rate(one, change), rate(eight, change); b >= a {
			t.Errorf("%s: %.0f tokens/s over a slow network, %.0f in one machine", name, b, a)
		}
	}
	link := one
	link.Link = 300
	if a, b := rate(one, as), rate(link, as); b <= a {
		t.Errorf("a bridge between boards does %.0f, PCIe %.0f", b, a)
	}
	unknown := hardware.Machine{Count: 8, Each: 1}
	x := q
	x.Host = &unknown
	if o := answer(t, e, x); !strings.Contains(o.Provenance, "not known and taken for 10 Gbit/s") {
		t.Error(o.Provenance)
	}
}

// Nothing is sharded without a request, and a request changes the result.
func TestAnswer_ShardsOnlyOnRequest(t *testing.T) {
	q := Request{Model: model(t, "llama-3-8b"), Chip: "T4", Count: 4, Precision: "fp16", Seq: 2048, Micro: 1,
		Tuning: shape.LoRA}
	four := answer(t, alone(), q)
	q.Count = 1
	one := answer(t, alone(), q)
	if four.Memory.Weights != one.Memory.Weights || *four.Fits {
		t.Errorf("weights of %g GB on one and %g on each of four: %v", one.Memory.Weights, four.Memory.Weights, *four.Fits)
	}
	q.Count, q.Zero = 4, 3
	if shared := answer(t, alone(), q); shared.Memory.Weights > 0.3*one.Memory.Weights ||
		shared.Throughput.Value >= four.Throughput.Value {
		t.Errorf("shared out: weights of %g GB, %g tokens/s; %g and %g unshared", shared.Memory.Weights,
			shared.Throughput.Value, four.Memory.Weights, four.Throughput.Value)
	}
}

func TestFormat_UsesAvailableFormat(t *testing.T) {
	for _, c := range []struct{ chip, asked, use string }{
		{"T4", "bf16", "fp16"}, {"V100-SXM2-16GB", "bf16", "fp16"}, {"RTX8000", "bf16-true", "fp16-true"},
		{"A100-SXM-80GB", "bf16", "bf16"}, {"T4", "tf32", "fp32"}, {"TPU-v5e", "fp16", "bf16"},
		{"V100-SXM2-16GB", "fp8", ""}, {"A100-SXM-80GB", "fp8", ""}, {"H100-SXM-80GB", "fp8", "fp8"},
		{"H100-SXM-80GB", "mxfp8", ""}, {"B200-SXM", "mxfp8", "mxfp8"}, {"H100-SXM-80GB", "nvfp4", ""},
		{"B200-SXM", "fp4", "fp4"}, {"T4", "fp16", "fp16"}, {"T4", "amp", "amp"}, {"T4", "", ""},
	} {
		chip, ok := hardware.Catalogued().Find(c.chip)
		use, why, err := chip.Format(c.asked)
		if !ok || use != c.use || (err == nil) != (c.use != "" || c.asked == "") || (why == "") != (use == c.asked || err != nil) {
			t.Errorf("%s asked for %s trains in %q (%s, %v), it is %q", c.chip, c.asked, use, why, err, c.use)
		}
	}
	q := asked(t)
	q.Chip, q.Count, q.Zero = "V100-SXM2-16GB", 8, 3
	if o := answer(t, alone(), q); !strings.Contains(o.Provenance, "has no bf16: fp16 with loss scaling") {
		t.Error(o.Provenance)
	}
	q.Precision = "fp8"
	if _, err := alone().Answer(q); !errors.Is(err, ErrPrecision) || !strings.Contains(err.Error(), "V100-SXM2-16GB multiplies no fp8") {
		t.Error(err)
	}
	q.Chip, q.Count = "", 0
	list, err := alone().Options(q)
	if err != nil || len(list) == 0 {
		t.Fatal(len(list), err)
	}
	for _, o := range list {
		if c, _ := hardware.Catalogued().Find(o.Chip); c.FP8 <= 0 {
			t.Errorf("fp8 is proposed on %s", o.Chip)
		}
	}
	q.Chip, q.Precision = "Inferentia2", "bf16"
	if _, err := alone().Answer(q); !errors.Is(err, ErrInferenceOnly) {
		t.Errorf("Inferentia trains: %v", err)
	}
}

func TestHeld_FewProcessorsLimitImages(t *testing.T) {
	e := New(hardware.Catalogued(), nil, nil)
	q := Request{Model: model(t, "resnet-50"), Chip: "A10G", Count: 1, Precision: "bf16", Rows: 1e6, Epochs: 1}
	rate := func(cpus float64, change func(*Request)) Option {
		x := q
		x.Host = &hardware.Machine{Count: 1, Each: 1, CPUs: cpus}
		change(&x)
		return answer(t, e, x)
	}
	as := func(*Request) {}
	four, many := rate(4, as), rate(192, as)
	if four.Throughput.Value != 400 || many.Throughput.Value <= 400 || !strings.Contains(four.Provenance, "4 processors decode") {
		t.Errorf("four processors prepare %g images a second, 192 %g: %s", four.Throughput.Value, many.Throughput.Value, four.Provenance)
	}
	if math.Abs(four.Hours.Value*3600*400/1e6-1) > 1e-9 {
		t.Errorf("a million images at 400 a second take %g h", four.Hours.Value)
	}
	if got := rate(4, func(x *Request) { x.Decoded = true }); got.Throughput.Value != many.Throughput.Value {
		t.Errorf("decoded elsewhere it is %g, with enough processors %g", got.Throughput.Value, many.Throughput.Value)
	}
	text := func(x *Request) { x.Model, x.Seq = model(t, "gpt2"), 1024 }
	if a, b := rate(4, text), rate(192, text); a.Throughput.Value != b.Throughput.Value {
		t.Errorf("text takes processors: %g and %g", a.Throughput.Value, b.Throughput.Value)
	}
	// A measured run that did more shows that its program decodes differently.
	chip, _ := hardware.Catalogued().Find("A10G")
	r := q.Row(chip, 1, many.Micro)
	r.Throughput, r.Source, r.Quality = 900, "own/x", "A"
	e = New(hardware.Catalogued(), nil, []runs.Row{r})
	q.Program = "own"
	if got := rate(4, as); got.Throughput.Value < 600 {
		t.Errorf("900 were measured, and %g are expected", got.Throughput.Value)
	}
	// Among the offers, the machine with enough processors is cheaper in total.
	q.Program = ""
	if o := answer(t, alone(), q); o.Machine == nil || o.Machine.CPUs < 8 {
		t.Errorf("%+v is taken", o.Machine)
	}
}

func TestTreeRate_FallsWithColumns(t *testing.T) {
	q := Request{Model: shape.Model{Name: "gbdt", Kind: shape.Trees}, Chip: "T4", Count: 1, Rows: 1e7, Trees: 100, Depth: 8}
	unsaid := answer(t, alone(), q)
	q.Features = 12
	dozen := answer(t, alone(), q)
	q.Features = 120
	wide := answer(t, alone(), q)
	if unsaid.Hours.Value != dozen.Hours.Value || !strings.Contains(unsaid.Provenance, "--features") || strings.Contains(dozen.Provenance, "--features") {
		t.Errorf("a dozen is taken where nobody says: %s", unsaid.Provenance)
	}
	if k := wide.Hours.Value / dozen.Hours.Value; k < 7 || k > 10 {
		t.Errorf("ten times the columns take %.1f times as long", k)
	}
	if k := wide.PeakMemory.Value / dozen.PeakMemory.Value; k < 8 || k > 10 {
		t.Errorf("ten times the columns take %.1f times the memory", k)
	}
	q.Features, q.Model.Columns = 0, 120
	if named := answer(t, alone(), q); named.Hours.Value != wide.Hours.Value {
		t.Errorf("stated with the model it takes %g h, beside it %g", named.Hours.Value, wide.Hours.Value)
	}
}

// The machines of a user's own catalogue have its prices, each type where it is cheapest.
func TestNewListed_UsesCatalogue(t *testing.T) {
	l := hardware.NewListed(catalog.Builtin())
	for _, k := range accelerator.Accelerators() {
		for _, n := range []float64{1, 2, 3, 8, 9, 64} {
			list := l.Machines(k.Name, "", n)
			alone := false
			seen := map[string]bool{}
			for _, m := range list {
				alone = alone || m.Each >= n
				if m.Count*m.Each < n || (m.Count-1)*m.Each >= n || m.Hourly <= 0 || seen[m.Name] {
					t.Errorf("%g %s: %+v", n, k.Name, m)
				}
				seen[m.Name] = true
			}
			for _, m := range list {
				if alone && m.Count > 1 {
					t.Errorf("%g %s: %+v, and one machine carries them", n, k.Name, m)
				}
			}
		}
	}
}

// An eighth of an L4 is no L4: it has an eighth of the memory, and nobody publishes its speed, so there is no estimate.
func TestAnswer_HasNoEstimateForPartOfAccelerator(t *testing.T) {
	e := New(hardware.Catalogued(), nil, nil)
	q := Request{Model: model(t, "resnet-50"), Rows: 1e6, Chip: "l4-part", Count: 1}
	if o, err := e.Answer(q); err == nil {
		t.Errorf("%+v", o)
	}
	if a := e.Estimate(runs.Row{Family: string(shape.Conv), GPU: "l4-part", N: 1}); a.Throughput != nil || a.Fits != nil {
		t.Errorf("%+v", a)
	}
	q.Chip = "L4"
	if _, err := e.Answer(q); err != nil {
		t.Error(err)
	}
}
