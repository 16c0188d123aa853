// Package accounting books what machines cost: postings by use of time, bills, idle time between tasks, and the sums by
// team and hour that the history shows.
package accounting

import (
	"scrimp/internal/decide/core/step"
)

// Books is the accounting of the core.
type Books struct {
	*step.Context

	ByTeam map[AccountKey]*Account // sums over the jobs of each team and project
	Past   Past                    // jobs that no longer have a machine
	lists  Lists                   // on-demand prices
}

// New returns empty Books.
func New(c *step.Context) *Books {
	return &Books{Context: c, ByTeam: map[AccountKey]*Account{}, Past: NewPast()}
}
