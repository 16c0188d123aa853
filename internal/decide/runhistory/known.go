package runhistory

import (
	"fmt"
	"math"
	"time"

	"scrimp/internal/job/spec"
)

// Profile returns the name of the short run that scrimp profile makes of the named job. Names have at most 40
// characters.
func Profile(name string) string { return name[:min(len(name), 40-len(suffix))] + suffix }

const suffix = "-profile"

// Measures reports whether the run is a run of the named job or a profile of it.
func (r Run) Measures(job string) bool { return r.Name == job || r.Name == Profile(job) }

// Known is the estimate of a job's next run from its measured runs.
type Known struct {
	Runs   int           `json:"runs"`
	Work   time.Duration `json:"work_ns"` // total work on a machine of speed 1, market time
	Steps  int64         `json:"steps"`   // 0 if the job reports none
	Spread float64       `json:"spread"`  // half the range that holds four of five runs, as a fraction
	Last   time.Time     `json:"last"`    // when the newest run finished, market time
}

// newest is the number of runs that count. Older runs often had another program or machine.
const newest = 5

// The least spread of a pace, and the spread assumed of a single run, which shows none itself, as fractions.
const (
	leastSpread = 0.04
	usualSpread = 0.10
)

// Next estimates a job's next run from the runs, newest first: the median of the newest five with the same name and
// program, and the same environment too if the job does not state its steps. It returns false if no run matches.
func Next(runs []Run, j spec.Job) (Known, bool) {
	var took []float64 // seconds
	var k Known
	inner := 0.0
	for _, r := range runs {
		if len(took) == newest {
			break
		}
		if !r.Measures(j.Name) || r.Program != Program(j) {
			continue
		}
		seconds, steps, ok := r.next(j)
		if !ok {
			continue
		}
		took = append(took, r.onLeast(seconds, j))
		if r.Spread != nil && inner == 0 {
			inner = 1.28 * *r.Spread
		}
		if k.Runs++; k.Runs == 1 {
			k.Last, k.Steps = r.Finished, steps
		}
	}
	if k.Runs == 0 {
		return k, false
	}
	middle := median(took)
	k.Spread = max(leastSpread, usualSpread, inner)
	if k.Runs > 1 {
		k.Spread = max(leastSpread, max(took[k.Runs-1]/middle, middle/took[0])-1)
	}
	if middle > math.MaxInt64/2e9 { // more than a century and a half in nanoseconds
		return Known{}, false
	}
	k.Work = max(time.Second, time.Duration(middle*float64(time.Second)).Round(time.Second))
	return k, true
}

// next returns the run's estimate for a job of the same program: total work in seconds at speed 1, and total steps.
func (r Run) next(j spec.Job) (seconds float64, steps int64, ok bool) {
	same := r.Env == Environment(j)
	steps = j.Work.Steps
	if steps == 0 && same && r.Total != nil {
		steps = *r.Total
	}
	switch {
	case r.StepsPerHour != nil && steps > 0:
		return float64(steps) / *r.StepsPerHour * 3600, steps, true
	case r.StepsPerHour == nil && r.WorkS != nil && same:
		return *r.WorkS, steps, true
	}
	return 0, 0, false
}

// Source describes the origin of the estimate.
func (k Known) Source() string {
	if k.Runs == 1 {
		return "by one measured run of yours, of " + k.Last.Format(time.DateOnly)
	}
	return fmt.Sprintf("by %d measured runs of yours, the newest of %s", k.Runs, k.Last.Format(time.DateOnly))
}

// Fill returns the job with unstated work and steps filled in from the estimate.
func (k Known) Fill(j spec.Job) spec.Job {
	if j.Work.Time == 0 {
		j.Work.Time = spec.Duration(k.Work)
	}
	if j.Work.Steps == 0 {
		j.Work.Steps = k.Steps
	}
	return j
}
