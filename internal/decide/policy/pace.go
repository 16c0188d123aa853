package policy

import (
	"math"
	"time"

	"scrimp/internal/lib/quantity"
)

// Pace measures how steadily work gets done: the spread of its rate over samples. The zero Pace has no samples.
type Pace struct {
	Looks float64       `json:"looks"`   // number of samples
	Mean  float64       `json:"mean"`    // rate, in any unit
	M2    float64       `json:"m2"`      // sum of squared deviations from the mean
	Seen  time.Duration `json:"seen_ns"` // total time of the samples
}

// See returns the pace after a sample of the rate over a span.
func (p Pace) See(rate float64, span time.Duration) Pace {
	if span <= 0 || !(rate >= 0) || math.IsInf(rate, 0) {
		return p
	}
	p.Looks++
	d := rate - p.Mean
	p.Mean += d / p.Looks
	p.M2 += float64(d * (rate - p.Mean))
	p.Seen += span
	return p
}

// The spread assumed until there are more samples: a tenth, worth four samples.
const (
	usualSpread     = 0.1
	usualLooks      = 4
	usualMeanSpread = 0.3
)

// Spread is the standard deviation of the rate of one sample, relative to the mean rate:
//
//	s² = (4·0.1² + M2/mean²) / (4 + looks − 1)
func (p Pace) Spread() float64 {
	if p.Looks < 1 || p.Mean <= 0 {
		return usualSpread
	}
	return math.Sqrt((usualLooks*usualSpread*usualSpread + float64(p.M2/p.Mean)/p.Mean) / (usualLooks + p.Looks - 1))
}

// MeanSpread is the standard deviation of the mean rate, relative to it: the spread of one sample over the root of
// the number of samples, or usualMeanSpread with fewer than four samples.
func (p Pace) MeanSpread() float64 {
	if p.Looks < usualLooks {
		return usualMeanSpread
	}
	return p.Spread() / math.Sqrt(p.Looks)
}

// Margin is how much longer than expected the remaining work may take, exceeded with a probability of at most 1 −
// promise:
//
//	z(promise) · s · √(b · left · (1 + left/seen)),   b = seen/looks
//
// The remaining work is a sum of samples with deviation s each, and the mean rate itself is known only from the
// samples so far (the variance of a prediction from n to m equal parts is s²·b²·m·(1 + m/n)). Example: left=2 h,
// seen=1 h in 60 samples of a minute, s=0.1 and 99 %: 2.33 · 0.1 · √(1 min · 120 min · 3) = 4.4 min. The margin is
// 0 without a sample, because it is unknown. TestGuard_KeepsItsPromiseForUncertainWork checks it.
func (p Pace) Margin(left time.Duration, promise float64) time.Duration {
	if p.Looks < 1 || p.Seen <= 0 || left <= 0 || promise <= 0.5 || promise >= 1 {
		return 0
	}
	z := math.Sqrt2 * math.Erfinv(2*promise-1)
	block := p.Seen.Seconds() / p.Looks
	l := left.Seconds()
	d := z * p.Spread() * math.Sqrt(float64(block*l)*(1+l/p.Seen.Seconds()))
	if !(d < left.Seconds()+1) { // also if d is NaN
		return left
	}
	return min(time.Duration(quantity.Int(d))*time.Second, left)
}
