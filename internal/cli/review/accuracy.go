package review

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"scrimp/internal/cli/show"
	"scrimp/internal/decide/measured"
	"scrimp/internal/estimate/hardware"
	"scrimp/internal/lib/draw"
)

// mostFurthest is how many of the worst estimates the page names.
const mostFurthest = 3

// accuracy compares what was expected of the runs that ended in the month with what came out, as scrimp estimate
// --accuracy does. past has the runs, newest first: those of earlier months are what an estimate could learn from.
func (r *Review) accuracy(past []measured.Run) {
	past = slices.DeleteFunc(slices.Clone(past), func(x measured.Run) bool { return !x.Finished.Before(r.Until) })
	pairs := slices.DeleteFunc(measured.Compare(past, nil, hardware.Catalogued()),
		func(x measured.Pair) bool { return x.Finished.Before(r.Since) })
	r.Accuracy, r.Furthest = []measured.Missed{}, []measured.Pair{}
	r.Accuracy = append(r.Accuracy, measured.Missing(pairs)...)
	for _, x := range pairs {
		if x.What == "dollars" {
			r.Furthest = append(r.Furthest, x)
		}
	}
	slices.SortStableFunc(r.Furthest, func(a, b measured.Pair) int { return cmp.Compare(off(b), off(a)) })
	r.Furthest = r.Furthest[:min(len(r.Furthest), mostFurthest)]
}

// off is by how much an estimate was wrong, in its unit.
func off(x measured.Pair) float64 { return math.Abs(x.Expected - x.Actual) }

// missed writes how far the estimates were from what came out.
func (r *Review) missed(b *strings.Builder, p show.Place) {
	for _, m := range r.Accuracy {
		if m.Kind != "all" {
			continue
		}
		within := ""
		if m.Within != nil {
			within = fmt.Sprintf(", %.0f %% of the ranges held", 100**m.Within)
		}
		p.Fact(b, "estimated", "%s of %s: median error %.1f %%, median %s%s", m.What, draw.Count(m.Runs, "run"),
			100*m.Median, side(m.Bias), within)
	}
	for _, x := range r.Furthest {
		p.Fact(b, "", "%s: %s expected, %s came out (%s)", show.Clean(x.Job), show.USD(x.Expected), show.USD(x.Actual),
			side(x.Expected/x.Actual-1))
	}
}

// side formats expected / actual - 1.
func side(share float64) string {
	if share < 0 {
		return fmt.Sprintf("%.1f %% too little", -100*share)
	}
	return fmt.Sprintf("%.1f %% too much", 100*share)
}
