package admission

import (
	"time"
)

// guarded is how a limit of dollars is kept while its jobs run.
type guarded struct {
	Next    time.Time // when it is checked again; zero: when something happens that can spend of it
	Checked time.Time
	Stops   bool // its jobs are being stopped
	// passed is the order of the last job that the stop has gone through, of all, when none of it runs any more.
	Passed uint64
}

func (g *guarded) Due(now time.Time) bool {
	return g.Checked.IsZero() || !g.Next.IsZero() && !g.Next.After(now)
}
