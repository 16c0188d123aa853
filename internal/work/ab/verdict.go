package ab

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Verdict is the result of a comparison.
type Verdict string

// The verdicts.
const (
	NoWorse    Verdict = "no_worse" // by more than the tolerance
	Better     Verdict = "better"   // implies no worse
	Worse      Verdict = "worse"    // by more than the tolerance
	CannotTell Verdict = "cannot_tell"
	Unjudged   Verdict = "" // no metric was named
)

// Result is what the pairs have shown.
type Result struct {
	Verdict Verdict
	Why     string // a sentence
	Over    bool   // no further pair can change the verdict
	Pairs   int    // behind the verdict
	// Difference is the mean of the change minus the baseline, in units of the metric.
	Difference float64
	// Low and High bound the difference with a total error of at most Error; nil if the pairs are too few for a bound.
	Low, High *float64
	Allowed   float64 // mean of the allowed losses
	// More is how many further pairs would probably decide, in a new comparison; 0 if unknown or more than 1,000.
	More int
}

// Judge judges the complete pairs in the order of their seeds. Judging after each pair and stopping at the first
// verdict makes no more errors than judging once.
func Judge(d Design, pairs []Pair) Result {
	if d.Metric == "" {
		return Result{Pairs: len(pairs), Why: "no tolerance was given, so quality is not judged"}
	}
	if len(pairs) == 0 {
		return Result{Verdict: CannotTell, Why: "no pair of runs is complete yet", More: max(d.Pairs, MinPairs)}
	}
	r, gains := decide(d, pairs)
	size := 0.0
	for _, p := range pairs[:r.Pairs] {
		r.Difference += p.difference() / float64(r.Pairs)
		r.Allowed += d.allowed(p) / float64(r.Pairs)
		size = max(size, p.size())
	}
	r.Difference = settled(r.Difference, size)
	if !ignored(pairs[:r.Pairs]) {
		r.Low, r.High = interval(d, gains)
	}
	return r
}

// decide returns the verdict and the gains of its pairs.
func decide(d Design, pairs []Pair) (r Result, gains []float64) {
	margins := make([]float64, len(pairs))
	for i, p := range pairs {
		gains = append(gains, d.gain(p))
		margins[i] = settled(gains[i]+d.allowed(p), p.size())
	}
	up, down := positive(margins, d.Pairs), positive(negated(margins), d.Pairs)
	r = Result{Verdict: CannotTell, Pairs: len(pairs)}
	if first := earlier(up, down); first > 0 {
		r.Pairs, r.Over = first, true
	}
	pairs, margins, gains = pairs[:r.Pairs], margins[:r.Pairs], gains[:r.Pairs]
	switch {
	case ignored(pairs): // repetitions of one run are no evidence
		r.Over = true
		r.Why = fmt.Sprintf("the first %d pairs report the same values to the last digit: the program seems not to read "+
			"SCRIMP_SEED, so they count as one", len(pairs))
	case !r.Over:
		r.undecided(d, margins)
		if d.allowsNothing(pairs) { // no number of pairs would probably decide
			r.More = 0
			if r.Over && d.Pairs >= MinPairs {
				r.Why = fmt.Sprintf("a tolerance in %% of a baseline of 0 allows nothing: use an absolute one, such as "+
					"--tolerance %s=0.01", d.Metric)
			}
		}
	case up == 0 || down > 0 && down < up:
		r.Verdict, r.Why = Worse, "it is worse than the tolerance allows"
	case positive(gains, d.Pairs) > 0:
		r.Verdict, r.Why = Better, "it is better than the baseline"
	default:
		r.Verdict, r.Why = NoWorse, "it is not worse than the tolerance allows"
	}
	return r, gains
}

// allowsNothing reports whether the tolerance is relative to baselines that are all 0.
func (d *Design) allowsNothing(pairs []Pair) bool {
	return d.Relative && !slices.ContainsFunc(pairs, func(p Pair) bool { return p.Base != 0 })
}

// earlier returns the earlier of two looks, where 0 means none.
func earlier(a, b int) int {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// undecided sets why the pairs do not decide, and how many more probably would.
func (r *Result) undecided(d Design, margins []float64) {
	left := d.Pairs - len(margins)
	best := math.Ldexp(1, -left) // the remaining pairs may all have the same sign
	switch {
	case d.Pairs < MinPairs:
		r.Why = fmt.Sprintf("%s with an error of at most %g %%, whatever %s: %d can",
			count(d.Pairs, "1 pair never tells", "%d pairs never tell"), 100*Error,
			count(d.Pairs, "it reports", "they report"), MinPairs)
		r.Over = left == 0
	case left == 0:
		r.Why, r.Over = "the differences between the pairs are too large for so few", true
	case atLeast(margins)*best > level(d.Pairs) && atLeast(negated(margins))*best > level(d.Pairs):
		r.Why, r.Over = "whatever the last "+count(left, "pair reports, it cannot", "%d pairs report, they cannot")+
			" decide it any more", true
	default:
		r.Why = fmt.Sprintf("%d of %d pairs are complete", len(margins), d.Pairs)
	}
	if len(margins) < 2 {
		r.More = MinPairs
		return
	}
	mean, deviation := moments(margins)
	if r.More = MinPairs; deviation > 0 {
		r.More = needed(math.Abs(mean) / deviation)
	}
}

// count returns one, or many with the number for %d.
func count(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return strings.ReplaceAll(many, "%d", strconv.Itoa(n))
}

// ignored reports whether at least three pairs all have the same values.
func ignored(pairs []Pair) bool {
	differs := func(p Pair) bool { return p.Base != pairs[0].Base || p.Other != pairs[0].Other }
	return len(pairs) > 2 && !slices.ContainsFunc(pairs, differs)
}

func negated(list []float64) []float64 {
	out := make([]float64, len(list))
	for i, v := range list {
		out[i] = -v
	}
	return out
}

// moments returns mean and standard deviation of a sample of at least two.
func moments(list []float64) (mean, deviation float64) {
	for _, v := range list {
		mean += v / float64(len(list))
	}
	for _, v := range list {
		deviation += float64((v-mean)*(v-mean)) / float64(len(list)-1)
	}
	return mean, math.Sqrt(deviation)
}

// interval bounds the change minus the baseline with the test itself: it contains every value that the looks so far do
// not reject.
func interval(d Design, gains []float64) (low, high *float64) {
	low, high = bound(d, gains), minus(bound(d, negated(gains)))
	if !d.Maximize {
		low, high = minus(high), minus(low)
	}
	return low, high
}

func minus(v *float64) *float64 {
	if v == nil {
		return nil
	}
	return new(0 - *v) // avoids a negative zero
}

// bound returns the lower bound of the mean of values, or nil.
func bound(d Design, values []float64) *float64 {
	spread := slices.Max(values) - slices.Min(values)
	proved := func(than float64) bool {
		shifted := make([]float64, len(values))
		for i, v := range values {
			shifted[i] = v - than
		}
		return positive(shifted, d.Pairs) > 0
	}
	no := slices.Max(values)
	if spread == 0 && proved(no-1e-9*math.Max(1, math.Abs(no))) {
		return &no
	}
	size := max(math.Abs(no), math.Abs(slices.Min(values)))
	yes := slices.Min(values) - 64*spread - 1e-9*math.Max(1, math.Abs(no))
	if !proved(yes) {
		return nil
	}
	for range 50 {
		middle := yes + (no-yes)/2
		if proved(middle) {
			yes = middle
		} else {
			no = middle
		}
	}
	yes = settled(yes, 10*size) // the search and the test round
	return &yes
}
