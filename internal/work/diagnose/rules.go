package diagnose

import (
	"fmt"
	"math"
	"strings"
	"time"

	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/size"
	"scrimp/internal/wire/telemetry"
	"scrimp/internal/work/diagnose/class"
)

// Limits of the use of a GPU: above fed it has enough to do, target is the aim of a change, and a GPU that stays below
// hungry is too large for its work.
const (
	fed    = 0.85
	target = 0.70
	hungry = 0.50
)

// Shares of the time: a smaller waste than small is not reported, and from enough on, causes that follow from others
// are not named beside them.
const (
	small   = 0.08
	enough  = 0.10
	forLong = 600 // seconds of low use that make a GPU too large
)

// rules lists the rules. A residual one applies only if no earlier rule explains the waste.
var rules = []struct {
	residual bool
	find     func(*features) (finding, bool)
}{
	{false, setUp}, {false, idleAfter}, {false, unusedGPU}, {false, straggler}, {false, communication}, {false, slowDisk},
	{false, smallReads}, {false, remoteRead}, {false, checkpointing}, {false, logging}, {false, evaluation},
	{false, oversubscription}, {false, memoryPressure}, {false, dataLoading}, {false, memoryLeak},
	{true, blocked}, {true, smallBatch}, {true, oversizedGPU}, {true, oversizedCPU}, {true, oversizedMemory},
}

// ofTelemetry applies the rules. Profiles explain some waste already.
func ofTelemetry(f *features, profiled []finding) (list []finding) {
	explained := 0.0
	for _, p := range profiled {
		explained = max(explained, p.waste.Value)
	}
	for _, r := range rules {
		if r.residual && explained >= enough {
			continue
		}
		if found, ok := r.find(f); ok {
			list = append(list, found)
			if !r.residual {
				explained = max(explained, found.waste.Value)
			}
		}
	}
	return merge(nil, list)
}

// around returns an estimate with the usual bounds of its kind of fix.
func around(value, low, high float64) Range {
	limit := func(v float64) float64 { return min(0.95, max(0, v)) }
	return Range{limit(value * low), limit(value), limit(value * high)}
}

// percent formats a share.
func percent(v float64) string { return telemetry.Percent(v) }

// span formats seconds.
func span(s float64) string {
	return draw.Span(time.Duration(min(s, 1e9) * float64(time.Second)).Round(time.Second))
}

// starved reports whether the machine waits for its work: its GPUs, or its processors if it has none. Times in which
// steps stop have causes of their own.
func (f *features) starved() bool {
	used, steps := f.get(telemetry.TaskCPU)/f.cores, 1-f.stalls.writing
	if f.gpu {
		used, steps = f.get(telemetry.GPU), 1-f.stalls.writing-f.stalls.other
	}
	aim := target
	if f.seconds < 60 { // a few figures of a busy machine may be low by chance
		aim = 0.9 * target
	}
	return used < aim*min(1, max(0.1, steps))
}

// gain returns the share of the cost saved if underused GPUs get as much work as they can take.
func (f *features) gain() Range {
	u := f.get(telemetry.GPU)
	if !f.gpu {
		b := f.waitShare()
		if math.IsNaN(b) {
			b = 1 - f.get(telemetry.TaskCPU)/max(1, f.cores)
		}
		return f.whole(around(b, 0.5, 1.05))
	}
	return f.whole(starving(u))
}

// whole converts a share of the work time to a share of all measured time.
func (f *features) whole(r Range) Range {
	if f.setUp+f.work+f.after <= 0 {
		return r
	}
	w := f.work / (f.setUp + f.work + f.after)
	return Range{r.Low * w, r.Value * w, r.High * w}
}

// used describes the machine's utilization, for evidence.
func (f *features) used() string {
	if f.gpu {
		return "GPU " + percent(f.get(telemetry.GPU)) + " used"
	}
	return fmt.Sprintf("program on %.1f of %.0f cores", f.get(telemetry.TaskCPU), f.cores)
}

func setUp(f *features) (finding, bool) {
	all := f.setUp + f.work + f.after
	if f.in.Live && f.steps && f.in.Account.Total > 0 && f.in.Account.Step > 0 { // the rest of the run counts, too
		all = f.setUp + max(f.work+f.after, f.work*float64(f.in.Account.Total)/float64(f.in.Account.Step))
	}
	share := f.setUp / max(1, all)
	if f.setUp <= 30 || share < 0.2 {
		return finding{}, false
	}
	text := fmt.Sprintf("%s until the first step, %s of the time", span(f.setUp), percent(share))
	if f.work == 0 {
		if f.setUp < 60 || f.gpu && !f.in.Live || !f.gpu && f.setUp < lateStart { // an unused GPU is another cause
			return finding{}, false
		}
		text = "no step yet after " + span(f.setUp)
	}
	if said := during(f.in.Lines, 0, f.workSpan[0]); said != "" {
		text += "; it printed " + said
	}
	if cpu := f.early.Of[telemetry.TaskCPU]; cpu.Known() {
		text += fmt.Sprintf("; %.1f cores in use meanwhile", cpu.Average)
	}
	return finding{class.SetUp, text, around(share, 0.4, 1), false}, true
}

// lateStart is how long a job may be before its first step, in seconds, where only its reports tell: a step may take
// minutes.
const lateStart = 300

// lateBegin is how long a job may have its machines before its program begins, in seconds: a machine whose agent says
// nothing for five minutes is given up, so this is less.
const lateBegin = 240

// notBegun finds a job that has had its machines for long, and whose program has not begun.
func notBegun(in *Input) (finding, bool) {
	waits := in.Account.NotBegun
	if !in.Live || waits < lateBegin {
		return finding{}, false
	}
	text := fmt.Sprintf("the job has had its machines for %s, and its program has not begun: they start, bring "+
		"files or run setup", span(waits))
	if n := len(in.Lines); n > 0 {
		text += fmt.Sprintf("; the last line of its output is %.60q", in.Lines[n-1].Text)
	}
	return finding{class.SetUp, text, around(1, 0.4, 1), false}, true
}

// slow lists words in lines that name slow startup activities.
var slow = []string{"download", "install", "compil", "extract", "untar", "unpack", "tokeniz", "preprocess", "prepar",
	"load", "cache", "warm", "build", "index"}

// during returns a line between two times that names a slow activity.
func during(lines []Line, from, until int64) string {
	for _, l := range lines {
		if l.At != 0 && (l.At < from || l.At-1 > until) {
			continue
		}
		lower := strings.ToLower(l.Text)
		for _, w := range slow {
			if strings.Contains(lower, w) {
				return fmt.Sprintf("%.60q", l.Text)
			}
		}
	}
	return ""
}

func idleAfter(f *features) (finding, bool) {
	all := f.setUp + f.work + f.after
	share := f.after / max(1, all)
	if f.work == 0 || f.after < 15 || share < enough {
		return finding{}, false
	}
	if steps := f.get(telemetry.TaskSteps); steps > 0 && f.after < 3/steps { // long steps
		return finding{}, false
	}
	text := fmt.Sprintf("no step and no work of a GPU in the last %s, %s of the time", span(f.after), percent(share))
	if a := f.in.Account; a.Total > 0 && a.Step >= a.Total {
		text = fmt.Sprintf("all %d steps are done, and the program went on for %s, %s of the time", a.Total,
			span(f.after), percent(share))
	}
	if cpu := f.late.Of[telemetry.TaskCPU]; cpu.Known() {
		text += fmt.Sprintf("; %.1f cores in use meanwhile", cpu.Average)
	}
	return finding{class.IdleAfter, text, around(share, 0.8, 1), false}, true
}

func unusedGPU(f *features) (finding, bool) {
	unused, worked := 0, 0
	for _, d := range f.devices {
		switch {
		case d.use < atWork:
			unused++
		case d.use >= 0.15:
			worked++
		}
	}
	n := float64(len(f.devices))
	switch {
	case unused > 0 && worked > 0:
		return finding{class.UnusedGPU, fmt.Sprintf("%d of %d GPUs ran nothing while the others worked", unused,
			len(f.devices)),
			f.whole(around(float64(unused)/n, 0.8, 1)), false}, true
	case f.gpu && f.work > 0 && f.get(telemetry.GPU) < atWork,
		f.gpu && f.work == 0 && (!f.in.Live || f.setUp >= forLong):
		return finding{class.UnusedGPU, fmt.Sprintf("the GPU ran nothing in %s, while the program used %.1f cores",
			span(f.seconds), max(f.early.Of[telemetry.TaskCPU].Average, f.of[telemetry.TaskCPU].Average)),
			Range{0.5, 0.8, 0.95}, false}, true
	}
	return finding{}, false
}

// spread is the variation of a quantity among GPUs.
type spread struct {
	low, high, mean float64
	least, most     device
}

// apart compares the working GPUs.
func apart(list []device, by func(device) float64) (s spread, ok bool) {
	s.low = math.Inf(1)
	sum, n := 0.0, 0.0
	for _, d := range list {
		v := by(d)
		if math.IsNaN(v) || d.use < atWork {
			continue
		}
		if v < s.low {
			s.low, s.least = v, d
		}
		if v > s.high {
			s.high, s.most = v, d
		}
		sum, n = sum+v, n+1
	}
	s.mean = sum / n
	return s, n >= 2 && (s.high-s.low)/s.high >= 0.3
}

// straggler looks for machines and GPUs that the others wait for. A GPU that waits in a collective is fully used and
// draws little power. The slow one is used less if it waits for its data, or draws more if it computes longer.
func straggler(f *features) (finding, bool) {
	if s, ok := apart(f.devices, func(d device) float64 { return d.use }); ok {
		return finding{class.Straggler,
			fmt.Sprintf("GPU %d of node %d is %s used and GPU %d of node %d %s: the others wait for it",
				s.least.index, s.least.node, percent(s.low), s.most.index, s.most.node, percent(s.high)),
			f.whole(around(1-s.low/fed, 0.5, 1.1)), false}, true
	}
	if s, ok := apart(f.devices, func(d device) float64 { return d.power }); ok {
		return finding{class.Straggler,
			fmt.Sprintf("GPU %d of node %d draws %s of its power and GPU %d of node %d %s: the others "+
				"wait for it", s.most.index, s.most.node, percent(s.high), s.least.index, s.least.node, percent(s.low)),
			f.whole(around(1-s.mean/s.high, 0.5, 1.3)), false}, true
	}
	if f.gpu || len(f.nodes) < 2 {
		return finding{}, false
	}
	for _, by := range []struct {
		text string
		busy func(worker) float64
	}{
		{"machines do not do the same: the busiest uses %.1f cores, the least %.1f",
			func(w worker) float64 { return w.of.Of[telemetry.TaskCPU].Average }},
		{"machines do not do the same: of a main thread's own time, %.2f is work on the busiest, and %.2f on the least",
			worker.busy}, // processors that others fill hide who waits for whom
	} {
		least, most, all := math.Inf(1), 0.0, 0.0
		for _, w := range f.nodes {
			v := by.busy(w)
			least, most, all = min(least, v), max(most, v), all+v
		}
		if most >= 0.3 && (most-least)/most >= 0.35 {
			waste := around(1-all/float64(len(f.nodes))/most, 0.5, 1.3)
			return finding{class.Straggler, fmt.Sprintf(by.text, most, least), f.whole(waste), false}, true
		}
	}
	return finding{}, false
}

// busy returns the share of the main thread's own time in which it does not wait; NaN if unknown.
func (w worker) busy() float64 {
	blocked, main := w.of.Of[telemetry.TaskMainBlocked], w.of.Of[telemetry.TaskMain]
	if !blocked.Known() || !main.Known() || main.Average <= 0 {
		return math.NaN()
	}
	runs := min(1-blocked.Average, main.Average)
	return runs / (blocked.Average + runs)
}

func communication(f *features) (finding, bool) {
	in, out := f.get(telemetry.NetReceive), f.get(telemetry.NetTransmit)
	const much = 20 << 20
	if len(f.nodes) < 2 || !(in >= much && out >= much) || in > 4*out || out > 4*in {
		return finding{}, false
	}
	// Kernels that wait for other ranks keep a GPU at 100 % with little power.
	idle := 1 - f.get(telemetry.GPU)
	if _, ok := straggler(f); ok { // the wait for a slow rank is no wait for the network
		return finding{}, false
	}
	if !math.IsNaN(f.gpuPower) {
		idle = max(idle, 1-f.gpuPower/0.8)
	}
	if !(idle >= 0.26) {
		return finding{}, false
	}
	return finding{class.Communication, fmt.Sprintf("%s; each of %d machines sends %s and receives %s a second", f.used(),
		len(f.nodes), size.About(out), size.About(in)), f.whole(around(idle, 0.4, 1.1)), false}, true
}

func memoryLeak(f *features) (finding, bool) {
	if !f.leak.Steady {
		return finding{}, false
	}
	text := fmt.Sprintf("the program's memory grows by %s an hour without end", size.About(f.leak.PerHour))
	if left := f.memoryOf - f.memoryPeak; f.memoryOf > 0 && left > 0 {
		text += ", and fills the machine in " + span(left/f.leak.PerHour*3600)
	}
	return finding{class: class.Leak, evidence: text, unpriced: true}, true
}

func memoryPressure(f *features) (finding, bool) {
	faults := f.get(telemetry.TaskFaults)
	full := f.get(telemetry.Memory) / max(1, f.memoryOf)
	if !(faults >= 50) || !(full >= 0.85) {
		return finding{}, false
	}
	return finding{class.MemoryPressure, fmt.Sprintf("%s of the memory is in use, and the program waits for %.0f pages a "+
		"second from a disk", percent(full), faults), f.gain(), false}, true
}
