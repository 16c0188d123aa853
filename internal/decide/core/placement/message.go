package placement

import (
	"time"

	"scrimp/internal/decide/policy"
	"scrimp/internal/decide/policy/horizon"
	"scrimp/internal/decide/state"
)

// between is the mean time between losses of the attempt's machine.
func (dc *Decider) between(a *state.Attempt) time.Duration {
	between := policy.Hazard{}.Between()
	if l := dc.State.Listing(a.Offer()); l != nil {
		between = l.Hazard().Between() / time.Duration(a.Nodes()) // any of them ends the attempt
		if w := l.Watch(); w.Known && w.Up {                      // at the period's present age, not in the mean
			offer := horizon.Public.Between(w.At(dc.Now())) // when it ends all its machines go
			if a.Nodes() > 1 {
				offer = min(offer, between)
			}
			between = offer
		}
		if most := l.Offer().MaxLifetime; most > 0 {
			between = min(between, most)
		}
	}
	if !IsSpot(a) {
		between *= 10 // on-demand machines still break
	}
	return between
}
