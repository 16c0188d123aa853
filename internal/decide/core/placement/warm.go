package placement

import (
	"time"

	"scrimp/internal/decide/state"
)

// IdleUntil is when a machine that waits is given back: once its time is over, or what is held
// for it would be spent at the present price.
func (dc *Decider) IdleUntil(i *state.Instance, idle *state.Idle) time.Time {
	rate := i.PresentRate()
	keep := idle.Keep
	if most := idle.From.Add(dc.market.TimingOf(i.Machine()).Idle); most.Before(keep) { // it was set anew
		keep = most
	}
	left := idle.Most.Sub(idle.Posted).Sub(i.Cost(dc.Now()).Sub(i.Posted()))
	if !keep.After(dc.Now()) || rate <= 0 || rate.Until(keep.Sub(dc.Now())).Cmp(left) <= 0 {
		return keep
	}
	span, _ := rate.Buys(left)
	return dc.Now().Add(max(0, span))
}
