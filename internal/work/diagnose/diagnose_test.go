package diagnose_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"scrimp/internal/test/lane"
	"scrimp/internal/wire/telemetry"
	"scrimp/internal/work/diagnose"
	"scrimp/internal/work/diagnose/class"
)

// planted lists programs, each with one known fault.
var planted = []struct {
	name  string
	class class.Class
	fault func(*program, *rand.Rand)
	cpu   bool
}{
	{"one worker decodes images", class.DataLoading, func(p *program, r *rand.Rand) { p.load, p.workers = 1+r.Float64(), 2 }, false},
	{"the main process decodes images", class.DataLoading, func(p *program, r *rand.Rand) { p.load, p.workers = 0.3+0.5*r.Float64(), 0 }, false},
	{"as many workers as cores are too few", class.DataLoading, func(p *program, r *rand.Rand) { p.load, p.workers = 4+3*r.Float64(), 8 }, false},
	{"a hard disk", class.SlowDisk, func(p *program, r *rand.Rand) { p.disk, p.bytes, p.workers = 40<<20, (40+40*r.Float64())*(1<<20), 2 }, false},
	{"a hard disk without a GPU", class.SlowDisk, func(p *program, r *rand.Rand) { p.disk, p.bytes = 40<<20, (8+20*r.Float64())*(1<<20) }, true},
	{"a bucket far away", class.RemoteRead, func(p *program, r *rand.Rand) { p.net, p.bytes, p.workers = 20<<20, (20+30*r.Float64())*(1<<20), 2 }, false},
	{"many small files", class.SmallReads, func(p *program, r *rand.Rand) {
		p.readCalls, p.bytes, p.load, p.workers = 10_000+10_000*r.Float64(), 8<<20, 0.8, 0
	}, false},
	{"a batch of four", class.SmallBatch, func(p *program, r *rand.Rand) {
		p.compute, p.launch, p.load, p.bytes, p.gpuMemory = 0.010+0.010*r.Float64(), 0.03, 0.02, 1<<10, 0.08
		p.power = 0.3
	}, false},
	{"saves every minute", class.Checkpointing, func(p *program, r *rand.Rand) {
		p.every, p.saveTime, p.saveBytes = 20+15*r.Float64(), 8+6*r.Float64(), 4<<30
	}, false},
	{"saves every 20 s on processors", class.Checkpointing, func(p *program, r *rand.Rand) {
		p.every, p.saveTime, p.saveBytes = 20, 8+4*r.Float64(), 1<<30
	}, true},
	{"evaluates again and again", class.Evaluation, func(p *program, r *rand.Rand) {
		p.evalEvery, p.evalTime, p.talks = 25, 10+5*r.Float64(), true
	}, false},
	{"evaluates on processors", class.Evaluation, func(p *program, r *rand.Rand) {
		p.evalEvery, p.evalTime, p.talks = 25, 10+5*r.Float64(), r.IntN(2) == 0
	}, true},
	{"flushes each line", class.Logging, func(p *program, r *rand.Rand) { p.writes, p.logs = 2000+500*r.Float64(), 0.08 }, true},
	{"too many threads", class.Oversubscription, func(p *program, r *rand.Rand) { p.threads, p.queue = 128+100*r.Float64(), 40 }, true},
	{"a list that keeps all losses", class.Leak, func(p *program, r *rand.Rand) { p.leak = (15 + 10*r.Float64()) * (1 << 20) }, false},
	{"a data set larger than memory", class.MemoryPressure, func(p *program, r *rand.Rand) {
		p.faults, p.full, p.latency = 200+300*r.Float64(), 0.93, 0.4
	}, true},
	{"a download at each begin", class.SetUp, func(p *program, r *rand.Rand) { p.setUp, p.setUpCores = 55+15*r.Float64(), 0.2 }, false},
	{"waits at the end", class.IdleAfter, func(p *program, r *rand.Rand) { p.after = 45 + 10*r.Float64() }, false},
	{"waits at the end on processors", class.IdleAfter, func(p *program, r *rand.Rand) { p.after = 45 + 10*r.Float64() }, true},
	{"sleeps in the loop", class.Blocked, func(p *program, r *rand.Rand) { p.latency = 0.2 + 0.3*r.Float64() }, true},
	{"a slow machine of four", class.Straggler, func(p *program, r *rand.Rand) { p.nodes, p.slow, p.gpus = 4, 5+3*r.Float64(), 2 }, false},
	{"one GPU of four", class.UnusedGPU, func(p *program, r *rand.Rand) { p.gpus, p.idleGPUs = 4, 1+r.IntN(3) }, false},
	{"a slow network between machines", class.Communication, func(p *program, r *rand.Rand) {
		p.nodes, p.gradients, p.link = 4, 200<<20, (300+300*r.Float64())*(1<<20)
	}, false},
	{"a small model on a large GPU", class.OversizedGPU, func(p *program, r *rand.Rand) {
		p.compute, p.launch, p.load, p.gpuMemory, p.latency, p.workers = 0.01, 0.02, 0.02, 0.1, 0.02+0.01*r.Float64(), 1
	}, false},
	{"one thread on eight cores", class.OversizedCPU, func(p *program, _ *rand.Rand) { p.useCores = 1 }, true},
}

// plant returns a program with its fault.
func plant(n int, rng *rand.Rand) program {
	p := healthy()
	if planted[n].cpu {
		p = onCPU()
	}
	planted[n].fault(&p, rng)
	return p
}

func first(r diagnose.Report) class.Class {
	if len(r.Causes) == 0 {
		return ""
	}
	return r.Causes[0].Class
}

func names(r diagnose.Report) (list []class.Class) {
	for _, c := range r.Causes {
		list = append(list, c.Class)
	}
	return list
}

// Of planted faults 90 % are found in 120 s, and 85 % are named as the first cause, in each class and in total.
func TestDiagnose_FindsPlantedFaults(t *testing.T) {
	runs := lane.Pick(20, 500)
	found, right, all := 0, 0, 0
	for _, seconds := range []float64{120, 300, 1500} {
		for n, x := range planted {
			ownFound, ownRight := 0, 0
			var missed []string
			for seed := range runs {
				rng := rand.New(rand.NewPCG(uint64(seed), uint64(n)))
				p := plant(n, rng)
				if p.setUp > 20 && seconds > 200 { // a set-up's share depends on the whole length
					p.setUp *= seconds / 120
				}
				if p.after > 0 {
					p.after *= seconds / 120
				}
				r := diagnose.Diagnose(p.measured(rng, seconds))
				if slices.Contains(names(r), x.class) {
					ownFound++
				}
				if first(r) == x.class {
					ownRight++
				} else {
					missed = append(missed, fmt.Sprint(names(r)))
				}
			}
			if 100*ownFound < 90*runs || 100*ownRight < 85*runs {
				t.Errorf("%s (%s) in %.0f s: found %d, first %d of %d; instead %v", x.name, x.class, seconds, ownFound, ownRight, runs,
					missed[:min(3, len(missed))])
			}
			found, right, all = found+ownFound, right+ownRight, all+runs
		}
	}
	t.Logf("of %d runs with a planted fault %.1f %% are found, and the first cause is right in %.1f %%", all,
		100*float64(found)/float64(all), 100*float64(right)/float64(all))
}

// Programs that use their machines well get no cause.
func TestDiagnose_NamesNoCauseForHealthyPrograms(t *testing.T) {
	for name, make := range map[string]func(*rand.Rand) program{
		"GPU": func(*rand.Rand) program { return healthy() },
		"GPU, saves seldom": func(*rand.Rand) program {
			p := healthy()
			p.every, p.saveTime, p.saveBytes = 200, 3, 2<<30
			return p
		},
		"GPU, 80 % used": func(r *rand.Rand) program {
			p := healthy()
			p.load, p.workers = 0.2, 0
			p.load = 0.2 * (0.2 + 0.05*r.Float64())
			return p
		},
		"processors": func(*rand.Rand) program { return onCPU() },
		"four machines": func(*rand.Rand) program {
			p := healthy()
			p.nodes, p.gpus, p.gradients, p.link = 4, 2, 100<<20, 12<<30
			return p
		},
		"reports no steps": func(*rand.Rand) program { p := healthy(); p.noSteps = true; return p },
		"eight GPUs, many workers": func(*rand.Rand) program {
			p := healthy()
			p.gpus, p.cores, p.workers, p.load = 8, 96, 64, 8
			return p
		},
	} {
		for seed := range lane.Pick(50, 1000) {
			rng := rand.New(rand.NewPCG(uint64(seed), 77))
			for _, seconds := range []float64{40, 120, 900} {
				if r := diagnose.Diagnose(make(rng).measured(rng, seconds)); len(r.Causes) > 0 {
					t.Fatalf("%s, %.0f s, seed %d: %+v", name, seconds, seed, r.Causes)
				}
			}
		}
	}
}

// With a short run, one sample or none at all, no cause is named, and the reason is given.
func TestDiagnose_ExplainsMissingCauses(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	whole := plant(0, rng).measured(rng, 200)
	for n := range 3 {
		in := whole
		in.Nodes = []diagnose.Node{{Head: whole.Nodes[0].Head, Buckets: whole.Nodes[0].Buckets[5 : 5+n]}}
		if r := diagnose.Diagnose(in); len(r.Causes) > 0 || r.Note == "" {
			t.Errorf("of %d buckets: %+v", n, r)
		}
	}
	if r := diagnose.Diagnose(diagnose.Input{Job: "x"}); len(r.Causes) > 0 || r.Note == "" || r.Causes == nil {
		t.Errorf("of nothing: %+v", r)
	}
	if r := diagnose.Diagnose(diagnose.Input{Live: true}); !strings.Contains(r.Note, "yet") || strings.Contains(r.Note, "old job") {
		t.Errorf("of a job that has just started: %q", r.Note)
	}
	in := whole
	in.Nodes = []diagnose.Node{{Buckets: make([]telemetry.Bucket, 12)}}
	for i := range in.Nodes[0].Buckets {
		in.Nodes[0].Buckets[i] = telemetry.Bucket{Start: begin + int64(i)*10, Width: 10, Covered: 10}
	}
	if r := diagnose.Diagnose(in); len(r.Causes) > 0 || r.Note == "" {
		t.Errorf("of a machine that tells nothing: %+v", r)
	}
}

// The phases of a program that was measured without a gap take the measured time: the buckets at both ends are wider.
func TestDiagnose_PhasesTakeTheMeasuredTime(t *testing.T) {
	t.Parallel()
	for seconds := 1; seconds <= 65; seconds++ {
		for late := range telemetry.Least { // seconds of the first bucket before the program
			var list []telemetry.Bucket
			for at := late; at < late+seconds; {
				end := min(late+seconds, at-at%telemetry.Least+telemetry.Least)
				b := telemetry.Bucket{Start: 1000 + int64(at-at%telemetry.Least), Width: telemetry.Least, Covered: float64(end - at)}
				b.Set(telemetry.TaskCPU, 1)
				list, at = append(list, b), end
			}
			r := diagnose.Diagnose(diagnose.Input{Nodes: []diagnose.Node{{Buckets: list}}})
			if p := r.Phases; p.SetUp+p.Work+p.After != float64(seconds) || r.Measured != float64(seconds) {
				t.Fatalf("%d s from second %d of a bucket: measured %v, phases %+v", seconds, late, r.Measured, p)
			}
		}
	}
}

// Whatever is missing in a series, whatever its order, and however odd its values, nothing panics, and every number is
// valid. Most damaged series have the same first cause as the undamaged one.
func TestDiagnose_OfTornSeries(t *testing.T) {
	same, all := 0, 0
	for n, x := range planted {
		for seed := range lane.Pick(10, 200) {
			rng := rand.New(rand.NewPCG(uint64(seed), uint64(n)+1000))
			in := plant(n, rng).measured(rng, 200)
			for i := range in.Nodes {
				list := in.Nodes[i].Buckets
				rng.Shuffle(len(list), func(a, b int) { list[a], list[b] = list[b], list[a] })
				in.Nodes[i].Buckets = list[:len(list)*4/5]
			}
			r := diagnose.Diagnose(in)
			if all++; first(r) == x.class {
				same++
			}
			for _, b := range in.Nodes[0].Buckets[:3] {
				for m := range telemetry.Metrics {
					if len(b.V[m]) > 0 {
						b.V[m][0] = []telemetry.Value{telemetry.Unknown, telemetry.Exactly(0), telemetry.Exactly(m.Kind().Most)}[rng.IntN(3)]
					}
				}
			}
			in.Nodes[0].Head = telemetry.Head{}
			for _, c := range diagnose.Diagnose(in).Causes {
				if s := c.Share; s != nil && !(s.Low >= 0 && s.Low <= s.Value && s.Value <= s.High && s.High < 1) {
					t.Fatalf("%s, seed %d: %+v", x.name, seed, c)
				}
			}
		}
	}
	if 100*same < 75*all {
		t.Errorf("of %d torn series %d say what whole ones do", all, same)
	}
}

// A saving is a share of the job's hourly cost: it is in dollars only if that cost is known, and grows with it.
func TestDiagnose_InventsNoMoney(t *testing.T) {
	for n, x := range planted {
		rng := rand.New(rand.NewPCG(3, uint64(n)))
		in := plant(n, rng).measured(rng, 300)
		for _, c := range diagnose.Diagnose(in).Causes {
			if c.SavingUSD != nil || c.Low != nil || c.High != nil {
				t.Errorf("%s: the job's price is unknown, and a saving is stated: %+v", x.name, c)
			}
		}
		in.Account.HourlyUSD = new(12.5)
		for _, c := range diagnose.Diagnose(in).Causes {
			if (c.Share == nil) != (c.SavingUSD == nil) {
				t.Errorf("%s: %+v", x.name, c)
			}
			if c.Share != nil && (math.Abs(*c.SavingUSD-12.5*c.Share.Value) > 1e-9 || *c.Low > *c.SavingUSD || *c.High < *c.SavingUSD) {
				t.Errorf("%s: %+v", x.name, c)
			}
		}
	}
}

// Each class has a change in the terms of each framework, an effort and a risk.
func TestClasses_SayWhatToChange(t *testing.T) {
	for _, f := range []class.Framework{"", class.PyTorch, class.Lightning, class.HuggingFace, class.TensorFlow} {
		for _, c := range class.All() {
			if change, effort, risk := class.Words(c, f); change == "" || effort == "" || risk == "" {
				t.Errorf("%s with %q: %q, %q, %q", c, f, change, effort, risk)
			}
		}
	}
}
