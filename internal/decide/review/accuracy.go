package review

import (
	"cmp"
	"math"
	"slices"
	"time"

	"scrimp/internal/decide/runhistory"
	"scrimp/internal/estimate/hardware"
)

// mostFurthest is how many of the worst estimates a review names.
const mostFurthest = 3

// Accuracy compares what was expected of the runs that ended within the span with what came out, as scrimp estimate
// --accuracy does, and returns the pairs whose dollars were furthest off. Past has the runs, newest first: those of
// earlier months are what an estimate could learn from.
func Accuracy(past []runhistory.Run, since, until time.Time) (all []runhistory.Missed, furthest []runhistory.Pair) {
	past = slices.DeleteFunc(slices.Clone(past), func(x runhistory.Run) bool { return !x.Finished.Before(until) })
	pairs := slices.DeleteFunc(runhistory.Compare(past, nil, hardware.Catalogued()),
		func(x runhistory.Pair) bool { return x.Finished.Before(since) })
	all, furthest = []runhistory.Missed{}, []runhistory.Pair{}
	all = append(all, runhistory.Missing(pairs)...)
	for _, x := range pairs {
		if x.What == "dollars" {
			furthest = append(furthest, x)
		}
	}
	off := func(x runhistory.Pair) float64 { return math.Abs(x.Expected - x.Actual) }
	slices.SortStableFunc(furthest, func(a, b runhistory.Pair) int { return cmp.Compare(off(b), off(a)) })
	return all, furthest[:min(len(furthest), mostFurthest)]
}
