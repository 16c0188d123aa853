// Package series computes figures of one machine's telemetry that the rules of diagnose examine.
package series

import (
	"math"
	"slices"

	"scrimp/internal/wire/telemetry"
)

// Node is a machine of a job.
type Node struct {
	Rank    int
	Head    telemetry.Head
	Buckets []telemetry.Bucket // in time order
}

// Leak describes the growth of the program's memory.
type Leak struct {
	PerHour, Growth float64 // bytes per hour; relative to the initial level
	Steady          bool
}

// Parameters of leaks.
const (
	leakPoints = 9   // required buckets: a cache may fill for a minute
	leakFit    = 0.9 // share of the variance that a straight line explains
	leakShare  = 0.1 // growth relative to the level
	leakBytes  = 48 << 20
)

// Covered returns the measured seconds.
func Covered(list []telemetry.Bucket) (s float64) {
	for i := range list {
		s += list[i].Covered
	}
	return s
}

// Span returns when the measurements of a machine begin and end, in seconds: the first bucket may begin before
// them, and the last may end after them.
func Span(list []telemetry.Bucket) (from, until float64) {
	first, last := list[0], list[len(list)-1]
	if len(list) == 1 {
		return float64(first.Start), float64(first.Start) + first.Covered
	}
	from = float64(first.End()) - first.Covered
	return from, max(from, float64(last.Start)+last.Covered)
}

// Peak returns the largest value of a metric, of one device.
func Peak(list []telemetry.Bucket, m telemetry.Metric, index int) (most float64) {
	for i := range list {
		if v := list[i].Value(m, index); v.Known() {
			most = max(most, v.Max)
		}
	}
	return most
}

// LeakOf fits a line to the program's memory. Growth only at the beginning, for example of a cache, is not a leak: the
// second half must grow like the first.
func LeakOf(list []telemetry.Bucket) (l Leak) {
	var x, y []float64
	for i := range list {
		if v := list[i].Value(telemetry.TaskMemory, 0); v.Known() {
			x, y = append(x, float64(list[i].Start-list[0].Start)), append(y, v.Mean)
		}
	}
	if len(x) < leakPoints {
		return l
	}
	x, y = x[1:], y[1:] // the first may include memory that the program loads
	slope, fit := line(x, y)
	half := len(x) / 2
	begin, _ := line(x[:half], y[:half])
	end, _ := line(x[half:], y[half:])
	growth := slope * (x[len(x)-1] - x[0])
	l.PerHour, l.Growth = slope*3600, growth/max(1, y[0])
	l.Steady = fit >= leakFit && growth >= leakBytes && l.Growth >= leakShare && end >= 0.5*begin && begin > 0 &&
		y[len(y)-1] >= y[len(y)-2]*0.98
	return l
}

// line returns the slope of the best straight line, and the share of the variance that it explains.
func line(x, y []float64) (slope, fit float64) {
	n := float64(len(x))
	if n < 2 {
		return 0, 0
	}
	mx, my := 0.0, 0.0
	for i := range x {
		mx, my = mx+x[i]/n, my+y[i]/n
	}
	xx, xy, yy := 0.0, 0.0, 0.0
	for i := range x {
		xx += (x[i] - mx) * (x[i] - mx)
		xy += (x[i] - mx) * (y[i] - my)
		yy += (y[i] - my) * (y[i] - my)
	}
	if xx == 0 || yy == 0 {
		return 0, 0
	}
	return xy / xx, xy * xy / xx / yy
}

// Value returns the mean of a metric in a bucket over all its GPUs, or NaN.
func Value(b *telemetry.Bucket, m telemetry.Metric) float64 {
	sum, n := 0.0, 0.0
	for _, v := range b.V[m] {
		if v.Known() {
			sum, n = sum+v.Mean, n+1
		}
	}
	if n == 0 {
		return math.NaN()
	}
	return sum / n
}

// Usually returns a quantile of a metric over buckets; 0 if unknown.
func Usually(list []telemetry.Bucket, m telemetry.Metric, q float64) float64 {
	var all []float64
	for i := range list {
		if v := Value(&list[i], m); !math.IsNaN(v) {
			all = append(all, v)
		}
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[int(q*float64(len(all)-1))]
}
