package runhistory_test

import (
	"math"
	"testing"

	"scrimp/internal/decide/runhistory"
	"scrimp/internal/job/spec"
)

// ranged is a job of cpus: 4..16, and onCPUs a run of it with that many processors that took so many seconds at an offer
// of that speed.
var ranged = spec.Job{Name: "a", Command: "x", Resources: spec.Resources{CPUs: spec.Range{Min: 4, Max: 16}}}

func onCPUs(cpus int, seconds, speed, assumed float64) runhistory.Run {
	work := seconds * speed * assumed
	return runhistory.Run{Name: "a", Program: runhistory.Program(ranged), Env: runhistory.Environment(ranged), WorkS: &work,
		HadCPUs: cpus, OfferSpeed: speed, Speed: speed * assumed}
}

// amdahl is the time of 1000 seconds on four processors.
func amdahl(parallel float64, cpus int) float64 {
	return 1000 * (1 - parallel + parallel*4/float64(cpus))
}

// Runs on several numbers of processors show the share that more make faster, whatever the speed of their offers and the
// gain that scrimp assumed when it ran them. Then the next run is expected to take what it took on four.
func TestParallel_RecoversShareFromRuns(t *testing.T) {
	for _, parallel := range []float64{0.2, 0.5, 0.9, 1} {
		for _, numbers := range [][]int{{4, 16}, {4, 8, 16}, {8, 16}, {2, 32}} {
			var runs []runhistory.Run
			for i, n := range numbers {
				runs = append(runs, onCPUs(n, amdahl(parallel, n)/float64(i+1), float64(i+1), 1+float64(i)/2))
			}
			share, ok := runhistory.Parallel(runs, ranged)
			faster := amdahl(parallel, numbers[0]) / amdahl(parallel, numbers[len(numbers)-1])
			if want := parallel; !ok || faster > 1.11 && math.Abs(share-want) > 1e-6 || faster < 1.09 && share != 0 {
				t.Errorf("%v of %v is measured as %v (%v)", want, numbers, share, ok)
			}
			k, ok := runhistory.Next(runs, runhistory.WithParallel(runs, ranged))
			if got := k.Work.Seconds(); faster > 1.11 && (!ok || math.Abs(got-1000) > 2) && numbers[0] >= 4 {
				t.Errorf("%v of %v: the next run is expected to take %v s on four, want 1000", parallel, numbers, got)
			}
		}
	}
}

func TestParallel_NeedsTwoNumbersAndADifference(t *testing.T) {
	other := onCPUs(16, 200, 1, 1)
	other.Program = "another"
	gone := onCPUs(16, 200, 1, 1)
	gone.OfferSpeed = 0
	for name, runs := range map[string][]runhistory.Run{
		"none": nil, "one number": {onCPUs(4, 1000, 1, 1), onCPUs(4, 900, 1, 1)},
		"another program": {onCPUs(4, 1000, 1, 1), other}, "its offer is gone": {onCPUs(4, 1000, 1, 1), gone},
	} {
		if share, ok := runhistory.Parallel(runs, ranged); ok {
			t.Errorf("%s: %v", name, share)
		}
	}
	if share, ok := runhistory.Parallel([]runhistory.Run{onCPUs(4, 1000, 1, 1), onCPUs(16, 950, 1, 1)}, ranged); !ok || share != 0 {
		t.Errorf("a difference of 5 %% counts as %v (%v)", share, ok)
	}
	half := 0.5
	stated := ranged
	stated.Work.Parallel = &half
	runs := []runhistory.Run{onCPUs(4, 1000, 1, 1), onCPUs(16, 250, 1, 1)}
	if j := runhistory.WithParallel(runs, stated); *j.Work.Parallel != half {
		t.Errorf("what the file states is replaced by %v", *j.Work.Parallel)
	}
	exact := ranged
	exact.Resources.CPUs.Max = 4
	if j := runhistory.WithParallel(runs, exact); j.Work.Parallel != nil {
		t.Errorf("a job without a range gets %v", *j.Work.Parallel)
	}
}
