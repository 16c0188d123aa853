package plan

import (
	"time"

	"scrimp/internal/decide/policy/warm"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// KeepWarm is how long a machine of an offer, which has run for age, waits for the next job at most: as long as that is
// expected to save what a start takes, with gaps between the jobs of its user so far, but no longer than most. It is
// paid for so long anyway. Where the offer has a longest lifetime, half of it is to be of use.
func KeepWarm(o *market.Offer, age, start, paid time.Duration, gaps []time.Duration, most time.Duration) time.Duration {
	keep := min(warm.Keep(start, paid, gaps), most)
	if o.MaxLifetime > 0 {
		keep = min(keep, o.MaxLifetime/2-age)
	}
	return keep
}

// WaitWarm is how much longer a machine waits that is to wait for keep: no longer than what is left of the money held
// for that buys at its present price. It is negative where the time is over.
func WaitWarm(rate money.Rate, keep time.Duration, left money.Amount) time.Duration {
	if keep <= 0 || rate <= 0 || rate.Until(keep).Cmp(left) <= 0 {
		return keep
	}
	span, _ := rate.Buys(left)
	return max(0, span)
}

// AffordsWarm reports whether what is left of a budget pays for work on a machine that is paid for so long anyway.
func AffordsWarm(rate money.Rate, work, paid time.Duration, budget money.Amount) bool {
	return rate.Until(max(work, paid)).Cmp(budget) < 0
}
