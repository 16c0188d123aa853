// Package ab compares two variants of a training job with paired runs. Both runs of a pair use the same seed, so the
// common effect of the seed cancels.
package ab

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Error bounds the probability of a false "no worse" in a comparison, and that of a false "worse".
const Error = 0.05

// level returns the part of Error that each of the two tests spends. It is exact if the noise of both arms has the same
// shape; the rest is reserved for arms whose noise is skewed in opposite directions.
func level(pairs int) float64 {
	if pairs > 8 {
		return 1.0 / 80
	}
	return 1.0 / 64 // MinPairs can reach it
}

// Bounds of comparisons.
const (
	MinPairs = 6 // with fewer, equal signs are too likely: 2^-6 is 1.6 %, 2^-5 is 3.1 %
	MaxPairs = 50
)

// Design defines what a comparison should show. It is fixed before the first run.
type Design struct {
	Metric   string `json:"metric,omitempty"` // reported by the runs; empty if nothing is judged
	Maximize bool   `json:"maximize,omitempty"`
	// Tolerance is how much worse than the baseline the change may be, in units of the metric or, if Relative, as a
	// share of the baseline's value.
	Tolerance float64  `json:"tolerance,omitempty"`
	Relative  bool     `json:"relative,omitempty"`
	Pairs     int      `json:"pairs"`
	First     int      `json:"first_seed"` // the seeds are First, First+1 and so on
	Set       []string `json:"set"`        // FIELD=VALUE of the changed arm
}

// mostTolerance bounds a tolerance in units of the metric.
const mostTolerance = 1e15

// ParseTolerance parses [METRIC=]NUMBER[%]: the metric, the tolerance, and whether it is relative to the baseline's
// value.
func ParseTolerance(text string) (metric string, tolerance float64, relative bool, err error) {
	number := text
	if at := strings.LastIndexByte(text, '='); at >= 0 {
		if metric, number = strings.TrimSpace(text[:at]), text[at+1:]; metric == "" {
			return "", 0, false, fmt.Errorf("%q names no metric before =: write it as accuracy=0.2%%", text)
		}
	}
	if number, relative = strings.CutSuffix(strings.TrimSpace(number), "%"); relative {
		number = strings.TrimSpace(number)
	}
	tolerance, no := strconv.ParseFloat(number, 64)
	if (no != nil && !errors.Is(no, strconv.ErrRange)) || math.IsNaN(tolerance) || tolerance < 0 {
		return "", 0, false, fmt.Errorf("%q is not a tolerance: write accuracy=0.2%% for a share of the baseline's value, "+
			"or accuracy=0.002 in its units", text)
	}
	if relative {
		tolerance /= 100
	}
	switch {
	case tolerance == 0, relative && tolerance <= rounding: // no number of pairs shows that nothing at all is lost
		return "", 0, false, fmt.Errorf("%q allows nothing: say how much worse the change may be, such as accuracy=0.2%%",
			text)
	case relative && tolerance > 1:
		return "", 0, false, fmt.Errorf("%q is more than all of the baseline's value: give at most 100%%", text)
	case tolerance >= mostTolerance:
		return "", 0, false, fmt.Errorf("%q is too large: give a tolerance below %g", text, mostTolerance)
	}
	return metric, tolerance, relative, nil
}

// Check returns an error for an invalid design.
func (d *Design) Check() error {
	switch {
	case d.Pairs < 1 || d.Pairs > MaxPairs:
		return fmt.Errorf("%d seeds: give 1 to %d", d.Pairs, MaxPairs)
	case d.First < 0 || d.First > math.MaxInt32-MaxPairs:
		return fmt.Errorf("the first seed is %d: give one from 0 to 2,000,000,000", d.First)
	case d.Metric == "" && d.Tolerance > 0:
		return errors.New("a tolerance needs a metric")
	}
	return nil
}

// lower and higher list words in metric names that tell whether lower or higher values are better.
var (
	lower  = []string{"loss", "error", "err", "perplexity", "ppl", "mse", "rmse", "mae", "wer", "cer", "nll", "fid"}
	higher = []string{"accuracy", "acc", "f1", "auc", "bleu", "precision", "recall", "iou", "map", "reward", "score"}
)

// Goal guesses from a metric's name whether higher is better; known is false if the name does not tell.
func Goal(metric string) (maximize, known bool) {
	split := func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') }
	for _, word := range strings.FieldsFunc(strings.ToLower(metric), split) {
		for i, list := range [][]string{lower, higher} {
			for _, w := range list {
				if word == w {
					if known && maximize != (i == 1) { // accuracy_loss
						return false, false
					}
					maximize, known = i == 1, true
				}
			}
		}
	}
	return maximize, known
}

// Pair holds the final values of both runs of one seed.
type Pair struct {
	Seed  int
	Base  float64
	Other float64
}

// rounding is the smallest relative difference that counts. A smaller one is a rounding error.
const rounding = 1e-12

// settled returns v, or 0 if it is within rounding of values of the given size.
func settled(v, size float64) float64 {
	if math.Abs(v) <= rounding*size {
		return 0
	}
	return v
}

// size returns the larger absolute value.
func (p Pair) size() float64 { return max(math.Abs(p.Base), math.Abs(p.Other)) }

// difference returns the change minus the baseline.
func (p Pair) difference() float64 { return settled(p.Other-p.Base, p.size()) }

// gain returns how much better the change was than the baseline.
func (d *Design) gain(p Pair) float64 {
	if d.Maximize {
		return p.difference()
	}
	return 0 - p.difference() // avoids a negative zero
}

// allowed returns how much worse the change of a pair may be.
func (d *Design) allowed(p Pair) float64 {
	if d.Relative {
		return d.Tolerance * math.Abs(p.Base)
	}
	return d.Tolerance
}

// reach gives, by number of pairs, how large the allowed loss must be, in standard deviations of the pairs'
// differences, so that two equal arms are found "no worse" with a probability of 80 %. TestReach_HasTheStatedPower
// computes it again.
var reach = []struct {
	pairs int
	ratio float64
}{{6, 1.80}, {7, 1.50}, {8, 1.39}, {9, 1.34}, {10, 1.28}, {12, 1.13}, {15, 0.98}, {20, 0.83}, {30, 0.65}, {50, 0.49}}

// Reach returns that ratio for a number of pairs, and false if so few pairs never decide.
func Reach(pairs int) (ratio float64, ok bool) {
	if pairs < MinPairs {
		return 0, false
	}
	for i := len(reach) - 1; i >= 0; i-- {
		at := reach[i]
		if pairs < at.pairs {
			continue
		}
		if i == len(reach)-1 {
			return at.ratio * math.Sqrt(float64(at.pairs)/float64(pairs)), true
		}
		next := reach[i+1] // linear interpolation between two entries
		part := float64(pairs-at.pairs) / float64(next.pairs-at.pairs)
		return at.ratio + part*(next.ratio-at.ratio), true
	}
	return 0, false
}

// mostNeeded is the largest comparison to propose.
const mostNeeded = 1000

// needed returns how many pairs decide with a probability of 80 % if the mean is the given number of standard
// deviations from the limit; 0 if more than mostNeeded.
func needed(ratio float64) int {
	for n := MinPairs; n <= mostNeeded; n++ {
		if r, _ := Reach(n); r <= ratio {
			return n
		}
	}
	return 0
}
