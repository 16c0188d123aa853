package simulate

import (
	"math"

	"scrimp/internal/decide/core"
	"scrimp/internal/sim"
)

// leasts is the least in dollars that each run could have cost. The optimum is found on a grid of
// time, which a run that fits between two of its points may be a little below: whatever was played
// in time is possible too, so the least of both holds.
type leasts map[int]float64

// found takes what the grid says of a run.
func (l leasts) found(run int, usd float64) {
	if old, ok := l[run]; !ok || usd < old {
		l[run] = usd
	}
}

// played takes a run that a policy was played on.
func (l leasts) played(run int, p sim.Played) {
	if p.State == core.Succeeded && p.InTime {
		l.found(run, p.Cost.Float())
	}
}

// sum is that of all runs.
func (l leasts) sum() (usd float64) {
	for run := range len(l) {
		usd += l[run]
	}
	return math.Max(0, usd)
}
