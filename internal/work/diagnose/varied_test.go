package diagnose_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"scrimp/internal/test/lane"
	"scrimp/internal/work/diagnose"
	"scrimp/internal/work/diagnose/class"
)

// between returns a number of a range whose logarithm is uniform.
func between(r *rand.Rand, low, high float64) float64 {
	return low * math.Pow(high/low, r.Float64())
}

func one[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// varied returns a healthy program with GPUs: each has its own machine, pace, batch, habits and noise.
func varied(r *rand.Rand) program {
	p := program{nodes: 1, gpus: one(r, 1, 1, 2, 4, 8), useCores: 1}
	p.cores = p.gpus * one(r, 4, 8, 12, 24)
	p.compute = between(r, 0.03, 2)
	p.launch = p.compute * (0.1 + 0.5*r.Float64())
	p.logs, p.writes = p.compute*0.005*r.Float64(), p.compute*5*r.Float64()
	p.workers = max(2, p.cores/2+r.IntN(p.cores/2))
	p.load = float64(p.workers) * p.compute * (0.05 + 0.6*r.Float64())
	p.bytes = p.compute * between(r, 1<<20, 200<<20)
	p.readCalls = 1 + p.bytes/between(r, 32<<10, 1<<20)
	p.setUp, p.setUpCores = 5+15*r.Float64(), 0.3+2*r.Float64()
	p.gpuMemory, p.full = 0.3+0.65*r.Float64(), 0.1+0.65*r.Float64()
	p.threads = float64(20 + p.workers*one(r, 1, 4))
	p.spin, p.noise, p.power = r.Float64(), 0.3+1.5*r.Float64(), 0.6+0.35*r.Float64()
	p.talks, p.noSteps = r.IntN(2) == 0, r.IntN(4) == 0
	if r.IntN(2) == 0 { // saves at a usual rate
		p.every, p.saveTime = between(r, 60, 600), 0
		p.saveTime = p.every * 0.03 * r.Float64()
		p.saveBytes = p.saveTime * between(r, 50<<20, 2<<30)
	}
	if r.IntN(3) == 0 { // evaluates briefly
		p.evalEvery = between(r, 60, 300)
		p.evalTime = p.evalEvery * 0.04 * r.Float64()
	}
	if r.IntN(3) == 0 { // fills a cache at first
		p.leak, p.fills = between(r, 10<<20, 200<<20), 20+30*r.Float64()
	}
	if r.IntN(3) == 0 { // other programs on the machine
		p.others = float64(p.cores) * 0.3 * r.Float64()
	}
	p.uneven = 0.08 * r.Float64()
	switch hidden := p.bytes / (float64(p.workers) * p.compute * (0.1 + 0.15*r.Float64())); r.IntN(4) { // workers hide it
	case 0:
		p.disk = hidden
	case 1:
		p.net = hidden
	}
	return p
}

// variedOnCPU returns a healthy program without GPUs.
func variedOnCPU(r *rand.Rand) program {
	p := varied(r)
	p.gpus, p.cores, p.workers, p.launch, p.spin = 0, one(r, 2, 4, 8, 16, 32), 0, 0, 0
	p.useCores = float64(p.cores) * (0.85 + 0.15*r.Float64())
	p.load, p.disk, p.net, p.bytes = p.compute*0.05*r.Float64(), 0, 0, p.bytes/10
	p.readCalls, p.threads = 1+p.readCalls/10, float64(2*p.cores)
	return p
}

// several puts a program on several machines whose network is fast.
func several(p *program, r *rand.Rand) {
	p.nodes, p.power = one(r, 2, 4, 8), 0.7+0.2*r.Float64()
	p.gradients = between(r, 20<<20, 2<<30)
	p.link = p.gradients / (p.compute * (0.02 + 0.08*r.Float64()))
}

// wastes draws the share of the time that a fault takes.
func wastes(r *rand.Rand) float64 { return 0.35 + 0.45*r.Float64() }

// slowed returns how much longer a step is that loses a share of its time.
func slowed(share float64) float64 { return 1 / (1 - share) }

// variants lists faults of the classes that studies of poorly used GPUs name. Each applies to any healthy program.
var variants = []struct {
	group, name string
	class       class.Class
	cpu         bool
	fault       func(*program, *rand.Rand)
	fix         func(*program) // nil: the change takes other hardware, or costs no time
}{
	{"data", "no workers", class.DataLoading, false, func(p *program, r *rand.Rand) {
		p.quiet()
		p.workers, p.load = 0, p.compute*(slowed(wastes(r))-1)
	}, func(p *program) { p.workers = p.cores - 1 }},
	{"data", "one or two workers decode in Python", class.DataLoading, false, func(p *program, r *rand.Rand) {
		p.quiet()
		p.workers = 1 + r.IntN(2)
		p.load = float64(p.workers) * p.compute * slowed(wastes(r))
	}, func(p *program) { p.workers = p.cores - 1 }},
	{"data", "converts formats in each step", class.DataLoading, false, func(p *program, r *rand.Rand) {
		p.quiet()
		p.load = float64(p.workers) * p.compute * slowed(wastes(r))
	}, func(p *program) { p.load = float64(p.workers) * p.compute * 0.3 }},
	{"data", "tiny files", class.SmallReads, false, func(p *program, r *rand.Rand) {
		p.quiet()
		p.workers, p.load = 0, p.compute*(slowed(wastes(r))-1)
		p.readCalls = p.load * (0.4 + 0.5*r.Float64()) / 30e-6
		p.bytes = p.readCalls * between(r, 100, 8<<10)
	}, func(p *program) { p.load, p.readCalls = max(0, p.load-p.readCalls*30e-6), 1 }},
	{"data", "one worker decodes, on processors", class.DataLoading, true, func(p *program, r *rand.Rand) {
		p.machine(one(r, 4, 6, 8))
		p.workers = 1
		p.useCores = float64(p.cores - 1)
		p.load = p.compute * slowed(wastes(r))
	}, func(p *program) { p.load = 0.5 * p.compute }},
	{"data", "tiny files, on processors", class.SmallReads, true, func(p *program, r *rand.Rand) {
		p.load = p.compute * (slowed(wastes(r)) - 1)
		p.readCalls = p.load * (0.6 + 0.3*r.Float64()) / 30e-6
		p.bytes = p.readCalls * between(r, 100, 8<<10)
	}, func(p *program) { p.load, p.readCalls = max(0, p.load-p.readCalls*30e-6), 1 }},
	{"data", "remote reads", class.RemoteRead, false, func(p *program, r *rand.Rand) {
		p.quiet()
		p.workers = one(r, 0, 1, 2, 4)
		p.load, p.bytes = float64(max(1, p.workers))*p.compute*0.05, max(p.bytes, p.compute*(4<<20))
		p.net = p.bytes / (float64(max(1, p.workers)) * p.compute * (slowed(wastes(r)) - 0.5*float64(1-min(1, p.workers))))
	}, func(p *program) { p.net = 0 }},
	{"data", "a slow disk", class.SlowDisk, false, func(p *program, r *rand.Rand) {
		p.quiet()
		p.workers = one(r, 0, 1, 2, 4)
		p.load, p.bytes = float64(max(1, p.workers))*p.compute*0.05, max(p.bytes, p.compute*(4<<20))
		p.disk = p.bytes / (float64(max(1, p.workers)) * p.compute * (slowed(wastes(r)) - 0.5*float64(1-min(1, p.workers))))
	}, func(p *program) { p.disk = 0 }},
	{"model", "a tiny batch", class.SmallBatch, false, func(p *program, r *rand.Rand) {
		p.small(r)
	}, func(p *program) { p.launch = p.compute * 0.5 }},
	{"code", "saves too often", class.Checkpointing, false, func(p *program, r *rand.Rand) {
		p.every = 15 + 20*r.Float64()
		p.saveTime = p.every * (0.2 + 0.4*r.Float64())
		p.saveBytes = p.saveTime * between(r, 50<<20, 2<<30)
	}, func(p *program) { p.every *= 10 }},
	{"code", "saves too often on processors", class.Checkpointing, true, func(p *program, r *rand.Rand) {
		p.every = 15 + 20*r.Float64()
		p.saveTime = p.every * (0.2 + 0.4*r.Float64())
		p.saveBytes = p.saveTime * between(r, 20<<20, 1<<30)
	}, func(p *program) { p.every *= 10 }},
	{"code", "evaluates too often", class.Evaluation, false, func(p *program, r *rand.Rand) {
		p.evalEvery, p.talks = 15+20*r.Float64(), true
		p.evalTime = p.evalEvery * (0.25 + 0.4*r.Float64())
	}, func(p *program) { p.evalEvery *= 10 }},
	{"code", "evaluates too often on processors", class.Evaluation, true, func(p *program, r *rand.Rand) {
		p.evalEvery, p.noSteps = 15+20*r.Float64(), false // processors are as busy, so only steps show it
		p.evalTime = p.evalEvery * (0.25 + 0.4*r.Float64())
	}, func(p *program) { p.evalEvery *= 10 }},
	{"code", "flushes each line", class.Logging, true, func(p *program, r *rand.Rand) {
		p.logs = p.compute * (slowed(wastes(r)*0.7) - 1)
		p.writes = p.logs / (30e-6 + 20e-6*r.Float64())
	}, func(p *program) { p.logs, p.writes = 0, 1 }},
	{"code", "flushes each line, with a GPU", class.Logging, false, func(p *program, r *rand.Rand) {
		p.quiet()
		p.logs = p.compute*slowed(wastes(r)) - p.launch
		p.writes = p.logs / (30e-6 + 20e-6*r.Float64())
	}, func(p *program) { p.logs, p.writes = 0, 1 }},
	{"code", "syncs each line to a disk", class.Logging, true, func(p *program, r *rand.Rand) {
		p.sync = p.compute * (slowed(wastes(r)) - 1)
		p.writes = p.sync / between(r, 0.003, 0.05)
	}, func(p *program) { p.sync, p.writes = 0, 1 }},
	{"code", "syncs each line to a disk, with a GPU", class.Logging, false, func(p *program, r *rand.Rand) {
		p.quiet()
		p.sync = p.compute*slowed(wastes(r)) - p.launch
		p.writes = p.sync / between(r, 0.003, 0.05)
	}, func(p *program) { p.sync, p.writes = 0, 1 }},
	{"code", "unbalanced ranks", class.Straggler, false, func(p *program, r *rand.Rand) {
		p.quiet()
		several(p, r)
		p.workers, p.load = 4, 4*p.compute*0.5
		p.slow = slowed(wastes(r)) / 0.5
	}, func(p *program) { p.slow = 0 }},
	{"code", "installs packages at the start", class.SetUp, false, func(p *program, r *rand.Rand) {
		p.setUp, p.setUpCores = 45+35*r.Float64(), 0.1+0.9*r.Float64()
	}, func(p *program) { p.setUp = 8 }},
	{"code", "waits at the end", class.IdleAfter, false, func(p *program, r *rand.Rand) {
		p.after = 35 + 30*r.Float64()
	}, func(p *program) { p.after = 0 }},
	{"code", "keeps all losses", class.Leak, false, func(p *program, r *rand.Rand) {
		p.leak, p.fills = between(r, 12<<20, 80<<20), 0
	}, nil},
	{"code", "sleeps in the loop", class.Blocked, true, func(p *program, r *rand.Rand) {
		p.latency = (p.compute + p.load) * (slowed(wastes(r)) - 1)
	}, func(p *program) { p.latency = 0 }},
	{"code", "far too many threads", class.Oversubscription, true, func(p *program, r *rand.Rand) {
		p.threads = float64(p.cores) * between(r, 6, 20)
		p.queue = p.threads * (0.6 + 0.3*r.Float64())
	}, nil},
	{"resources", "too few processors for the loader", class.DataLoading, false, func(p *program, r *rand.Rand) {
		p.quiet()
		p.cores = p.gpus * 2
		p.workers = p.cores + p.cores*r.IntN(2)
		p.load = float64(p.workers) * p.compute * slowed(wastes(r))
		p.queue = float64(p.workers)
	}, nil},
	{"resources", "memory is full, with swap", class.MemoryPressure, false, func(p *program, r *rand.Rand) {
		p.quiet()
		p.workers, p.load = 0, p.compute*0.1
		p.full, p.faults = 0.9+0.09*r.Float64(), between(r, 100, 5000)
		p.latency = p.compute * slowed(wastes(r))
	}, func(p *program) { p.latency = 0 }},
	{"resources", "memory is full, on processors", class.MemoryPressure, true, func(p *program, r *rand.Rand) {
		p.full, p.faults = 0.9+0.09*r.Float64(), between(r, 100, 5000)
		p.latency = p.compute * (slowed(wastes(r)) - 1)
	}, func(p *program) { p.latency = 0 }},
	{"resources", "GPUs without work", class.UnusedGPU, false, func(p *program, r *rand.Rand) {
		p.gpus = one(r, 2, 4, 8)
		p.idleGPUs = 1 + r.IntN(p.gpus-1)
	}, nil},
	{"resources", "a GPU that the program does not use", class.UnusedGPU, false, func(p *program, _ *rand.Rand) {
		p.quiet()
		p.gpus, p.idleGPUs, p.noSteps = 1, 1, false // without steps it may still be starting
	}, nil},
	{"resources", "a slow network between machines", class.Communication, false, func(p *program, r *rand.Rand) {
		several(p, r)
		p.link = p.gradients / (p.compute * (slowed(wastes(r)) - 1))
		p.gradients = max(p.gradients, 60<<20*p.compute*3)
		p.link = p.gradients / (p.compute * (slowed(wastes(r)) - 1))
	}, func(p *program) { p.gradients /= 8 }},
	{"resources", "a large GPU for a small model", class.OversizedGPU, false, func(p *program, r *rand.Rand) {
		p.quiet()
		p.small(r)
		p.compute = p.launch * (0.4 + 0.3*r.Float64())
		p.workers, p.load, p.spin = 1, p.compute*0.1, 0.2*r.Float64()
		p.latency = p.launch / (0.35 + 0.35*r.Float64())
		p.gpuMemory = 0.05 + 0.2*r.Float64()
	}, nil},
	{"resources", "a large machine for one thread", class.OversizedCPU, true, func(p *program, r *rand.Rand) {
		p.machine(one(r, 8, 16, 32, 64))
		p.useCores = 1 + r.Float64()
	}, nil},
}

// machine puts a program on a machine of its own.
func (p *program) machine(cores int) { p.cores, p.threads, p.others = cores, float64(2*cores), 0 }

// quiet takes the program's slow source of data away, so that a fault is the only one.
func (p *program) quiet() { p.disk, p.net = 0, 0 }

// small makes the GPU's part of a step so small that starting its kernels takes longer.
func (p *program) small(r *rand.Rand) {
	p.quiet()
	p.launch = between(r, 0.005, 0.1)
	p.compute = p.launch * (1 - wastes(r))
	p.workers, p.load, p.bytes, p.readCalls = 2, p.compute*0.1, p.compute*(1<<20), 1
	p.logs, p.writes = 0, p.launch
	p.gpuMemory, p.power = 0.03+0.4*r.Float64(), 0.2+0.15*r.Float64()
}

// faulty returns a varied program with a fault.
func faulty(n int, r *rand.Rand) program {
	p := varied(r)
	if variants[n].cpu {
		p = variedOnCPU(r)
	}
	variants[n].fault(&p, r)
	return p
}

// Of faults in programs of any size, pace and habit, 90 % are found in 120 s of telemetry, and 85 % are the first cause,
// of each fault and in total.
func TestDiagnose_FindsFaultsInVariedPrograms(t *testing.T) {
	runs := lane.Pick(40, 1000)
	found, right, all := 0, 0, 0
	t.Logf("%-10s %-38s %-24s %6s %6s", "group", "fault", "cause", "found", "first")
	for n, x := range variants {
		ownFound, ownRight := 0, 0
		var instead []string
		for seed := range runs {
			rng := rand.New(rand.NewPCG(uint64(seed), uint64(n)+5000))
			p := faulty(n, rng)
			r := diagnose.Diagnose(p.measured(rng, 120))
			if slices.Contains(names(r), x.class) {
				ownFound++
			}
			if first(r) == x.class {
				ownRight++
			} else {
				instead = append(instead, fmt.Sprintf("%d:%v", seed, names(r)))
			}
		}
		t.Logf("%-10s %-38s %-24s %4d %% %4d %%", x.group, x.name, x.class, 100*ownFound/runs, 100*ownRight/runs)
		if 100*ownFound < 90*runs || 100*ownRight < 85*runs {
			t.Errorf("%s: found %d and first %d of %d; instead %v", x.name, ownFound, ownRight, runs, instead[:min(6, len(instead))])
		}
		found, right, all = found+ownFound, right+ownRight, all+runs
	}
	t.Logf("of %d programs with a fault %.1f %% are found, and the first cause is right in %.1f %%", all,
		100*float64(found)/float64(all), 100*float64(right)/float64(all))
}

// Healthy programs of any size, pace and habit get no cause.
func TestDiagnose_NamesNoCauseForVariedHealthyPrograms(t *testing.T) {
	kinds := []struct {
		name string
		make func(*rand.Rand) program
	}{
		{"GPUs", varied},
		{"processors", variedOnCPU},
		{"several machines", func(r *rand.Rand) program { p := varied(r); several(&p, r); return p }},
	}
	for i, x := range kinds {
		runs, wrong := lane.Pick(300, 5000), 0
		for seed := range runs {
			rng := rand.New(rand.NewPCG(uint64(seed), uint64(i)+6000))
			p := x.make(rng)
			seconds := one(rng, 60., 120, 300, 1200)
			if r := diagnose.Diagnose(p.measured(rng, seconds)); len(r.Causes) > 0 {
				if wrong++; wrong <= 5 {
					t.Errorf("%s, %.0f s, seed %d: %v: %s\n%+v", x.name, seconds, seed, names(r), r.Causes[0].Evidence, p)
				}
			}
		}
		t.Logf("%-20s %d healthy programs, %d with a cause", x.name, runs, wrong)
	}
}

// Half of the predicted savings of each fault's fix are within 25 % of what the fixed program then takes less.
func TestDiagnose_PredictsWhatAFixOfVariedProgramsSaves(t *testing.T) {
	const seconds = 120
	var all []float64
	for n, x := range variants {
		if x.fix == nil {
			continue
		}
		var own []float64
		for seed := range lane.Pick(40, 500) {
			rng := rand.New(rand.NewPCG(uint64(seed), uint64(n)+7000))
			p := faulty(n, rng)
			r := diagnose.Diagnose(p.measured(rng, seconds))
			fixed := p
			x.fix(&fixed)
			saved := 1 - fixed.time(p.steps(seconds))/seconds
			for _, c := range r.Causes {
				if c.Class == x.class {
					own = append(own, off(c.Share.Value, saved))
				}
			}
		}
		if len(own) == 0 {
			t.Errorf("%s has no prediction", x.name)
			continue
		}
		m := median(own)
		t.Logf("%-38s half of the predictions are within %2.0f %%", x.name, 100*m)
		if m > 0.25 {
			t.Errorf("%s: half of the predictions are more than %.0f %% off", x.name, 100*m)
		}
		all = append(all, own...)
	}
	t.Logf("over %d pairs half are within %.1f %%", len(all), 100*median(all))
}
