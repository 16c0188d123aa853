package diagnose_test

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"scrimp/internal/test/lane"
	"scrimp/internal/work/diagnose"
	"scrimp/internal/work/diagnose/class"
	"scrimp/internal/work/diagnose/profile"
)

// fixes maps the name of a fault to the change that diagnose names for it, applied to a planted program. Each returns
// how many old steps one new step replaces. In the model, a fault without a fix here costs no time.
var fixes = map[string]func(*program) float64{
	"one worker decodes images":            func(p *program) float64 { p.workers = p.cores - 1; return 1 },
	"the main process decodes images":      func(p *program) float64 { p.workers = p.cores - 1; return 1 },
	"as many workers as cores are too few": func(p *program) float64 { p.load = 0.5; return 1 },
	"a hard disk":                          func(p *program) float64 { p.disk = 0; return 1 },
	"a hard disk without a GPU":            func(p *program) float64 { p.disk = 0; return 1 },
	"a bucket far away":                    func(p *program) float64 { p.net = 0; return 1 },
	"many small files": func(p *program) float64 {
		p.load, p.readCalls = p.load-(p.readCalls-40)*30e-6, 40
		return 1
	},
	"a batch of four": func(p *program) float64 {
		p.compute, p.load, p.bytes = 10*p.compute, 10*p.load, 10*p.bytes
		return 10
	},
	"saves every minute":              func(p *program) float64 { p.every *= 10; return 1 },
	"saves every 20 s on processors":  func(p *program) float64 { p.every *= 10; return 1 },
	"evaluates again and again":       func(p *program) float64 { p.evalEvery *= 10; return 1 },
	"evaluates on processors":         func(p *program) float64 { p.evalEvery *= 10; return 1 },
	"flushes each line":               func(p *program) float64 { p.writes, p.logs = 2, 0.001; return 1 },
	"a data set larger than memory":   func(p *program) float64 { p.latency = 0; return 1 },
	"a download at each begin":        func(p *program) float64 { p.setUp = 12; return 1 },
	"waits at the end":                func(p *program) float64 { p.after = 0; return 1 },
	"waits at the end on processors":  func(p *program) float64 { p.after = 0; return 1 },
	"sleeps in the loop":              func(p *program) float64 { p.latency = 0; return 1 },
	"a slow machine of four":          func(p *program) float64 { p.slow = 0; return 1 },
	"a slow network between machines": func(p *program) float64 { p.gradients /= 8; return 1 },
}

// pace returns the duration of a step, with its share of saves and evaluations.
func (p *program) pace() float64 {
	length := 0.0
	for n := range p.nodes {
		slow := 1.0
		if p.slow > 0 && n == p.nodes-1 {
			slow = p.slow
		}
		own, _ := p.step(slow)
		length = max(length, own)
	}
	more := 1.0
	if p.every > 0 {
		more += p.saveTime / p.every
	}
	if p.evalEvery > 0 {
		more += p.evalTime / p.evalEvery
	}
	return length * more
}

// time returns the duration of a number of steps, and steps the number of steps in a time.
func (p *program) time(steps float64) float64    { return p.setUp + steps*p.pace() + p.after }
func (p *program) steps(seconds float64) float64 { return (seconds - p.setUp - p.after) / p.pace() }

// off returns the error of a prediction, as a share of the actual value.
func off(predicted, came float64) float64 { return math.Abs(predicted-came) / came }

func median(list []float64) float64 {
	slices.Sort(list)
	return list[len(list)/2]
}

// The predicted saving of a change is within 25 % of what the same steps then cost less, in the median of each fault's
// runs.
func TestDiagnose_PredictsWhatTheFixSaves(t *testing.T) {
	const seconds = 300
	var all []float64
	runs := lane.Pick(40, 500)
	for n, x := range planted {
		fix := fixes[x.name]
		if fix == nil {
			continue
		}
		var own []float64
		for seed := range runs {
			rng := rand.New(rand.NewPCG(uint64(seed), uint64(n)+2000))
			p := plant(n, rng)
			if p.setUp > 20 {
				p.setUp *= seconds / 120.
			}
			p.after *= seconds / 120.
			in := p.measured(rng, seconds)
			fixed := p
			factor := fix(&fixed)
			saved := 1 - fixed.time(p.steps(seconds)/factor)/seconds
			for _, c := range diagnose.Diagnose(in).Causes {
				if c.Class == x.class {
					own = append(own, off(c.Share.Value, saved))
				}
			}
		}
		if 100*len(own) < 90*runs {
			t.Errorf("%s: of %d runs %d have a prediction", x.name, runs, len(own))
			continue
		}
		m := median(own)
		t.Logf("%-40s half of the predictions are within %.0f %%", x.name, 100*m)
		if m > 0.25 {
			t.Errorf("%s: half of the predictions are more than %.0f %% from what the fix saves", x.name, 100*m)
		}
		all = append(all, own...)
	}
	t.Logf("over %d pairs of %d faults half are within %.1f %%", len(all), len(fixes), 100*median(all))
}

// traced is a step of a program on a GPU, in milliseconds, for which a profile is made. The host loads and
// copies batches, starts kernels, and examines the result of each. Without waits it starts the next kernel while the GPU computes.
type traced struct {
	loads, copies, kernels, begin, kernel float64
	waits                                 bool
	faster                                float64 // how much faster its kernels are in 16 bits
	name                                  string  // of the kernels; default a product in 16 bits
}

// step returns the duration of a step.
func (p traced) step() float64 {
	if p.waits {
		return p.loads + p.copies + p.kernels*(p.begin+p.kernel)
	}
	return p.loads + p.copies + p.kernels*max(p.begin, p.kernel)
}

// profile writes steps as PyTorch's profiler does, and reads them.
func (p traced) profile(t *testing.T) profile.Profile {
	t.Helper()
	var s strings.Builder
	at := 0.0
	add := func(cat, name string, pid int, from, length float64) {
		fmt.Fprintf(&s, `,{"ph":"X","cat":%q,"name":%q,"pid":%d,"tid":%d,"ts":%.0f,"dur":%.0f}`, cat, name, pid, pid, 1000*from, 1000*length)
	}
	for range 10 {
		if p.loads > 0 {
			add("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 1, at, p.loads)
			at += p.loads
		}
		if p.copies > 0 {
			add("cpu_op", "aten::copy_", 1, at, p.copies)
			add("cuda_runtime", "cudaMemcpyAsync", 1, at, p.copies)
			add("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", 0, at, p.copies)
			at += p.copies
		}
		for range int(p.kernels) {
			add("cpu_op", "aten::addmm", 1, at, p.begin)
			end := at + max(p.begin, p.kernel)
			if p.waits {
				end = at + p.begin + p.kernel
				add("cpu_op", "aten::item", 1, at+p.begin, p.kernel)
				add("cuda_runtime", "cudaStreamSynchronize", 1, at+p.begin, p.kernel)
			}
			add("kernel", cmp.Or(p.name, "nvjet_tst_256x128_64x4_2x1_v_bz_coopA_NNT"), 0, end-p.kernel, p.kernel)
			at = end
		}
	}
	r, err := profile.Read("trace.json", strings.NewReader("["+s.String()[1:]+"]"))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Faults that only a profile shows are named first, in profiles of many programs, with a saving within 25 % of the
// true one in the median. The program without them gets no cause.
func TestDiagnose_FindsPlantedFaultsInProfiles(t *testing.T) {
	runs := lane.Pick(20, 200)
	for _, x := range []struct {
		class class.Class
		plant func(*traced, *rand.Rand)
		fix   func(*traced)
	}{
		{class.HostCopies, func(p *traced, r *rand.Rand) { p.copies = 20 + 60*r.Float64() }, func(p *traced) { p.copies = 0 }},
		{class.Synchronisation, func(p *traced, r *rand.Rand) {
			p.kernels, p.kernel, p.begin, p.waits = 100, 0.5, 0.25+0.25*r.Float64(), true
		}, func(p *traced) { p.waits = false }},
		{class.SmallBatch, func(p *traced, r *rand.Rand) { // a captured graph leaves hardly a gap between kernels
			p.copies, p.kernels, p.begin, p.kernel = 0, 100, 0.012+0.02*r.Float64(), 0.004+0.002*r.Float64()
		}, func(p *traced) { p.begin = p.kernel / 0.85 }},
		{class.Precision, func(p *traced, r *rand.Rand) { // matrix units are two and a half to six times as fast
			p.name, p.faster = "ampere_sgemm_128x64_tn", 2.5+3.5*r.Float64()
		}, func(p *traced) { p.begin, p.kernel = 0.3, p.kernel/p.faster }},
		{class.DataLoading, func(p *traced, r *rand.Rand) { // its kernels are many and small, but that is not the cause
			p.loads, p.copies, p.kernels = 3+3*r.Float64(), 0, 200
			p.begin, p.kernel = 0.004, 0.01
		}, func(p *traced) { p.loads = 0 }},
		{"", func(*traced, *rand.Rand) {}, nil},
		{"", func(p *traced, _ *rand.Rand) { p.copies, p.kernels, p.begin, p.kernel = 0, 200, 0.004, 0.01 }, nil},
		{"", func(p *traced, _ *rand.Rand) { p.name = "sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x32" }, nil},
	} {
		right := 0
		var own []float64
		for seed := range runs {
			rng := rand.New(rand.NewPCG(uint64(seed), 3000))
			p := traced{copies: 2, kernels: 20, begin: 0.5 + rng.Float64(), kernel: 3 + rng.Float64()}
			x.plant(&p, rng)
			r := diagnose.Diagnose(diagnose.Input{Job: "train", Profiles: []profile.Profile{p.profile(t)}})
			if first(r) != x.class || x.class == "" {
				if x.class == "" && len(r.Causes) > 0 {
					t.Fatalf("a healthy program has %+v", r.Causes)
				}
				continue
			}
			right++
			fixed := p
			x.fix(&fixed)
			own = append(own, off(r.Causes[0].Share.Value, 1-fixed.step()/p.step()))
		}
		if x.class == "" {
			continue
		}
		if 100*right < 90*runs || median(own) > 0.25 {
			t.Errorf("%s: of %d profiles %d name it first, half with a saving within %.0f %%", x.class, runs, right, 100*median(own))
			continue
		}
		t.Logf("%s: of %d profiles %d name it first, half with a saving within %.0f %%", x.class, runs, right, 100*median(own))
	}
}

// A table of a GPU's use shows that the GPU is too large only if it covers ten minutes.
func TestDiagnose_OfATableNamesALargeGPUAfterTenMinutes(t *testing.T) {
	t.Parallel()
	for last, want := range map[string]int{"10:00:01.000": 0, "10:09:59.000": 0, "10:10:00.000": 1, "12:00:00.000": 1} {
		text := "timestamp, utilization.gpu [%]\n2026/11/27 10:00:00.000, 10 %\n2026/11/27 " + last + ", 12 %\n"
		p, err := profile.Read("smi.csv", strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		r := diagnose.Diagnose(diagnose.Input{Profiles: []profile.Profile{p}})
		if len(r.Causes) != want || want > 0 && r.Causes[0].Class != class.OversizedGPU {
			t.Errorf("until %s: %+v", last, r.Causes)
		}
	}
}

// Traces that PyTorch's profiler recorded have the cause of their program: none, decoding in the main process,
// activation checkpointing in both forms, and a batch of one.
func TestDiagnose_OfRecordedTraces(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]class.Class{"healthy": "", "loading": class.DataLoading, "recompute": class.Recompute,
		"recompute-hooks": class.Recompute, "small": class.SmallBatch} {
		b, err := os.ReadFile(filepath.Join("testdata", "pytorch-"+file+".json.gz"))
		if err != nil {
			t.Fatal(err)
		}
		p, err := profile.Read(file, bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		r := diagnose.Diagnose(diagnose.Input{Profiles: []profile.Profile{p}})
		if first(r) != want || len(r.Causes) > 1 {
			t.Errorf("%s has the causes %v", file, names(r))
		}
	}
}
