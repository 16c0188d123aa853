package runhistory

import (
	"maps"
	"math"
	"slices"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/plan"
	"scrimp/internal/job/spec"
	"scrimp/internal/market"
)

// had sets how many processors and accelerators the attempt had, and the speed of its offer; o is nil for an offer that
// is no longer for sale.
func (r *Run) had(a *core.Attempt, o *market.Offer) {
	if o != nil {
		r.HadCPUs, r.HadAccelerators, r.OfferSpeed = o.CPUs, o.Accelerators, max(o.Speed, 0)
		if r.OfferSpeed == 0 {
			r.OfferSpeed = 1
		}
	}
	if p := a.Portion(); p != nil {
		r.HadCPUs, r.HadAccelerators = p.CPUs, len(p.Devices)
	}
}

// units returns how many accelerators the run had, or processors for a job without accelerators.
func (r *Run) units(accelerated bool) int {
	if accelerated {
		return r.HadAccelerators
	}
	return r.HadCPUs
}

// leastTold is how much faster the work must be on the most processors than on the fewest to tell a gain from chance:
// runs of one job differ by usualSpread.
const leastTold = 1 + usualSpread

// Parallel returns the share of the job's work, by its time on the lower end of its range, that more processors (or
// accelerators) make faster, as the runs with its name and program show. Of the median times on each number u it fits
// time = alone + shared/u by least squares; then the share is shared/least / (alone + shared/least). ok is false unless
// runs had at least two numbers.
func Parallel(runs []Run, j spec.Job) (share float64, ok bool) {
	kind, count := j.Resources.GPUs()
	accelerated, least := kind != "", j.Resources.CPUs.Min
	if accelerated {
		least = max(1, count.Min)
	}
	took := map[int][]float64{} // seconds at an offer of speed 1, by number
	for i := range runs {
		r := &runs[i]
		u := r.units(accelerated)
		if !r.Measures(j.Name) || r.Program != Program(j) || u == 0 || r.OfferSpeed == 0 || r.Speed == 0 {
			continue
		}
		if seconds, _, known := r.next(j); known && len(took[u]) < newest {
			took[u] = append(took[u], seconds*r.OfferSpeed/r.Speed)
		}
	}
	if least == 0 || len(took) < 2 {
		return 0, false
	}
	numbers := slices.Sorted(maps.Keys(took))
	if median(took[numbers[0]]) < leastTold*median(took[numbers[len(numbers)-1]]) {
		return 0, true
	}
	alone, shared := line(took, numbers)
	onLeast := shared / float64(least)
	if onLeast <= 0 || alone+onLeast <= 0 {
		return 0, true
	}
	return min(1, onLeast/(max(0, alone)+onLeast)), true
}

// line fits seconds = alone + shared/u to the medians.
func line(took map[int][]float64, numbers []int) (alone, shared float64) {
	var n, sx, sy, sxx, sxy float64
	for _, u := range numbers {
		x, y := 1/float64(u), median(took[u])
		n, sx, sy = n+1, sx+x, sy+y
		sxx += float64(x * x)
		sxy += float64(x * y)
	}
	shared = (float64(n*sxy) - float64(sx*sy)) / (float64(n*sxx) - float64(sx*sx))
	return (sy - float64(shared*sx)) / n, shared
}

// WithParallel returns the job with an unstated work.parallel filled in from the runs if its resources leave a range.
func WithParallel(runs []Run, j spec.Job) spec.Job {
	if !Ranges(j) {
		return j
	}
	if share, ok := Parallel(runs, j); ok {
		share = math.Round(share*1000) / 1000
		j.Work.Parallel = &share
	}
	return j
}

// Ranges reports whether the job's resources leave a range of processors, or of accelerators, and its file does not
// state work.parallel.
func Ranges(j spec.Job) bool {
	kind, count := j.Resources.GPUs()
	if kind == "" {
		count = j.Resources.CPUs
	}
	return j.Work.Parallel == nil && count.Min > 0 && count.Max != count.Min
}

// onLeast converts the seconds of a run to the lower end of the job's range, if the share of its work that more make
// faster is known.
func (r *Run) onLeast(seconds float64, j spec.Job) float64 {
	kind, count := j.Resources.GPUs()
	least := j.Resources.CPUs.Min
	if kind != "" {
		least = max(1, count.Min)
	}
	if p := j.Work.Parallel; p != nil && r.OfferSpeed > 0 && r.Speed > 0 {
		return seconds * r.OfferSpeed / r.Speed * plan.Gain(*p, least, r.units(kind != ""))
	}
	return seconds
}
