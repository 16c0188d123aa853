package placement

import (
	"time"

	"scrimp/internal/decide/policy"
	"scrimp/internal/decide/policy/onezone"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/quantity"
)

// between is the mean time between losses of the attempt's machine.
func (dc *Decider) between(a *state.Attempt) time.Duration {
	between := policy.Hazard{}.Between()
	if l := dc.State.Listing(a.Offer()); l != nil {
		// Any loss ends the attempt. Until seen otherwise, machines are lost alone: saving too often costs little.
		between = quantity.Over(l.Hazard().Between(), dc.State.Gangs().Times(a.Nodes(), 1))
		if w := l.Watch(); w.Known && w.Up { // at the current age of the period, not on average
			offer := onezone.Public.Between(w.At(dc.Now())) // all machines of the offer end with it
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
