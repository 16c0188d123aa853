package lifecycle

import (
	"slices"

	"scrimp/internal/decide/state"
)

// SeatsFreed lets the jobs go on for which a reserved machine was kept that came free, and
// reports whether one did.
func (mv *Mover) SeatsFreed() bool {
	if !mv.instances.freedReserved {
		return false
	}
	mv.instances.freedReserved = false
	for _, j := range slices.Clone(mv.bids.Rounds.Kept) {
		if offer, _ := j.Kept(mv.Now()); offer != "" && j.State() == state.Running {
			mv.attempts.reviewJob(j)
		}
	}
	return true
}
