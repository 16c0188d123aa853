// Package estimate predicts the needs of a training run before it is paid for: memory by component, throughput, time
// and dollars, each with an 80 % interval and a sentence about the source of the number.
//
// An estimate has two parts. The physical part counts floating-point operations and bytes and compares them with the
// accelerator's figures (packages physics and hardware). A Gaussian process learns the remainder from measured runs
// (packages runs and likeness, prior.go): a measured run that is close in source, model, accelerator, precision and
// size corrects the estimate, a distant one hardly does, and the distance determines the width of the interval.
//
// All formulas with units, ranges and a worked number are in docs/formulas.md.
package estimate

import "math"

// Range is a value with an interval that holds it in four of five cases.
type Range struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// Times returns the range with all ends multiplied by k, which must not be negative.
func (r Range) Times(k float64) Range { return Range{r.Value * k, r.Low * k, r.High * k} }

// sound reports whether the range is valid: positive, finite, in order.
func (r Range) sound() bool {
	return r.Low > 0 && r.Low <= r.Value && r.Value <= r.High && !math.IsInf(r.High, 1)
}

// Per returns k divided by the range: the low end of a rate is the high end of a time.
func (r Range) Per(k float64) Range { return Range{k / r.Value, k / r.High, k / r.Low} }
