package tick

import (
	"math/bits"
	"time"
)

// Baseline names a published policy of the benchmark.
type Baseline string

// The baselines, from the dearest to the cheapest on the public traces.
const (
	Demand           Baseline = "on-demand"
	Greedy           Baseline = "greedy"             // spot or nothing, on-demand at the last moment
	UniformProgress  Baseline = "uniform-progress"   // Wu et al., "Can't Be Late", NSDI 2024
	UniformProgress2 Baseline = "uniform-progress-2" // the same without its second condition
)

// Baselines returns all baselines in table order.
func Baselines() []Baseline {
	return []Baseline{Demand, Greedy, UniformProgress, UniformProgress2}
}

// Make returns the baseline for one run of j.
func (b Baseline) Make(j Job) Policy {
	return baseline{name: b, job: j}
}

type baseline struct {
	name Baseline
	job  Job
}

// Decide follows the published rules, with now = tick · gap.
func (b baseline) Decide(v View) Kind {
	j := b.job
	late := ceil(v.Left+2*j.Overhead, j.Gap) >= j.Ticks()-v.Tick
	now, done := time.Duration(v.Tick)*j.Gap, j.Work-v.Left
	switch b.name {
	case Demand:
		return OnDemand
	case Greedy:
		switch {
		case v.Held == Spot:
			return Spot
		case late:
			return OnDemand
		case v.Available:
			return Spot
		}
		return None
	case UniformProgress, UniformProgress2:
		switch {
		case v.Held == Spot:
			return Spot
		case late:
			return OnDemand
		case v.Held == OnDemand:
			// The second condition: the move must not bring the job behind its line.
			ahead := b.name == UniformProgress2 || less(now+2*j.Overhead, j.Work, done, j.Deadline)
			if v.Available && ahead {
				return Spot
			}
			return OnDemand
		case v.Available:
			return Spot
		case less(done, j.Deadline, now, j.Work):
			return OnDemand
		}
		return None
	}
	panic("tick: no baseline is called " + string(b.name))
}

// less reports a·b < c·d, exactly; none is negative.
func less(a, b, c, d time.Duration) bool {
	h1, l1 := bits.Mul64(uint64(a), uint64(b))
	h2, l2 := bits.Mul64(uint64(c), uint64(d))
	return h1 < h2 || h1 == h2 && l1 < l2
}
