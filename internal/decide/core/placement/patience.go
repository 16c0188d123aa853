package placement

import (
	"time"

	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// GangEnd is when an allocation with some of its machines stops waiting for the others; zero if it has none, or
// needs no others.
func (dc *Decider) GangEnd(a *state.Allocation) time.Time {
	if a.Nodes() == 1 || len(a.Granted()) == 0 {
		return time.Time{}
	}
	return a.Since().Add(max(dc.market.TimingOf(a.Machine()).GrantWait, GrantPatience))
}

// GrantPatience is how long a launch may stay unanswered, unless the engine states a longer time.
const GrantPatience = 10 * time.Minute

// Patience is how long a job waits for the answer to a launch before it tries other offers.
func (dc *Decider) Patience(a *state.Allocation) time.Duration {
	t := dc.market.TimingOf(a.Machine())
	return max(t.GrantWait, t.Detect, GrantPatience)
}

// LooksFurther is when a job reviews its pending allocation: after its patience, or, if it waits for spot, when its
// guard applies.
func (dc *Decider) LooksFurther(j *state.Job, a *state.Allocation) time.Time {
	at := a.Requested().Add(dc.Patience(a))
	if end := dc.GangEnd(a); !end.IsZero() {
		return end
	}
	if a.Machine().Capacity != market.Spot {
		return at
	}
	if guard, ok := dc.Progress(j, j.Last().Speed).GuardAt(false); ok && guard.Before(at) {
		at = guard
	}
	return at
}

// rateOf is the currently quoted hourly price of the requested offer.
func (dc *Decider) rateOf(a *state.Allocation) money.Rate {
	if l := dc.State.Listing(a.Offer()); l != nil {
		return l.Quote().Rate
	}
	return a.Rate()
}

// IsSpotOffer reports whether the machines of an offer may be interrupted.
func (dc *Decider) IsSpotOffer(id market.OfferID) bool {
	l := dc.State.Listing(id)
	return l != nil && l.Offer().Capacity == market.Spot
}

// IsSpot reports whether the attempt's machine may be interrupted.
func IsSpot(a *state.Attempt) bool { return a.Capacity() == market.Spot }
