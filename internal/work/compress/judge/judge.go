// Package judge compares a compressed model with its original by what the commands of the user print for both.
package judge

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"scrimp/internal/lib/draw"
	"scrimp/internal/work/compress"
)

// Pair holds a value of the original and of the compressed model.
type Pair[T any] struct{ Before, After T }

// Pattern is a regular expression whose only group is a number.
type Pattern struct{ re *regexp.Regexp }

// ParsePattern reads a pattern. It must have one group.
func ParsePattern(s string) (Pattern, error) {
	re, err := regexp.Compile(s)
	if err != nil {
		return Pattern{}, fmt.Errorf("%q is no regular expression: %w", s, err)
	}
	if re.NumSubexp() != 1 {
		return Pattern{}, fmt.Errorf("%q has %d groups: put the number, and only the number, in parentheses", s,
			re.NumSubexp())
	}
	return Pattern{re}, nil
}

// maxMetric bounds a metric: larger numbers are mistakes.
const maxMetric = 1e15

// Numbers returns the numbers that the pattern finds in the output of a command, at least one.
func (p Pattern) Numbers(text string) (list []float64, err error) {
	for _, m := range p.re.FindAllStringSubmatch(text, -1) {
		v, err := strconv.ParseFloat(m[1], 64)
		if err != nil || !(math.Abs(v) <= maxMetric) {
			return nil, fmt.Errorf("%q is not a finite number up to %g", m[1], maxMetric)
		}
		list = append(list, v)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("its output has nothing that matches %q; %s", p.re, printed(text))
	}
	return list, nil
}

// named finds a name with a number, such as accuracy=0.97, "loss": 0.1 or val/f1 0.8.
var named = regexp.MustCompile(`([A-Za-z_][\w./@-]{0,63})["']?(?:\s*[=:]\s*|[ \t]+)` +
	`([-+]?[0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?)`)

// mostNamed bounds the metrics that an error names.
const mostNamed = 8

// printed says which metrics the output of a command has, the last value of each.
func printed(text string) string {
	var names []string
	last := map[string]string{}
	for _, m := range named.FindAllStringSubmatch(text, -1) {
		if _, known := last[m[1]]; !known {
			names = append(names, m[1])
		}
		last[m[1]] = m[2]
	}
	if len(names) == 0 {
		return "it prints no name with a number, such as accuracy=0.97"
	}
	var list []string
	for _, name := range names[:min(len(names), mostNamed)] {
		list = append(list, name+"="+last[name])
	}
	if more := len(names) - len(list); more > 0 {
		list = append(list, draw.Count(more, "other"))
	}
	return "it prints " + strings.Join(list, ", ")
}

// maxLatency bounds the latency of one prediction, so that a million of them fit a time.Duration.
const maxLatency = time.Hour

// Latencies converts milliseconds to durations.
func Latencies(milliseconds []float64) (list []time.Duration, err error) {
	for _, v := range milliseconds {
		if !(v > 0 && v <= float64(maxLatency/time.Millisecond)) {
			return nil, fmt.Errorf("a latency of %g ms is not above 0 and at most %s", v, maxLatency)
		}
		list = append(list, max(1, time.Duration(math.Round(v*float64(time.Millisecond)))))
	}
	return list, nil
}

// Quantile returns the smallest latency that the share q of all does not exceed (nearest rank).
func Quantile(list []time.Duration, q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(list))
	rank := int(math.Ceil(q * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// Rate returns the predictions per second. The runs follow one another, and each makes the given number.
func Rate(list []time.Duration, predictions int) float64 {
	sum := 0.0
	for _, d := range list {
		sum += d.Seconds()
	}
	return float64(predictions) * float64(len(list)) / sum
}

// Quality is the metric of both models and how far it may fall.
type Quality struct {
	Pair[float64]
	Tolerance     float64
	LowerIsBetter bool
}

// Fall is how much worse the compressed model is; negative if it is better.
func (q Quality) Fall() float64 {
	if q.LowerIsBetter {
		return q.After - q.Before
	}
	return q.Before - q.After
}

// Held reports whether the metric falls by no more than the tolerance. A difference in the last of fifteen digits is
// the rounding of the subtraction, not a fall.
func (q Quality) Held() bool {
	slack := 4e-16 * max(math.Abs(q.Before), math.Abs(q.After))
	return q.Fall() <= q.Tolerance+slack
}

// Measures are the results of the user's commands and the sizes. A nil pointer is not measured.
type Measures struct {
	Size    Pair[int64]
	Quality *Quality
	P50     *Pair[time.Duration]
	Speed   *Ratio // of P50
}

// Judge returns an error that lists why the compressed model is not recommended; nil if nothing speaks against it.
func (m Measures) Judge(method compress.Method) error {
	var why []error
	if q := m.Quality; q != nil && !q.Held() {
		why = append(why, fmt.Errorf("the metric goes from %g to %g, worse by %.4g; the tolerance is %g", q.Before, q.After,
			q.Fall(), q.Tolerance))
	}
	if m.Speed != nil && m.Speed.Verdict() == Slower {
		why = append(why, fmt.Errorf("it is slower: p50 goes from %s to %s", m.P50.Before, m.P50.After))
	}
	if method != compress.PruneUnstructured && m.Size.After >= m.Size.Before {
		why = append(why, fmt.Errorf("it is not smaller: %d bytes become %d", m.Size.Before, m.Size.After))
	}
	return errors.Join(why...)
}

// Recommended reports whether measurements support the compressed model. known is false if nothing was measured that
// decides: the quality, and for pruning also the latency, because the file stays as large as it was.
func (m Measures) Recommended(method compress.Method) (yes, known bool) {
	if m.Judge(method) != nil {
		return false, true
	}
	if method == compress.PruneUnstructured && (m.Speed == nil || m.Speed.Verdict() != Faster) {
		return false, false
	}
	return m.Quality != nil, m.Quality != nil
}
