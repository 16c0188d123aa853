package review

import (
	"cmp"
	"math"
	"slices"
	"time"

	"scrimp/internal/decide/measured"
	"scrimp/internal/estimate/hardware"
)

// mostFurthest is how many of the worst estimates a review names.
const mostFurthest = 3

// Accuracy compares what was expected of the runs that ended within the span with what came out, as scrimp estimate
// --accuracy does, and returns the pairs whose dollars were furthest off. Past has the runs, newest first: those of
// earlier months are what an estimate could learn from.
func Accuracy(past []measured.Run, since, until time.Time) (all []measured.Missed, furthest []measured.Pair) {
	past = slices.DeleteFunc(slices.Clone(past), func(x measured.Run) bool { return !x.Finished.Before(until) })
	pairs := slices.DeleteFunc(measured.Compare(past, nil, hardware.Catalogued()),
		func(x measured.Pair) bool { return x.Finished.Before(since) })
	all, furthest = []measured.Missed{}, []measured.Pair{}
	all = append(all, measured.Missing(pairs)...)
	for _, x := range pairs {
		if x.What == "dollars" {
			furthest = append(furthest, x)
		}
	}
	off := func(x measured.Pair) float64 { return math.Abs(x.Expected - x.Actual) }
	slices.SortStableFunc(furthest, func(a, b measured.Pair) int { return cmp.Compare(off(b), off(a)) })
	return all, furthest[:min(len(furthest), mostFurthest)]
}
