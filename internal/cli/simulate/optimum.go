package simulate

import (
	"math"

	"scrimp/internal/decide/core"
	"scrimp/internal/sim"
)

// leasts holds the least possible cost of each run in dollars. The optimum search uses a time grid, so a run that ends
// between two grid points can cost slightly less. A run that a policy played in time is possible, too, so the minimum
// of both counts.
type leasts map[int]float64

// found records the grid's optimum of a run.
func (l leasts) found(run int, usd float64) {
	if old, ok := l[run]; !ok || usd < old {
		l[run] = usd
	}
}

// played records a run that a policy played.
func (l leasts) played(run int, p sim.Played) {
	if p.State == core.Succeeded && p.InTime {
		l.found(run, p.Cost.Float())
	}
}

// sum returns the total of all runs.
func (l leasts) sum() (usd float64) {
	for run := range len(l) {
		usd += l[run]
	}
	return math.Max(0, usd)
}
