package policy

import (
	"math"
	"time"

	"scrimp/internal/lib/quantity"
)

// Pace is how steadily work gets done: the spread of its rate from one look to
// the next. The zero Pace has seen nothing.
type Pace struct {
	Looks float64       `json:"looks"`   // how many
	Mean  float64       `json:"mean"`    // rate, any unit
	M2    float64       `json:"m2"`      // sum of squared distances from the mean
	Seen  time.Duration `json:"seen_ns"` // time looked at in all
}

// See returns the pace after a look at the rate over a span.
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

// The spread that is taken until looks say more: a tenth, worth four looks.
const (
	usualSpread     = 0.1
	usualLooks      = 4
	usualMeanSpread = 0.3
)

// Spread is the standard deviation of the rate of one look, as a share of the
// mean rate:
//
//	s² = (4·0.1² + M2/mean²) / (4 + looks − 1)
func (p Pace) Spread() float64 {
	if p.Looks < 1 || p.Mean <= 0 {
		return usualSpread
	}
	return math.Sqrt((usualLooks*usualSpread*usualSpread + float64(p.M2/p.Mean)/p.Mean) / (usualLooks + p.Looks - 1))
}

// MeanSpread is the standard deviation of the mean rate, as a share of it: the spread of one look by the
// number of looks, that of usualMeanSpread until there are four.
func (p Pace) MeanSpread() float64 {
	if p.Looks < usualLooks {
		return usualMeanSpread
	}
	return p.Spread() / math.Sqrt(p.Looks)
}

// Margin is how much longer than expected the work left may take, with a
// probability of no more than 1 − promise:
//
//	z(promise) · s · √(b · left · (1 + left/seen)),   b = seen/looks
//
// left over is the sum of looks that vary by s each, and the mean rate itself is
// known from the looks so far (the variance of a prediction from n to m equal
// parts: s²·b²·m·(1 + m/n)). left=2 h, seen=1 h in 60 looks of a minute, s=0.1
// and 99 %: 2.33 · 0.1 · √(1 min · 120 min · 3) = 4.4 min. 0 without a look: nobody
// can say. Held by TestThePromiseIsKeptForUncertainWork.
func (p Pace) Margin(left time.Duration, promise float64) time.Duration {
	if p.Looks < 1 || p.Seen <= 0 || left <= 0 || promise <= 0.5 || promise >= 1 {
		return 0
	}
	z := math.Sqrt2 * math.Erfinv(2*promise-1)
	block := p.Seen.Seconds() / p.Looks
	l := left.Seconds()
	d := z * p.Spread() * math.Sqrt(float64(block*l)*(1+l/p.Seen.Seconds()))
	if !(d < left.Seconds()+1) { // also what is no number
		return left
	}
	return min(time.Duration(quantity.Int(d))*time.Second, left)
}
