package placement

import (
	"time"

	"scrimp/internal/decide/core/step"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/state"
)

// Awaited is a requested table with the jobs that are decided without it. It is not part of the state; after a
// restart it is requested again.
type Awaited struct {
	since time.Time
	Jobs  []*state.Job
}

const (
	// tableAgain is how long after its request a missing table is requested again.
	tableAgain = 10 * time.Minute
	// mostAwaited is how many tables are awaited before overdue ones are dropped.
	mostAwaited = 1024
)

// WantsTable requests the table that the newest decision about j lacks; nil: none.
func (mk *Market) WantsTable(j *state.Job, r *plan.TableRequest) {
	p := LookoutOf(j)
	if r == nil {
		p.Table = nil
		return
	}
	key := r.Key()
	t := mk.Tables[key]
	if t == nil {
		mk.forgetTables()
		t = &Awaited{}
		mk.Tables[key] = t
	}
	if p.Table != t {
		p.Table, t.Jobs = t, append(t.Jobs, j)
	}
	if t.since.IsZero() || mk.Now().Sub(t.since) >= tableAgain {
		t.since = mk.Now()
		mk.Out.Actions = append(mk.Out.Actions, step.BuildTable{Request: *r})
	}
}

func (mk *Market) forgetTables() {
	if len(mk.Tables) < mostAwaited {
		return
	}
	for key, t := range mk.Tables {
		if mk.Now().Sub(t.since) >= tableAgain {
			delete(mk.Tables, key)
		}
	}
}

// Adopt keeps a requested table for later decisions. TableReady must be the next event.
func (mk *Market) Adopt(t plan.Table) { mk.Planner.Adopt(t) }
