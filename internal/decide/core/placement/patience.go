package placement

import (
	"time"

	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// GangEnd is until when an allocation that has some of its machines waits for the others; zero:
// it has none, or nobody else is to come.
func (dc *Decider) GangEnd(a *state.Allocation) time.Time {
	if a.Nodes() == 1 || len(a.Granted()) == 0 {
		return time.Time{}
	}
	return a.Since().Add(max(dc.market.TimingOf(a.Machine()).GrantWait, GrantPatience))
}

// unanswered launches are waited for so long, where the engine does not state longer.
const GrantPatience = 10 * time.Minute

// Patience is how long an answer to a launch is waited for before the job looks further.
func (dc *Decider) Patience(a *state.Allocation) time.Duration {
	t := dc.market.TimingOf(a.Machine())
	return max(t.GrantWait, t.Detect, GrantPatience)
}

// LooksFurther is when a job that waits for an allocation reviews it: after patience, or,
// where it waits for spot, when its guard holds.
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

// rate is the price of an hour of what the allocation asks for, as it is quoted now.
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
