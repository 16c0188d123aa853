// Package estimate says what a training run will need before it is paid for:
// memory by component, throughput, time and dollars, each with an 80 % interval
// and a sentence that says where the number comes from.
//
// An estimate has two parts. The physical part counts floating-point operations
// and bytes and lays them against what an accelerator can do (physics.go, chip.go,
// memory.go). What that leaves over is learned from measured runs by a Gaussian
// process (package likeness, prior.go): a measured run nearby in source, model,
// accelerator, precision and size corrects the estimate, one that is far away
// hardly does, and the distance decides how wide the interval is.
//
// All formulas with units, ranges and a worked number are in docs/formulas.md.
package estimate

import "math"

// Range is a value with the interval that holds it in four of five cases.
type Range struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// Times is the range with every end multiplied by k, which must not be negative.
func (r Range) Times(k float64) Range { return Range{r.Value * k, r.Low * k, r.High * k} }

// sound reports whether the range is one: positive, finite, in order.
func (r Range) sound() bool {
	return r.Low > 0 && r.Low <= r.Value && r.Value <= r.High && !math.IsInf(r.High, 1)
}

// Per is k divided by the range: the low end of a rate is the high end of a time.
func (r Range) Per(k float64) Range { return Range{k / r.Value, k / r.High, k / r.Low} }
