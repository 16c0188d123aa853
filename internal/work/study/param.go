package study

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"

	"scrimp/internal/work/tune"
)

// Param is a hyper-parameter: a range of numbers, or a list of values.
type Param struct {
	Name   string   `json:"name"`
	Values []string `json:"values,omitempty"` // in JSON; empty for a range
	Min    float64  `json:"min,omitempty"`
	Max    float64  `json:"max,omitempty"`
	Int    bool     `json:"int,omitempty"`
	Log    bool     `json:"log,omitempty"`   // drawn by its logarithm
	Q      float64  `json:"q,omitempty"`     // values are multiples of it; 0 for any
	Sigma  float64  `json:"sigma,omitempty"` // of a normal distribution around Mu, or of its logarithm; 0 for uniform
	Mu     float64  `json:"mu,omitempty"`
}

var paramName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]{0,99}$`)

func (p *Param) check() error {
	switch {
	case !paramName.MatchString(p.Name):
		return errors.New("a name begins with a letter and has letters, digits, _, . and - only, 100 at most")
	case len(p.Values) > 0:
		return p.checkValues()
	}
	for _, v := range []float64{p.Min, p.Max, p.Q, p.Sigma, p.Mu} {
		if !tune.Finite(v) || math.Abs(v) > maxNumber {
			return fmt.Errorf("%g is beyond the bounds of its numbers: give one from -%g to %g", v, maxNumber, maxNumber)
		}
	}
	switch {
	case p.Q != 0 && p.Q < minStep:
		return fmt.Errorf("q is %g: give a number from %g to %g", p.Q, minStep, maxNumber)
	case p.Sigma != 0 && p.Sigma < minStep:
		return fmt.Errorf("sigma is %g: give a number from %g to %g", p.Sigma, minStep, maxNumber)
	case p.Sigma > 0:
		return nil
	}
	return p.checkRange()
}

// checkValues checks the values of a parameter that lists them.
func (p *Param) checkValues() error {
	if len(p.Values) > MaxValues {
		return fmt.Errorf("it has %d values: give at most %d", len(p.Values), MaxValues)
	}
	for i, v := range p.Values {
		if len(v) > MaxBytes || slices.Contains(p.Values[:i], v) {
			return fmt.Errorf("%.40s is there twice, or longer than %d bytes", v, MaxBytes)
		}
	}
	return nil
}

// checkRange checks that a value lies from min to max.
func (p *Param) checkRange() error {
	switch {
	case p.Min > p.Max:
		return fmt.Errorf("min %g is above max %g: swap them", p.Min, p.Max)
	case p.Log && p.Min <= 0:
		return fmt.Errorf("a distribution of logarithms needs a min above 0, and it is %g", p.Min)
	case p.Int && math.Ceil(p.Min) > math.Floor(p.Max):
		return fmt.Errorf("no whole number lies between min %g and max %g", p.Min, p.Max)
	case p.Q > 0 && p.round(p.Min) > p.Max && p.round(p.Max) < p.Min:
		return fmt.Errorf("no multiple of q %g lies between min %g and max %g", p.Q, p.Min, p.Max)
	}
	return nil
}

// count returns the number of its values; 0 for infinitely many.
func (p *Param) count() int {
	switch {
	case len(p.Values) > 0:
		return len(p.Values)
	case p.Sigma > 0:
		return 0
	case p.Min == p.Max:
		return 1
	case p.step() == 0:
		return 0
	}
	n := math.Floor(p.Max/p.step()+1e-9) - math.Ceil(p.Min/p.step()-1e-9) + 1
	if n > MaxTrials {
		return 0
	}
	return max(1, int(n))
}

// step returns the distance of neighbouring values; 0 if there is none.
func (p *Param) step() float64 {
	if p.Int && p.Q == 0 {
		return 1
	}
	return p.Q
}

// at returns the n-th value of a finite parameter.
func (p *Param) at(n int) tune.Value {
	if len(p.Values) > 0 {
		return float64(n)
	}
	if p.Min == p.Max {
		return p.round(p.Min)
	}
	return digits((math.Ceil(p.Min/p.step()-1e-9) + float64(n)) * p.step())
}

// draw returns the value at a quantile of its distribution, from 0 to below 1.
func (p *Param) draw(u float64) tune.Value {
	switch {
	case len(p.Values) > 0:
		return math.Min(math.Floor(u*float64(len(p.Values))), float64(len(p.Values)-1))
	case p.Sigma > 0:
		v := p.Mu + p.Sigma*math.Sqrt2*math.Erfinv(2*math.Min(math.Max(u, 1e-12), 1-1e-12)-1)
		if p.Log {
			v = math.Min(math.Exp(v), maxNumber)
		}
		return p.round(v)
	}
	lo, hi := p.Min, p.Max
	if s := p.step(); s > 0 && !p.Log { // the first and the last value are as likely as the others
		lo, hi = math.Ceil(lo/s-1e-9)*s-s/2, math.Floor(hi/s+1e-9)*s+s/2
	}
	v := lo + u*(hi-lo)
	if p.Log {
		v = math.Exp(math.Log(lo) + u*(math.Log(hi)-math.Log(lo)))
	}
	return math.Min(math.Max(p.round(v), p.Min), p.Max)
}

// round returns the closest valid value.
func (p *Param) round(v float64) float64 {
	if s := p.step(); s > 0 {
		v = math.Round(v/s) * s
	}
	if p.Int {
		return math.Round(v)
	}
	return digits(v)
}

// digits rounds to six digits: values are then equal on all processors, and readable.
func digits(v float64) float64 {
	short, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 6, 64), 64)
	if err != nil {
		return v
	}
	return short
}

func (p *Param) tuned() tune.Param {
	q := tune.Param{Name: p.Name, Low: p.Min, High: p.Max, Log: p.Log, Type: tune.Float}
	switch {
	case len(p.Values) > 0:
		q.Type, q.Choices = tune.Categorical, p.Values
	case p.Int:
		q.Type = tune.Int
	}
	return q
}

// text formats a value for programs.
func (p *Param) text(v tune.Value) string {
	switch {
	case len(p.Values) > 0:
		return unquoted(p.Values[int(v)])
	case p.Int:
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}
