package study

import (
	"fmt"

	"scrimp/internal/work/tune"
)

// A Plateau is when a search ends by itself: once the expected gain of another dollar stays too small. The gain that
// pays is MinGain, or one divided by PointValue.
type Plateau struct {
	Patience   int     `json:"patience,omitempty"`         // consecutive reports; 0: those of 15 % of the spend
	MinGain    float64 `json:"min_gain_per_usd,omitempty"` // of the metric per dollar
	PointValue float64 `json:"point_value_usd,omitempty"`  // worth of an improvement of the metric by 1, in dollars
}

// Bounds of a plateau.
const (
	MaxPatience = 100_000
	leastRate   = 1e-12
	mostRate    = 1e12
)

// Least returns the gain per dollar that pays; 0 without a plateau.
func (p *Plateau) Least() float64 {
	switch {
	case p == nil:
		return 0
	case p.PointValue > 0:
		return 1 / p.PointValue
	}
	return p.MinGain
}

// Tuned returns the plateau for a searcher whose costs are dollars.
func (p *Plateau) Tuned() tune.Plateau {
	if p == nil {
		return tune.Plateau{}
	}
	return tune.Plateau{MinGain: p.Least(), Patience: p.Patience}
}

func (p *Plateau) check() error {
	within := func(v float64) bool { return v >= leastRate && v <= mostRate }
	switch {
	case p == nil:
		return nil
	case p.Patience < 0 || p.Patience > MaxPatience:
		return fmt.Errorf("patience is %d: give 1 to %d reports, or leave it out", p.Patience, MaxPatience)
	case (p.MinGain != 0) == (p.PointValue != 0):
		return fmt.Errorf("give either min_gain_per_usd or point_value")
	case p.MinGain != 0 && !within(p.MinGain):
		return fmt.Errorf("min_gain_per_usd is %g: give %g to %g", p.MinGain, leastRate, mostRate)
	case p.PointValue != 0 && !within(p.PointValue):
		return fmt.Errorf("point_value is %g: give %g to %g dollars", p.PointValue, leastRate, mostRate)
	}
	return nil
}
