package placement

import (
	"time"

	"scrimp/internal/decide/state"
)

// GangEnd is until when an allocation that has some of its machines waits for the others; zero:
// it has none, or nobody else is to come.
func (dc *Decider) GangEnd(a *state.Allocation) time.Time {
	if a.Nodes() == 1 || len(a.Granted()) == 0 {
		return time.Time{}
	}
	return a.Since().Add(max(dc.market.TimingOf(a.Machine()).GrantWait, GrantPatience))
}
