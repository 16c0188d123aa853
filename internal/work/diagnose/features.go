package diagnose

import (
	"cmp"
	"math"
	"slices"

	"scrimp/internal/wire/telemetry"
	"scrimp/internal/work/diagnose/series"
	"scrimp/internal/work/diagnose/trial"
)

// atWork is the use from which a GPU counts as working.
const atWork = trial.Working

// features holds what the rules examine. Stats cover the time in which the program worked, over all machines.
type features struct {
	in                   *Input
	seconds              float64 // of the machine that was measured longest
	setUp, work, after   float64 // seconds of that machine
	of                   [telemetry.Metrics]telemetry.Stat
	early, late          telemetry.Summary // before the first work, and after the last
	cores                float64           // per machine
	nodes                []worker
	gpu                  bool // the use of GPUs is known
	gpuMemory, gpuPower  float64
	stalls               stalls
	leak                 series.Leak
	steps                bool    // the program reports them
	writeSize            float64 // usual bytes of a write; large ones of a save do not count
	workSpan             [2]int64
	devices              []device
	memoryPeak, memoryOf float64
}

// worker is the activity of one machine while the program worked.
type worker struct {
	rank int
	of   telemetry.Summary
}

// device is the activity of a GPU while the program worked; NaN is unknown.
type device struct {
	node, index int
	use, power  float64 // power relative to its limit
}

// stalls describes repeated times of slow steps or idle GPUs.
type stalls struct {
	writing, other   float64 // shares of the work time, by what the machine did meanwhile
	count            int
	written          float64 // bytes per second while it wrote
	evaluates, saves bool    // its output mentions it
}

// featuresOf computes all features.
func featuresOf(in Input) features {
	f := features{in: &in, gpuMemory: math.NaN(), gpuPower: math.NaN()}
	nodes := make([]Node, 0, len(in.Nodes))
	for _, n := range in.Nodes {
		n.Buckets = slices.Clone(n.Buckets)
		slices.SortStableFunc(n.Buckets, func(a, b telemetry.Bucket) int { return cmp.Compare(a.Start, b.Start) })
		if len(n.Buckets) > 0 {
			nodes = append(nodes, n)
		}
	}
	if len(nodes) == 0 {
		return f
	}
	f.span(nodes)
	f.add(nodes)
	list := f.within(longest(nodes).Buckets)
	f.stalls, f.leak = f.stallsOf(list), series.LeakOf(list)
	if n := len(list); !in.Live && n > 0 { // its memory became free as it ended
		f.leak = series.LeakOf(list[:n-1])
	}
	f.writeSize = series.Usually(list, telemetry.TaskWriteCallBytes, 0.5) /
		max(1, series.Usually(list, telemetry.TaskWriteCalls, 0.5))
	return f
}

// longest returns the machine that was measured longest.
func longest(nodes []Node) Node {
	return slices.MaxFunc(nodes, func(a, b Node) int {
		return cmp.Compare(series.Covered(a.Buckets), series.Covered(b.Buckets))
	})
}

// working reports whether the program works in a bucket; known is false if that is unknown.
func working(b *telemetry.Bucket) (works, known bool) {
	for _, v := range b.V[telemetry.GPU] {
		if v.Known() {
			known = true
			works = works || v.Max >= atWork
		}
	}
	if v := b.Value(telemetry.TaskSteps, 0); v.Known() {
		known = true
		works = works || v.Mean > 0
	}
	return works, known
}

// span finds the first and the last work over all machines.
func (f *features) span(nodes []Node) {
	first, last := int64(math.MaxInt64), int64(math.MinInt64)
	begin, end := int64(math.MaxInt64), int64(math.MinInt64)
	anyKnown, anyGPU := false, false
	for _, n := range nodes {
		f.seconds = max(f.seconds, series.Covered(n.Buckets))
		begin, end = min(begin, n.Buckets[0].Start), max(end, n.Buckets[len(n.Buckets)-1].End())
		for i := range n.Buckets {
			b := &n.Buckets[i]
			works, known := working(b)
			anyKnown, anyGPU = anyKnown || known, anyGPU || b.Value(telemetry.GPU, 0).Known()
			// A program that has reached its first step has worked.
			if v := b.Value(telemetry.TaskSteps, 0); v.Known() {
				f.steps, first = true, min(first, b.Start)
			}
			if works {
				first, last = min(first, b.Start), max(last, b.End())
			}
		}
	}
	switch {
	case !anyKnown && f.in.Live && f.in.Account.Reports: // it has not reported its first step yet
		last = first
	case !anyKnown:
		first, last = begin, end
	case last < first && f.steps && !anyGPU: // it works on its second step
		last = end
	case last < first: // it has not worked yet, or the work is unknown
		last = first
	}
	f.workSpan = [2]int64{first, last}
	// Divide wall time, because a busy machine may lack measurements.
	from, until := series.Span(longest(nodes).Buckets)
	begun := max(from, min(until, float64(first)))
	ended := max(begun, min(until, float64(last)))
	f.setUp, f.work, f.after = begun-from, ended-begun, until-ended
}

// phase returns 0 before the first work, 1 until the last, and 2 after it.
func (f *features) phase(b *telemetry.Bucket) int {
	switch {
	case b.End() <= f.workSpan[0] || f.workSpan[0] == math.MaxInt64:
		return 0
	case b.Start >= f.workSpan[1]:
		return 2
	}
	return 1
}

// inner returns the buckets wholly within the work: the first and the last may include time before or after it, the
// first also where the program worked in it.
func (f *features) inner(list []telemetry.Bucket) []telemetry.Bucket {
	list = f.within(list)
	if len(list) > 3 {
		list = list[1:]
	}
	if len(list) > 3 && f.after > 0 {
		list = list[:len(list)-1]
	}
	return list
}

// within returns the buckets of the work.
func (f *features) within(list []telemetry.Bucket) (out []telemetry.Bucket) {
	for i := range list {
		if f.phase(&list[i]) == 1 {
			out = append(out, list[i])
		}
	}
	return out
}

// add sums the activity of each machine and each GPU.
func (f *features) add(nodes []Node) {
	var all telemetry.Summary
	memory, limit := 0.0, 0.0
	for _, n := range nodes {
		f.cores = max(f.cores, float64(n.Head.Cores))
		f.memoryOf = max(f.memoryOf, float64(n.Head.Memory))
		list := f.inner(n.Buckets)
		w := worker{rank: n.Rank}
		w.of.Add(list)
		all.Add(list)
		f.nodes = append(f.nodes, w)
		for i := range n.Buckets {
			switch b := n.Buckets[i : i+1]; f.phase(&b[0]) {
			case 0:
				f.early.Add(b)
			case 2:
				f.late.Add(b)
			}
		}
		for i, g := range n.Head.GPUs {
			d := deviceOf(list, n.Rank, i, g)
			f.devices = append(f.devices, d)
			memory, limit = memory+series.Peak(list, telemetry.GPUMemory, i), limit+float64(g.Memory)
		}
	}
	f.of = all.Of
	f.gpu = f.of[telemetry.GPU].Known() || f.early.Of[telemetry.GPU].Known()
	f.memoryPeak = max(all.Of[telemetry.TaskMemory].Peak, f.early.Of[telemetry.TaskMemory].Peak)
	if limit > 0 && f.of[telemetry.GPUMemory].Known() {
		f.gpuMemory = memory / limit
	}
	sum, n := 0.0, 0.0
	for _, d := range f.devices {
		if !math.IsNaN(d.power) {
			sum, n = sum+d.power, n+1
		}
	}
	if n > 0 {
		f.gpuPower = sum / n
	}
}

func deviceOf(list []telemetry.Bucket, rank, index int, g telemetry.Device) device {
	mean := func(m telemetry.Metric) float64 {
		sum, seconds := 0.0, 0.0
		for i := range list {
			if v := list[i].Value(m, index); v.Known() {
				sum, seconds = sum+v.Mean*list[i].Covered, seconds+list[i].Covered
			}
		}
		if seconds == 0 {
			return math.NaN()
		}
		return sum / seconds
	}
	d := device{node: rank, index: g.Index, use: mean(telemetry.GPU), power: math.NaN()}
	if g.Power > 0 {
		d.power = mean(telemetry.GPUPower) / g.Power
	}
	return d
}

// known reports whether anything that the rules examine was measured.
func (f *features) known() bool {
	return f.gpu || f.of[telemetry.CPU].Known() || f.of[telemetry.TaskCPU].Known()
}

// get returns the average of a metric, or NaN.
func (f *features) get(m telemetry.Metric) float64 {
	if s := f.of[m]; s.Known() {
		return s.Average
	}
	return math.NaN()
}

// use returns the average utilization while the program worked.
func (f *features) use() map[string]float64 {
	out := map[string]float64{}
	for m := range telemetry.Metrics {
		if s := f.of[m]; s.Known() && m != telemetry.Core {
			out[m.String()] = s.Average
		}
	}
	if !math.IsNaN(f.gpuMemory) {
		out["gpu_memory_used_ratio"] = f.gpuMemory
	}
	if f.cores > 0 && f.of[telemetry.TaskCPU].Known() {
		out["task_cpu_ratio"] = f.of[telemetry.TaskCPU].Average / f.cores
	}
	return out
}
