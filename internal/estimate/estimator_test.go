package estimate

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"

	"scrimp/internal/estimate/hardware"
	"scrimp/internal/estimate/physics"
	"scrimp/internal/estimate/residual"
	"scrimp/internal/estimate/runs"
	"scrimp/internal/estimate/shape"
	"scrimp/internal/market/catalog"
)

func alone() *Estimator {
	return New(hardware.Catalogued(), hardware.NewListed(catalog.Builtin()), nil)
}

func asked(t testing.TB) Request {
	t.Helper()
	m, ok := shape.Published("llama-3-8b")
	if !ok {
		t.Fatal("llama-3-8b is not published")
	}
	return Request{Model: m, Chip: "H100-SXM-80GB", Count: 8, Precision: "bf16", Seq: 2048, Micro: 2, Zero: 3, Tokens: 2e9}
}

func answer(t testing.TB, e *Estimator, q Request) Option {
	t.Helper()
	o, err := e.Answer(q)
	if err != nil {
		t.Fatal(err)
	}
	if o.Throughput == nil || o.PeakMemory == nil {
		t.Fatalf("%s: no value", o.Provenance)
	}
	return o
}

func TestEstimate_MoreWorkTakesLongerAndCostsMore(t *testing.T) {
	e, q := alone(), asked(t)
	a := answer(t, e, q)
	q.Tokens *= 2
	b := answer(t, e, q)
	if r := b.Hours.Value / a.Hours.Value; math.Abs(r-2) > 1e-9 {
		t.Errorf("twice the tokens take %.6f times the hours", r)
	}
	if r := b.Cost.Value / a.Cost.Value; math.Abs(r-2) > 1e-9 {
		t.Errorf("twice the tokens cost %.6f times the dollars", r)
	}
	if got, want := a.Cost.Value, a.Hours.Value*a.Hourly; math.Abs(got/want-1) > 1e-12 {
		t.Errorf("cost %.6f, hours times price %.6f", got, want)
	}
	if a.Hours.Low >= a.Hours.High || math.Abs(a.Hours.Low*a.Throughput.High*3600/2e9-1) > 1e-9 {
		t.Errorf("the least hours %g do not go with the highest rate %g", a.Hours.Low, a.Throughput.High)
	}
}

func TestMemory_KnobsHaveIntendedEffect(t *testing.T) {
	e, base := alone(), asked(t)
	peak := func(change func(*Request)) float64 {
		q := base
		change(&q)
		return answer(t, e, q).PeakMemory.Value
	}
	was := peak(func(*Request) {})
	for name, change := range map[string]func(*Request){
		"checkpointing": func(q *Request) { q.Keep = runs.KeepEnds },
		"selective":     func(q *Request) { q.Keep = runs.KeepSome },
		"smaller batch": func(q *Request) { q.Micro = 1 },
		"shorter":       func(q *Request) { q.Seq = 1024 },
		"LoRA":          func(q *Request) { q.Tuning, q.Count, q.Zero = shape.LoRA, 1, 0 },
		"tensor":        func(q *Request) { q.TP = 2 },
	} {
		if name == "LoRA" {
			full := peak(func(q *Request) { q.Count, q.Zero = 1, 0 })
			if got := peak(change); got >= full {
				t.Errorf("%s takes %.1f GB, full training %.1f", name, got, full)
			}
			continue
		}
		if got := peak(change); got >= was {
			t.Errorf("%s takes %.1f GB, without it %.1f", name, got, was)
		}
	}
	for stage := 1; stage <= 3; stage++ {
		less := peak(func(q *Request) { q.Zero = stage })
		more := peak(func(q *Request) { q.Zero = stage - 1 })
		// Stages 1 and 2 keep 16-bit weights, and a 32-bit copy with the optimizer.
		if less >= more {
			t.Errorf("ZeRO %d takes %.1f GB, ZeRO %d %.1f", stage, less, stage-1, more)
		}
	}
	// With a large batch, what 4-bit layers keep for the backward pass outweighs their weights.
	lora := peak(func(q *Request) { q.Tuning, q.Count, q.Zero, q.Micro = shape.LoRA, 1, 0, 1 })
	qlora := peak(func(q *Request) { q.Tuning, q.Count, q.Zero, q.Micro = shape.QLoRA, 1, 0, 1 })
	if qlora >= lora {
		t.Errorf("QLoRA takes %.1f GB, LoRA %.1f", qlora, lora)
	}
}

func TestMemory_WorkedExample(t *testing.T) {
	m, _ := shape.Published("stablelm-base-alpha-3b")
	g, ok := physics.Setup{Model: m, Tuning: shape.LoRA, Class: hardware.Half, N: 1, Micro: 2, Seq: 1034}.Memory()
	if !ok {
		t.Fatal("no memory")
	}
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"weights", g.Weights, 3.64*2 + 2*0.002*3.64},
		{"activations", g.Activations, 2 * 1034 * 2 * 16 * 4096 * 15 / 1e9},
		{"logits", g.Logits, 10 * 1034 * 2 * 50688 / 1e9},
	} {
		if math.Abs(c.got/c.want-1) > 0.002 {
			t.Errorf("%s is %.3f GB, by hand %.3f", c.name, c.got, c.want)
		}
	}
}

// Peaks of PyTorch 2.11's own count for GPT-2 small (124M, its fused attention), 16 × 1024 tokens, AdamW, on an H100
// (2026-11-26), and the same by hand: parameters, activations, logits, 0.2 GB.
func TestMemory_AgreesWithPeaksMeasuredOnH100(t *testing.T) {
	m, _ := shape.Published("gpt2")
	const tokens, d, f, vocab = 16 * 1024, 768, 4 * 768, 50257
	for _, c := range []struct {
		precision      string
		measured, hand float64
	}{
		{"bf16", 18.86, ((6+4+8)*m.Params + tokens*(12*(20*d+4*f)+14*vocab)) / 1e9},
		{"fp32", 24.51, ((4+4+8)*m.Params + tokens*(12*(32*d+8*f)+16*vocab)) / 1e9},
	} {
		peak := answer(t, alone(), Request{Model: m, Chip: "H100-SXM-80GB", Count: 1, Precision: c.precision, Micro: 16,
			Seq: 1024, Tokens: 1e8}).PeakMemory
		if math.Abs(peak.Value/c.measured-1) > 0.05 || math.Abs(peak.Value/(c.hand+0.2)-1) > 0.01 {
			t.Errorf("%s: estimated %.2f GB (%.1f to %.1f), measured %.2f, by hand %.2f", c.precision, peak.Value, peak.Low,
				peak.High, c.measured, c.hand+0.2)
		}
	}
}

func TestScaled_CostsMeanSquareOfSize(t *testing.T) {
	m, _ := shape.Published("resnet-50")
	q := Request{Model: m, Chip: "A100-SXM-80GB", Count: 1, Precision: "amp", Micro: 128, Rows: 1e6, Epochs: 1,
		Decoded: true}
	plain := answer(t, alone(), q)
	q.Pixels = []Stage{{224, 1}}
	same := answer(t, alone(), q)
	q.Pixels = []Stage{{128, 0.5}, {224, 0.5}}
	less := answer(t, alone(), q)
	if same.Hours.Value != plain.Hours.Value {
		t.Errorf("at the stated size it takes %g h, without resizing %g", same.Hours.Value, plain.Hours.Value)
	}
	if r := less.Hours.Value / plain.Hours.Value; r < 0.6 || r > 0.75 {
		t.Errorf("half at 128 takes %.2f of the time, the mean square is 0.66", r)
	}
}

func TestRate_ReproducesMeasuredRun(t *testing.T) {
	chips := hardware.Catalogued()
	r, m, err := physics.ParseMeasured("measured: 120 samples/s on L4", chips)
	if err != nil {
		t.Fatal(err)
	}
	e := New(chips, hardware.NewListed(catalog.Builtin()), []runs.Row{r})
	q := Request{Model: m, Chip: "L4", Count: 1, Precision: "bf16", Unit: r.Unit, Program: r.Source, Epochs: 1, Rows: 1e6}
	same, err := e.Answer(q)
	if err != nil || same.Throughput == nil || math.Abs(same.Throughput.Value/120-1) > 0.02 {
		t.Fatalf("%v: %+v", err, same.Throughput)
	}
	q.Chip = "H100-SXM-80GB"
	other, err := e.Answer(q)
	if err != nil || other.Throughput == nil || other.Throughput.Value < 240 {
		t.Errorf("%v: an H100 does %+v of what an L4 does at 120", err, other.Throughput)
	}
	wide := func(r *Range) float64 { return r.High / r.Low }
	if other.Throughput != nil && wide(other.Throughput) <= wide(same.Throughput) {
		t.Errorf("another accelerator is as certain (%.2f) as the measured one (%.2f)", wide(other.Throughput),
			wide(same.Throughput))
	}
}

func TestRate_MovesTowardsMeasurement(t *testing.T) {
	chips := hardware.Catalogued()
	q := asked(t)
	chip, _ := chips.Find(q.Chip)
	q.Program = "https://example.org/our-trainer"
	before := answer(t, New(chips, nil, nil), q)
	r := q.Row(chip, 8, 2)
	r.Throughput, r.Quality = before.Throughput.Value*1.4, "A"
	after := answer(t, New(chips, nil, []runs.Row{r}), q)
	if g := after.Throughput.Value / before.Throughput.Value; g < 1.25 || g > 1.4 {
		t.Errorf("a run measured at 1.4 times the estimate moved it to %.2f", g)
	}
	if w, v := after.Throughput.High/after.Throughput.Low, before.Throughput.High/before.Throughput.Low; w >= v {
		t.Errorf("the interval went from %.2f to %.2f", v, w)
	}
	q.Count = 16
	if far := answer(t, New(chips, nil, []runs.Row{r}), q); !strings.Contains(far.Provenance, "llama-3-8b on 8 H100-SXM-80GB") {
		t.Errorf("provenance does not name the run it learned from: %s", far.Provenance)
	}
}

func TestOptions_AreFeasibleAndSorted(t *testing.T) {
	q := asked(t)
	q.Chip, q.Count, q.Micro = "", 0, 0
	list, err := alone().Options(q)
	if err != nil || len(list) < 5 {
		t.Fatal(len(list), err)
	}
	for i, o := range list {
		if o.Fits != nil && !*o.Fits {
			t.Errorf("%g × %s does not fit", o.Count, o.Chip)
		}
		if strings.HasPrefix(o.Chip, "Inferentia") {
			t.Errorf("%s does not train", o.Chip)
		}
		if i > 0 && o.Cost.Value < list[i-1].Cost.Value {
			t.Errorf("%s at %.2f comes after %.2f", o.Chip, o.Cost.Value, list[i-1].Cost.Value)
		}
	}
}

func TestFew_UsesAllPaidAccelerators(t *testing.T) {
	q := asked(t)
	q.Count, q.Micro, q.Global, q.Zero = 0, 0, 0, 0
	for _, chip := range []string{"", "B200-SXM", "H100-SXM-80GB"} {
		q.Chip = chip
		list, err := alone().Options(q)
		if chip != "" {
			list, err = []Option{answer(t, alone(), q)}, nil
		}
		if err != nil || len(list) == 0 {
			t.Fatal(len(list), err)
		}
		for _, o := range list {
			one := q
			one.Chip, one.Count = o.Chip, 2*o.Count
			twice := answer(t, alone(), one)
			if o.Fits != nil && *o.Fits && twice.Fits != nil && *twice.Fits && twice.Hourly <= o.Hourly && o.Count < 64 {
				t.Errorf("%g × %s at %.2f an hour, and twice as many cost %.2f", o.Count, o.Chip, o.Hourly, twice.Hourly)
			}
		}
	}
	q.Chip, q.Count = "B200-SXM", 1
	if o := answer(t, alone(), q); !strings.Contains(o.Provenance, "7 of its 8 accelerators are paid for and not used") {
		t.Errorf("nobody says that seven are idle: %s", o.Provenance)
	}
}

func TestCheck_RefusesAbsurdRequests(t *testing.T) {
	for want, change := range map[string]func(*Request){
		"price":     func(q *Request) { q.Price = -1 },
		"tokens":    func(q *Request) { q.Tokens = math.NaN() },
		"micro":     func(q *Request) { q.Micro = -2 },
		"multiple":  func(q *Request) { q.TP = 3 },
		"ZeRO":      func(q *Request) { q.Zero = 4 },
		"resizing":  func(q *Request) { q.Pixels = []Stage{{224, 1}} },
		"whole":     func(q *Request) { q.Count = 2.5 },
		"NoSuchGPU": func(q *Request) { q.Chip = "NoSuchGPU" },
	} {
		q := asked(t)
		change(&q)
		if _, err := alone().Answer(q); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

func TestReadRows_ErrorNamesLineAndField(t *testing.T) {
	head := "id,family,model,n_gpus,throughput\n"
	for text, want := range map[string]string{
		"":                              "empty",
		"a,b\n1,2\n":                    "column",
		"id;family;model;n_gpus\n":      "put commas between the columns",
		"\xff\xfei\x00d\x00,\x00":       "in UTF-16: save it in UTF-8",
		"\ufeff\"id\",model\n":          "column family",
		"id,family,model,n_gpus,id\n":   "column id stands there twice",
		head + "\"x,cnn\n":              "line 2",
		head + "y,cnn,m,1,\nx,\"c\"nn,": "line 3",
	} {
		if _, err := runs.Read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	for text, want := range map[string]string{
		head + "x,cnn,m,eight,\n":            "line 2, n_gpus \"eight\"",
		head + "x,cnn,m,-1,\n":               "line 2, n_gpus \"-1\"",
		head + "y,cnn,m,1,\nx,cnn,m,1,nan\n": "line 3, throughput",
		head + "x,cnn,m\n": "line 2, row \"m\": 3 cells under 5 columns, of which this is " +
			"the last; it may be cut off",
		head + "x,cnn,m,1,1,2,3,4\n":                "line 2, row \"2,3,4\": 8 cells under 5 columns",
		head + "\"y\ny\",cnn,m,1,\nx,cnn,m,1,inf\n": "line 4, throughput",
	} {
		rows, err := runs.Read(strings.NewReader(text))
		if err != nil {
			t.Errorf("%q: one bad cell makes the table unreadable: %v", text, err)
			continue
		}
		r := rows[len(rows)-1]
		if len(r.Odd) != 1 || !strings.Contains(r.Odd[0].Error(), want) || r.Odd[0].Line == 0 {
			t.Errorf("%q: %v, want %q", text, r.Odd, want)
		} else if p := alone().Estimate(r.Question()).Provenance; !strings.Contains(p, r.Odd[0].Error()) {
			t.Errorf("the answer does not say of the odd cell: %s", p)
		}
	}
}

// Every answer is valid: no NaN, no infinity, nothing negative, ends in order.
func FuzzEstimate(f *testing.F) {
	f.Add("transformer-dense", "llama-3-8b", "H100-SXM-80GB", "bf16", "tokens/s", 8.0, 2048.0, 4.0, 512.0, 2.0)
	f.Add("cnn", "resnet-50", "L4", "amp", "images/s", 1.0, math.NaN(), 128.0, math.NaN(), math.NaN())
	f.Add("gbdt", "xgboost", "", "", "row-trees/s", 0.0, 1e300, 1e-300, 0.0, 0.0)
	f.Add("rnn", "", "T4", "fp32", "sequences/s", 1.0, 0.0, 0.0, 0.0, 1e9)
	e := alone()
	seen := runs.Unstated()
	seen.Family, seen.Model, seen.GPU, seen.Spec, seen.N, seen.Throughput, seen.Source = "cnn", "resnet-50", "L4", "L4",
		1, 500, "own"
	l := New(hardware.Catalogued(), hardware.NewListed(catalog.Builtin()), []runs.Row{seen})
	f.Fuzz(func(t *testing.T, family, model, gpu, precision, unit string, n, seq, micro, global, tokens float64) {
		r := runs.Unstated()
		r.Family, r.Model, r.GPU, r.Spec, r.Precision, r.Unit = family, model, gpu, gpu, precision, unit
		r.N, r.Seq, r.Micro, r.Global, r.Tokens, r.Rows, r.TreeN, r.Epochs = n, seq, micro, global, tokens, tokens, n, micro
		for _, x := range []*Estimator{e, l} {
			a := x.Estimate(r)
			if _, err := json.Marshal(a); err != nil {
				t.Fatalf("%v: %+v", err, a)
			}
			for name, v := range map[string]*Range{"throughput": a.Throughput, "hours": a.Hours, "memory": a.PeakMemory,
				"cost": a.Cost} {
				if v != nil && !v.sound() {
					t.Fatalf("%s is %+v", name, *v)
				}
			}
			if a.Provenance == "" {
				t.Fatal("no provenance")
			}
		}
	})
}

// A planner asks for many new shapes; it needs at least 100,000 estimates a second.
func BenchmarkEstimates(b *testing.B) {
	m, _ := shape.Published("llama-3-8b")
	var seen []runs.Row
	chips := hardware.Catalogued()
	list := chips.Sorted()
	for i := range 650 {
		q := Request{Model: m, Precision: "bf16", Seq: 2048, Zero: 3}
		r := q.Row(list[i%len(list)], float64(int(1)<<(i%6)), float64(int(1)<<(i%5)))
		r.Throughput, r.Source = 1000+float64(i), fmt.Sprint("s", i%20)
		seen = append(seen, r)
	}
	var rows []runs.Row
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 1 << 16 {
		m := m
		m.Name = fmt.Sprint("new-", i)
		m.Layers, m.Dim, m.Params = math.Round(8+90*rng.Float64()), 64*math.Round(8+200*rng.Float64()),
			1e8*math.Exp(7*rng.Float64())
		q := Request{Model: m, Precision: "bf16", Seq: 64 * math.Round(1+500*rng.Float64()), Zero: i % 4, Tokens: 1e9}
		rows = append(rows, q.Row(list[i%len(list)], float64(int(1)<<rng.IntN(10)), float64(1+rng.IntN(64))))
	}
	for name, ask := range map[string]func(e *Estimator, r runs.Row) bool{
		"rate": func(e *Estimator, r runs.Row) bool { _, ok := e.Rate(r); return ok },
		"whole": func(e *Estimator, r runs.Row) bool {
			a := e.Estimate(r)
			return a.Throughput != nil && a.PeakMemory != nil
		},
	} {
		b.Run(name, func(b *testing.B) {
			e := New(chips, hardware.NewListed(catalog.Builtin()), seen)
			for _, r := range rows[:2000] {
				ask(e, r)
			}
			b.ResetTimer()
			began := processor(b)
			for i := range b.N {
				if !ask(e, rows[i%len(rows)]) {
					b.Fatal("no estimate")
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "estimates/s")
			b.ReportMetric(float64(b.N)/(processor(b)-began), "estimates/cpu-s")
		})
	}
}

// processor returns the CPU seconds that this process has used.
func processor(b *testing.B) float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Sec+u.Stime.Sec) + float64(u.Utime.Usec+u.Stime.Usec)/1e6
}

// The kernels in use are sums of functions of one number, which makes fast guesses possible.
func TestQuickly_KernelsInUseAreSums(t *testing.T) {
	for _, k := range []*residual.Kernel{standard(), memoryKernel()} {
		if _, ok := k.Learn(nil).Quick(); !ok {
			t.Error("a term is near in two numbers")
		}
	}
}
