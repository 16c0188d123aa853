package diagnose_test

import (
	"math"
	"math/rand/v2"

	"scrimp/internal/wire/telemetry"
	"scrimp/internal/work/diagnose"
	"scrimp/internal/work/diagnose/class"
)

// program is a training program on its machine, as a model of a training loop: its measurements follow from the
// duration of each part of a step. A planted fault changes such a duration, never a measurement.
type program struct {
	cores, gpus, nodes int
	// seconds of a step
	compute, launch, load, latency, logs float64
	useCores                             float64 // for computing in a step on CPUs only
	workers                              int     // loading workers; 0: the main process loads
	bytes, readCalls                     float64 // read by a step, and the number of calls for it
	disk, net                            float64 // their bytes per second; 0: everything is in the page cache
	gradients, link                      float64 // bytes that machines exchange in each step, bytes per second
	slow                                 float64 // factor of the last machine's load
	idleGPUs                             int
	writes                               float64 // calls per step
	every, saveTime, saveBytes           float64 // seconds of work between two saves
	evalEvery, evalTime                  float64
	setUp, setUpCores, after             float64 // seconds
	gpuMemory                            float64 // share
	leak                                 float64 // bytes per second
	threads, queue                       float64
	faults, full                         float64
	fills                                float64 // seconds of growth, after which the memory stays as it is; 0: leaks
	sync                                 float64 // seconds of a step in which the disk writes its lines
	others                               float64 // cores in use by other programs
	uneven                               float64 // differences of power between GPUs
	noSteps                              bool
	spin                                 float64 // share of its wait for the device that the main thread is busy
	noise                                float64 // 1: 2 to 6 % from bucket to bucket
	power                                float64 // share of its limit that a GPU draws while it computes
	talks                                bool    // its output mentions evaluations
}

// healthy keeps one GPU busy.
func healthy() program {
	return program{cores: 8, gpus: 1, nodes: 1, compute: 0.20, launch: 0.05, load: 0.5, workers: 6, bytes: 8 << 20,
		readCalls: 40, logs: 0.001, writes: 2, setUp: 12, setUpCores: 1, gpuMemory: 0.75, threads: 40, full: 0.4, useCores: 1,
		spin: 0.3, noise: 1, power: 0.85}
}

// onCPU keeps all processors busy.
func onCPU() program {
	p := healthy()
	p.gpus, p.workers, p.load, p.compute, p.launch, p.useCores, p.threads = 0, 0, 0.002, 0.1, 0, 7.9, 12
	p.bytes = 1 << 20
	return p
}

// step returns the length of a step of a machine, and the measurements during steps.
func (p *program) step(slow float64) (length float64, m map[telemetry.Metric]float64) {
	load := p.load * slow
	disk, net := 0.0, 0.0
	if p.disk > 0 {
		disk = p.bytes / p.disk
	}
	if p.net > 0 {
		net = p.bytes / p.net
	}
	fetch := load + disk + net + p.latency
	host := p.launch + p.logs + p.sync
	work := max(host, p.compute)
	if p.gpus == 0 {
		work = host + p.compute
	}
	exchange := 0.0
	if p.link > 0 {
		exchange = p.gradients / p.link
	}
	length = fetch + work + exchange
	wait := disk + net + p.latency + p.sync
	if p.workers > 0 {
		length = max(fetch/float64(p.workers), work) + exchange
		wait = length - exchange - work + p.sync
	}
	m = map[telemetry.Metric]float64{}
	main := host - p.sync
	if p.gpus == 0 {
		main = p.compute*p.useCores + p.logs
	} else {
		main += p.spin * max(0, work-host)
	}
	helpers := load
	if p.workers == 0 {
		main, helpers = main+load, 0
	}
	m[telemetry.TaskMain] = min(float64(p.cores), main/length)
	m[telemetry.TaskCPU] = min(float64(p.cores), (main+helpers)/length)
	m[telemetry.TaskMainBlocked] = min(1, (wait+0.5*exchange+(1-p.spin)*max(0, work-host)*float64(min(1, p.gpus)))/length)
	m[telemetry.TaskSystem] = min(1, (p.readCalls+p.writes)*30e-6/length) + 0.03*m[telemetry.TaskCPU]
	m[telemetry.CPU] = min(1, (m[telemetry.TaskCPU]+0.1+p.others)/float64(p.cores))
	m[telemetry.IOWait] = min(1-m[telemetry.CPU], (disk+p.sync)/length/float64(p.cores))
	m[telemetry.Idle] = 1 - m[telemetry.CPU] - m[telemetry.IOWait]
	m[telemetry.TaskReadCallBytes], m[telemetry.TaskReadCalls] = p.bytes/length, p.readCalls/length
	m[telemetry.TaskWriteCalls], m[telemetry.TaskWriteCallBytes] = p.writes/length, p.writes*80/length
	if p.sync > 0 {
		m[telemetry.TaskWrite] = p.writes * (4 << 10) / length
	}
	if p.disk > 0 {
		m[telemetry.TaskRead] = p.bytes / length
	}
	m[telemetry.NetReceive], m[telemetry.NetTransmit] = 2000, 1000
	if p.net > 0 {
		m[telemetry.NetReceive] += p.bytes / length
	}
	if p.link > 0 {
		m[telemetry.NetReceive], m[telemetry.NetTransmit] = p.gradients/length, p.gradients/length
	}
	m[telemetry.RunQueue] = max(m[telemetry.TaskCPU]+p.others, p.queue)
	m[telemetry.TaskFaults] = p.faults
	if p.gpus > 0 {
		m[telemetry.GPU] = min(1, (p.compute+exchange)/length)
		m[telemetry.GPUPower] = 700 * (0.15 + (p.power-0.15)*p.compute/length)
	}
	return length, m
}

// segment is a span with constant measurements.
type segment struct {
	length, steps float64
	stall         bool
	m             map[telemetry.Metric]float64
}

// idle returns the measurements while the program computes on the given number of cores and does nothing else.
func (p *program) idle(cores, written float64) map[telemetry.Metric]float64 {
	return map[telemetry.Metric]float64{telemetry.TaskMain: cores, telemetry.TaskCPU: cores,
		telemetry.TaskMainBlocked: max(0, 1-cores), telemetry.TaskSystem: 0.05, telemetry.CPU: (cores + 0.1) / float64(p.cores),
		telemetry.IOWait: 0, telemetry.Idle: 1 - (cores+0.1)/float64(p.cores), telemetry.NetReceive: 2000, telemetry.NetTransmit: 1000,
		telemetry.TaskWriteCallBytes: written, telemetry.TaskWriteCalls: written / (1 << 20), telemetry.RunQueue: 1}
}

// play returns the program's timeline on one machine. length is that of a step of the whole gang.
func (p *program) play(length, own float64, m map[telemetry.Metric]float64, until float64) (list []segment) {
	if length > own*1.001 && p.gpus > 0 { // it waits for the others: its GPU spins in a collective and draws little power
		share := own / length
		n := map[telemetry.Metric]float64{}
		for k, v := range m {
			n[k] = v * share
		}
		n[telemetry.GPU], n[telemetry.GPUPower] = 1, 105+(m[telemetry.GPUPower]-105)*share
		n[telemetry.TaskMainBlocked], n[telemetry.CPU], n[telemetry.Idle] = 1-share, m[telemetry.CPU], m[telemetry.Idle]
		m = n
	}
	at := 0.0
	add := func(s segment) {
		list = append(list, s)
		at += s.length
	}
	add(segment{length: p.setUp, m: p.idle(p.setUpCores, 0)})
	save, eval := p.every, p.evalEvery
	for at < until-p.after {
		span := until - p.after - at
		if p.every > 0 {
			span = min(span, save)
		}
		if p.evalEvery > 0 {
			span = min(span, eval)
		}
		add(segment{length: span, steps: span / length, m: m})
		save, eval = save-span, eval-span
		if p.every > 0 && save <= 0 {
			add(segment{length: p.saveTime, stall: true, m: p.idle(0.4, p.saveBytes/p.saveTime)})
			save = p.every
		}
		if p.evalEvery > 0 && eval <= 0 {
			busy := p.idle(float64(p.cores)*0.9, 0)
			if p.gpus > 0 {
				busy = p.idle(1, 0)
				busy[telemetry.GPU], busy[telemetry.GPUPower] = 0.12, 120
			}
			busy[telemetry.TaskReadCallBytes] = 1 << 20
			add(segment{length: p.evalTime, stall: true, m: busy})
			eval = p.evalEvery
		}
	}
	if p.after > 0 {
		add(segment{length: p.after, stall: true, m: p.idle(0.02, 0)})
	}
	return list
}

const begin = 1_700_000_000

// measured returns what the agents of the program's machines report in the given seconds, with noise.
func (p program) measured(rng *rand.Rand, seconds float64) diagnose.Input {
	in := diagnose.Input{Job: "train", Live: p.after == 0, Framework: class.PyTorch}
	slow := func(n int) float64 {
		if p.slow > 0 && n == p.nodes-1 {
			return p.slow
		}
		return 1
	}
	length := 0.0
	for n := range p.nodes {
		own, _ := p.step(slow(n))
		length = max(length, own)
	}
	for n := range p.nodes {
		own, m := p.step(slow(n))
		list := p.play(length, own, m, seconds)
		node := diagnose.Node{Rank: n, Head: telemetry.Head{Cores: p.cores, Memory: 64 << 30}}
		for g := range p.gpus {
			node.Head.GPUs = append(node.Head.GPUs, telemetry.Device{Index: g, Name: "H100", Memory: 80 << 30, Power: 700})
		}
		node.Buckets = p.buckets(rng, list, n)
		in.Nodes = append(in.Nodes, node)
	}
	if p.talks {
		for i := range 4 {
			in.Lines = append(in.Lines, diagnose.Line{At: begin + int64(i)*30, Text: "validation loss 1.23 step 40"})
		}
	}
	return in
}

// buckets cuts a timeline into spans of ten seconds.
func (p *program) buckets(rng *rand.Rand, list []segment, node int) (out []telemetry.Bucket) {
	noise := func(by float64) float64 { return 1 + p.noise*by*rng.NormFloat64() }
	at, ram, steps, stalled := 0.0, float64(4<<30), false, 0.0
	open := segment{m: map[telemetry.Metric]float64{}}
	flush := func() {
		if open.length < 1 {
			return
		}
		b := telemetry.Bucket{Start: begin + int64(len(out))*telemetry.Least, Width: telemetry.Least, Covered: min(10, open.length)}
		for m := range telemetry.Metrics {
			v, ok := open.m[m]
			switch m {
			case telemetry.GPU, telemetry.GPUPower, telemetry.GPUMemory, telemetry.GPUTemperature, telemetry.Core:
				continue
			case telemetry.TaskMemory:
				v = ram * noise(0.002)
			case telemetry.Memory:
				v = p.full * (64 << 30)
			case telemetry.TaskThreads:
				v = p.threads
			case telemetry.TaskSteps, telemetry.TaskStalled:
				if steps = steps || open.steps > 0; !steps || p.noSteps || node > 0 {
					continue
				}
				v = open.steps / open.length * noise(0.03)
				if m == telemetry.TaskStalled {
					v = stalled / open.length * noise(0.03)
				}
			default:
				if ok {
					v = v / open.length * noise(0.05)
				}
			}
			b.Set(m, max(0, min(v, m.Kind().Most)))
		}
		for g := range p.gpus {
			use, watts := open.m[telemetry.GPU]/open.length, open.m[telemetry.GPUPower]/open.length
			watts *= 1 + p.uneven*math.Sin(float64(3*g+node))
			memory := p.gpuMemory * (80 << 30)
			if g >= p.gpus-p.idleGPUs {
				use, watts, memory = 0, 70, 1<<30
			}
			b.V[telemetry.GPU] = append(b.V[telemetry.GPU], telemetry.Exactly(max(0, min(1, use*noise(0.06)))))
			b.V[telemetry.GPUPower] = append(b.V[telemetry.GPUPower], telemetry.Exactly(max(60, watts*noise(0.04))))
			b.V[telemetry.GPUMemory] = append(b.V[telemetry.GPUMemory], telemetry.Exactly(memory))
		}
		out = append(out, b)
		open, stalled = segment{m: map[telemetry.Metric]float64{}}, 0
	}
	for _, s := range list {
		for left := s.length; left > 1e-9; {
			span := min(left, telemetry.Least-open.length)
			open.length, open.steps = open.length+span, open.steps+s.steps*span/s.length
			if s.stall {
				stalled += span
			}
			for m, v := range s.m {
				open.m[m] += v * span
			}
			if p.fills == 0 || at < p.fills {
				ram += p.leak * span
			}
			left -= span
			if at += span; open.length >= telemetry.Least-1e-9 {
				flush()
			}
		}
	}
	flush()
	return out
}
