package policy

import (
	"math"
	"time"

	"scrimp/internal/lib/quantity"
)

// Interval returns the time between checkpoints that minimizes the loss.
//
//	τ = √(2·δ·M) · (1 + ⅓·√(δ/2M) + ⅑·δ/2M) − δ    for δ < 2M
//	τ = M                                            for δ ≥ 2M
//
//	δ  cost of one checkpoint, M  mean time between interruptions
//
// The first factor is Young's (1974); the whole is Daly's higher-order estimate (2006). δ=10 s, M=1 h gives
// √(72,000) ≈ 268 s, and 262 s with the correction. The result is never below one second. TestInterval_MinimizesTheLoss
// compares it with a search.
func Interval(cost, between time.Duration) time.Duration {
	d, m := cost.Seconds(), between.Seconds()
	if d <= 0 || m <= 0 {
		return 0
	}
	tau := m
	if d < 2*m {
		x := d / (2 * m)
		tau = float64(math.Sqrt(2*d*m)*float64(1+float64(math.Sqrt(x)/3)+float64(x/9))) - d
	}
	return quantity.Nanoseconds(max(tau, 1) * float64(time.Second))
}

// Hazard counts observations of how long spot machines last.
type Hazard struct {
	Lost   int           `json:"lost"`      // interruptions observed
	Served time.Duration `json:"served_ns"` // spot time observed
}

// prior is one interruption in four hours of spot: close to the mean of the zones in the public traces (0.7 to 10.4
// h), and soon outweighed by observations.
const prior = 4 * time.Hour

// Between returns the mean time between interruptions: a Gamma prior worth one interruption in four hours, updated
// by observations.
//
//	M = (4 h + served) / (1 + lost)
func (h Hazard) Between() time.Duration {
	return quantity.Add(prior, h.Served) / time.Duration(1+h.Lost)
}
