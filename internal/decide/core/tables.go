package core

import (
	"time"

	"scrimp/internal/decide/plan"
)

// awaited is a table that was asked for, with the jobs that are decided without it. It is
// not part of the state: after a restart it is asked for again.
type awaited struct {
	since time.Time
	jobs  []*Job
}

const (
	// tableAgain is after how long a table is asked for again that has not come.
	tableAgain = 10 * time.Minute
	// mostAwaited is how many are awaited before those are forgotten that did not come.
	mostAwaited = 1024
)

// wantsTable asks for the table that the newest decision about j lacks; nil: none.
func (m *Machine) wantsTable(j *Job, r *plan.TableRequest) {
	p := lookoutOf(j)
	if r == nil {
		p.table = nil
		return
	}
	key := r.Key()
	t := m.tables[key]
	if t == nil {
		m.forgetTables()
		t = &awaited{}
		m.tables[key] = t
	}
	if p.table != t {
		p.table, t.jobs = t, append(t.jobs, j)
	}
	if t.since.IsZero() || m.now().Sub(t.since) >= tableAgain {
		t.since = m.now()
		m.out.Actions = append(m.out.Actions, BuildTable{Request: *r})
	}
}

func (m *Machine) forgetTables() {
	if len(m.tables) < mostAwaited {
		return
	}
	for key, t := range m.tables {
		if m.now().Sub(t.since) >= tableAgain {
			delete(m.tables, key)
		}
	}
}

// Adopt keeps a table that was asked for, for the decisions to come. TableReady is to be
// the next event.
func (m *Machine) Adopt(t plan.Table) { m.planner.Adopt(t) }

// tableReady has the jobs decided again that were without it.
func (m *Machine) tableReady(key string) {
	t := m.tables[key]
	if t == nil {
		return
	}
	delete(m.tables, key)
	waits := false
	for _, j := range t.jobs {
		if lookoutOf(j).table != t {
			continue
		}
		lookoutOf(j).table = nil
		if j.Holds() {
			m.review.add(j)
		} else {
			waits = true
		}
	}
	if waits {
		m.queue.changed()
	}
}
