package study

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"scrimp/internal/work/tune"
)

// A Past is a configuration that an earlier search has trained.
type Past struct {
	Params []string `json:"params"` // its values in parameter order, as programs get them
	Points []Point  `json:"points"`
}

// A Point is a value of the metric after some training.
type Point struct {
	Unit  float64 `json:"unit"` // in the fidelity; 0 without a fidelity
	Value float64 `json:"value"`
}

// Bounds of what earlier searches have found.
const (
	MaxPast   = 2_000
	MaxPoints = 20_000 // of all configurations together
)

// checkPast returns an error for a configuration of an earlier search that is not in the space.
func (s *Spec) checkPast() (field string, err error) {
	n := 0
	switch {
	case len(s.Past) == 0:
		return "", nil
	case s.Searcher != "default":
		return "past", fmt.Errorf("the searcher %s does not learn from earlier searches: take the searcher default",
			s.Searcher)
	case len(s.Past) > MaxPast:
		return "past", fmt.Errorf("%d configurations: give at most %d", len(s.Past), MaxPast)
	}
	for i, p := range s.Past {
		if err := s.checkOne(p); err != nil {
			return "past", fmt.Errorf("configuration %d: %w", i, err)
		}
		if n += len(p.Points); n > MaxPoints {
			return "past", fmt.Errorf("more than %d values: give fewer configurations", MaxPoints)
		}
	}
	return "", nil
}

func (s *Spec) checkOne(p Past) error {
	if len(p.Params) != len(s.Params) {
		return fmt.Errorf("it has %d parameters, and the space has %d", len(p.Params), len(s.Params))
	}
	for d := range s.Params {
		if _, err := s.Params[d].Read(p.Params[d]); err != nil {
			return fmt.Errorf("%s: %w", s.Params[d].Name, err)
		}
	}
	if len(p.Points) == 0 {
		return errors.New("it has no value of the metric")
	}
	at := map[float64]float64{}
	for _, v := range p.Points {
		if err := s.CheckPoint(v); err != nil {
			return err
		}
		was, there := at[v.Unit]
		if there && was != v.Value && s.Fidelity.Name != "" {
			return fmt.Errorf("it has two values at %s %g, %g and %g: leave one out", s.Fidelity.Name, v.Unit, was, v.Value)
		}
		at[v.Unit] = v.Value
	}
	return nil
}

// CheckPoint returns an error for a value that no trial of this search can have.
func (s *Spec) CheckPoint(v Point) error {
	switch {
	case !tune.Finite(v.Value) || !(v.Unit >= 0 && v.Unit <= maxLength):
		return fmt.Errorf("the value %g at %g is not finite, or beyond what can be trained", v.Value, v.Unit)
	case s.Fidelity.Name != "" && v.Unit > s.Length(false).Max:
		of := "fidelity"
		if s.Proxy != nil && s.Proxy.Max > 0 {
			of = "proxy"
		}
		return fmt.Errorf("the value %g at %s %g is beyond the %s's max of %g: leave it out, or raise max", v.Value,
			s.Fidelity.Name, v.Unit, of, s.Length(false).Max)
	}
	return nil
}

// Tuned returns what earlier searches have found for a searcher, which minimizes.
func (s *Spec) Tuned() (list []tune.Past) {
	for _, p := range s.Past {
		q := tune.Past{}
		for d := range s.Params {
			v, err := s.Params[d].Read(p.Params[d])
			if err != nil {
				return nil // Check refuses it
			}
			q.Values = append(q.Values, v)
		}
		for _, v := range p.Points {
			value, unit := v.Value, s.Length(false).Unit(int64(v.Unit), v.Unit)
			if s.Maximize {
				value = -value
			}
			if unit > 0 { // the model has no place for a value before the first unit
				q.Points = append(q.Points, tune.Point{Epoch: unit, Value: value})
			}
		}
		list = append(list, q)
	}
	return list
}

// Read returns the value that a program gets as text, or why it is not in the space.
func (p *Param) Read(text string) (tune.Value, error) {
	for i := range p.Values {
		if p.text(float64(i)) == text {
			return float64(i), nil
		}
	}
	if len(p.Values) > 0 {
		return 0, fmt.Errorf("%.40q is none of its %d values", text, len(p.Values))
	}
	v, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil || !tune.Finite(v) || math.Abs(v) > maxNumber:
		return 0, fmt.Errorf("%.40q is not a number from -%g to %g", text, maxNumber, maxNumber)
	case p.Sigma > 0:
		return v, nil
	case v < p.Min || v > p.Max:
		return 0, fmt.Errorf("%g is not between min %g and max %g", v, p.Min, p.Max)
	case p.Int && v != math.Round(v):
		return 0, fmt.Errorf("%g is not a whole number", v)
	}
	return v, nil
}
