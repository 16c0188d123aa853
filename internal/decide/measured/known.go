package measured

import (
	"fmt"
	"math"
	"slices"
	"time"

	"scrimp/internal/job/spec"
)

// Profile is what a short run is called that scrimp profile makes of a job of
// that name. Names have at most 40 letters.
func Profile(name string) string { return name[:min(len(name), 40-len(suffix))] + suffix }

const suffix = "-profile"

// Measures reports whether the run is one of the job of that name, or a profile of it.
func (r Run) Measures(job string) bool { return r.Name == job || r.Name == Profile(job) }

// Known is what the measured runs of a job say of its next one.
type Known struct {
	Runs   int           `json:"runs"`
	Work   time.Duration `json:"work_ns"` // all of it on a machine of speed 1, market time
	Steps  int64         `json:"steps"`   // 0: it shows none
	Spread float64       `json:"spread"`  // half the range that holds four of five, as a share
	Last   time.Time     `json:"last"`    // when the newest was over, market
}

// newest is how many runs count: what is older was another program, or another machine.
const newest = 5

// The least and the usual share by which a run differs from the one before: one
// run alone says nothing of that.
const (
	leastSpread = 0.04
	usualSpread = 0.10
)

// Next is what the runs, newest first, say of a job's next run: the median of the
// newest five that are alike in name and program, and in environment too where
// its steps are not stated. It is false where none is alike.
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
		took = append(took, seconds)
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
	slices.Sort(took)
	middle := (took[(k.Runs-1)/2] + took[k.Runs/2]) / 2
	k.Spread = max(leastSpread, usualSpread, inner)
	if k.Runs > 1 {
		k.Spread = max(leastSpread, max(took[k.Runs-1]/middle, middle/took[0])-1)
	}
	if middle > math.MaxInt64/2e9 { // more than a century and a half
		return Known{}, false
	}
	k.Work = max(time.Second, time.Duration(middle*float64(time.Second)).Round(time.Second))
	return k, true
}

// next is what the run says of a job of the same program: all its work in seconds on speed 1, and its steps.
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

// Source says from where that is known.
func (k Known) Source() string {
	if k.Runs == 1 {
		return "by one measured run of yours, of " + k.Last.Format(time.DateOnly)
	}
	return fmt.Sprintf("by %d measured runs of yours, the newest of %s", k.Runs, k.Last.Format(time.DateOnly))
}

// Fill is the job with what is known of it. What it states stays.
func (k Known) Fill(j spec.Job) spec.Job {
	if j.Work.Time == 0 {
		j.Work.Time = spec.Duration(k.Work)
	}
	if j.Work.Steps == 0 {
		j.Work.Steps = k.Steps
	}
	return j
}
