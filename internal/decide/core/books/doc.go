// Package books books what machines cost: postings for what their time was for, bills, the time between tasks, and the
// sums by team and hour that the history shows.
package books

import (
	"scrimp/internal/decide/core/step"
)

// Books is the accounting of the core.
type Books struct {
	*step.Context

	ByTeam map[AccountKey]*Account // what the jobs of each team and project come to
	Past   Past                    // of jobs that hold no machine any more
	lists  Lists                   // on-demand prices
}

// New keeps empty books.
func New(c *step.Context) *Books {
	return &Books{Context: c, ByTeam: map[AccountKey]*Account{}, Past: NewPast()}
}
