package placement

import (
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/state"
)

// nodesOf is the number of machines the job has, or should have.
func (dc *Decider) nodesOf(j *state.Job) int {
	if a := j.Live(); a != nil && a.Task() != state.Ended && j.State() == state.Running {
		return a.Nodes()
	}
	if a := j.Asked(); a != nil {
		return a.Nodes()
	}
	return dc.Enough(j)
}

// Enough is the number of machines the job should have.
func (dc *Decider) Enough(j *state.Job) int {
	least, most := j.Terms().Fewest(), j.Terms().Most()
	if least == most {
		return most
	}
	return plan.Enough(dc.Progress(j, 1), least, most)
}

// Grows reports whether an elastic gang should end for a larger one: the work takes too long on its machines, it
// has run long enough to be worth another start, and nothing indicates that no more machines are available.
func (dc *Decider) Grows(j *state.Job, a *state.Attempt) bool {
	l := dc.State.Listing(a.Offer())
	if l == nil || !l.Quote().Available {
		return false
	}
	if _, cools := dc.State.Cooling(l); cools {
		return false
	}
	return a.Nodes() < j.Terms().Most() && a.Task() == state.TaskRunning && dc.Enough(j) > a.Nodes() &&
		plan.MayGrow(dc.Now().Sub(a.Full()), j.Restart())
}
