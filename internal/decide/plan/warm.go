package plan

import (
	"time"

	"scrimp/internal/decide/policy/warm"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// KeepWarm returns the longest time that an idle machine of an offer, which has run for age, waits for the next
// job: as long as that is expected to save the time of a start, given the gaps between the user's jobs so far, but
// no longer than most. paid is the time that is billed in any case. If machines have a longest lifetime, half of it
// must remain for work.
func KeepWarm(o *market.Offer, age, start, paid time.Duration, gaps []time.Duration, most time.Duration) time.Duration {
	keep := min(warm.Keep(start, paid, gaps), most)
	if o.MaxLifetime > 0 {
		keep = min(keep, o.MaxLifetime/2-age)
	}
	return keep
}

// WaitWarm returns how much longer an idle machine waits: keep, or less if the remaining held money buys less at
// the current price. It is negative if the time is over.
func WaitWarm(rate money.Rate, keep time.Duration, left money.Amount) time.Duration {
	if keep <= 0 || rate <= 0 || rate.Until(keep).Cmp(left) <= 0 {
		return keep
	}
	span, _ := rate.Buys(left)
	return max(0, span)
}

// AffordsWarm reports whether the remaining budget pays for work on a machine that is billed for at least paid.
func AffordsWarm(rate money.Rate, work, paid time.Duration, budget money.Amount) bool {
	return rate.Until(max(work, paid)).Cmp(budget) < 0
}
