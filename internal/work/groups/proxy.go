package groups

import (
	"fmt"
	"math"

	"scrimp/internal/work/study"
)

// Limits of the comparison of a proxy with full trainings.
const (
	leastRanked    = 3   // trials; two always rank the same or the other way round
	lowCorrelation = 0.5 // below it the proxy is a poor guide
)

// Full reports whether a trial is trained to its end.
func (t *Trial) Full(spec *study.Spec) bool {
	f := spec.Length(t.Promoted)
	return t.Unit >= f.Units() && (f.Name != "" || t.Phase == Over)
}

// FromProxy returns the index of the trial that trained the configuration of a promoted one on the proxy, or -1.
func FromProxy(trials []Trial, promoted int) int {
	for n := range trials {
		if !trials[n].Promoted && trials[n].Config == trials[promoted].Config {
			return n
		}
	}
	return -1
}

// Agreement compares the best values of the n trials that were promoted and trained in full with those of the same
// configurations on the proxy: Spearman's rank correlation, from -1 to 1. It is unknown for fewer than three, or if all
// values on one side are equal.
func Agreement(spec *study.Spec, trials []Trial) (rho float64, n int, known bool) {
	var full, proxy []float64
	for i := range trials {
		t := &trials[i]
		from := FromProxy(trials, i)
		if t.Promoted && t.Full(spec) && from >= 0 && t.Values > 0 && trials[from].Values > 0 {
			full, proxy = append(full, t.Best), append(proxy, trials[from].Best)
		}
	}
	if n = len(full); n < leastRanked {
		return 0, n, false
	}
	a, b := ranks(full), ranks(proxy)
	mean, ab, aa, bb := float64(n-1)/2, 0.0, 0.0, 0.0
	for i := range a {
		x, y := a[i]-mean, b[i]-mean
		ab, aa, bb = ab+float64(x*y), aa+float64(x*x), bb+float64(y*y)
	}
	if aa == 0 || bb == 0 {
		return 0, n, false
	}
	return ab / math.Sqrt(aa*bb), n, true
}

// poorProxy warns of a proxy that ranks configurations otherwise than full trainings do.
func poorProxy(spec *study.Spec, trials []Trial) []string {
	rho, n, known := Agreement(spec, trials)
	if !known || rho >= lowCorrelation {
		return nil
	}
	return []string{fmt.Sprintf("the proxy ranks the %d configurations that were trained in full otherwise than the full "+
		"training does (rank correlation %.2g): a better one may have been left; train the proxy longer, on more data or "+
		"at a higher resolution", n, rho)}
}
