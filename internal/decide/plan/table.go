package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"scrimp/internal/decide/policy"
	"scrimp/internal/decide/policy/onezone"
	"scrimp/internal/decide/policy/zonechoice"
	"scrimp/internal/decide/policy/zonechoice/costtogo"
)

// TableVersion names the rules that build tables. It changes whenever a table of the same request would answer
// differently.
const TableVersion = "tables/2"

// TableRequest is the complete input of a table. Exactly one field is set.
type TableRequest struct {
	Zone  *onezone.Piece  `json:"zone,omitempty"`  // for a job weighed in one zone
	Zones *costtogo.Piece `json:"zones,omitempty"` // in several zones
}

// Key is equal for equal requests of one TableVersion, and for no others.
func (r TableRequest) Key() string {
	text, err := json.Marshal(r)
	if err != nil {
		panic(fmt.Sprintf("plan: a table request without JSON: %v", err)) // a price is not a number
	}
	sum := sha256.Sum256(append(text, TableVersion...))
	return hex.EncodeToString(sum[:16])
}

// Table holds the data with which a planner weighs a job's options. It is immutable and safe for concurrent use.
type Table struct {
	key, hash string
	zone      *onezone.Tables
	zones     *costtogo.Table
}

// Build builds the table of a request. It is a pure function, and the slow part of a decision: 10 to 200 ms.
func Build(r TableRequest) Table {
	t, sum := Table{key: r.Key()}, sha256.New()
	switch {
	case r.Zone != nil:
		t.zone = onezone.Build(*r.Zone, onezone.Public)
		t.zone.Sum(sum)
	case r.Zones != nil:
		t.zones = costtogo.Build(*r.Zones)
		t.zones.Sum(sum)
	}
	t.hash = hex.EncodeToString(sum.Sum(nil)[:16])
	return t
}

// Key returns the key of the request.
func (t Table) Key() string { return t.key }

// Hash returns the hash of all answers of the table. It is the same in every run of one build.
func (t Table) Hash() string { return t.hash }

// Bytes returns the memory use of the table.
func (t Table) Bytes() int {
	switch {
	case t.zone != nil:
		return t.zone.Bytes()
	case t.zones != nil:
		return t.zones.Bytes()
	}
	return 0
}

// mostZoneBytes bounds the memory of tables for several zones.
const mostZoneBytes = 256 << 20

// OnRequest keeps m, and planners forked from it later, from building tables. A decision then requests a missing
// table, and Adopt delivers it. OnRequest returns m.
func (m *Planner) OnRequest() *Planner {
	m.zones, m.placed = costtogo.NewShelf(mostZoneBytes), nil
	return m
}

// Adopt keeps a table for later decisions until others need its room; then it is requested again.
func (m *Planner) Adopt(t Table) {
	switch {
	case t.zone != nil:
		m.shelf.Adopt(t.zone)
	case t.zones != nil && m.zones != nil:
		m.zones.Adopt(t.zones)
	}
}

// meanwhile completes a decision whose table is missing. Until the table arrives, it changes nothing that the table
// might change back: a move costs a restart, and a launch may have a minimum charge. So a job keeps the machine it
// holds, spot or on-demand, and a waiting job keeps waiting for as long as a table normally takes. The guard has
// priority, as over every verdict: it was asked before, and d.Again is no later than it. If the table has not
// arrived by then (many jobs at once, or nobody builds tables), Uniform Progress decides for waiting jobs.
func (m *Planner) meanwhile(d *Decision, job *Job, r *ranking, v *policy.View, c choice) {
	d.TableSince = job.TableSince
	if d.TableSince.IsZero() {
		d.TableSince = v.Now
	}
	until := d.TableSince.Add(max(v.Detect, tablePatience))
	c = choice{kind: policy.Wait, step: c.step, weighing: true}
	switch {
	case r.held != nil:
		c.take, c.kind, d.Why = r.held, v.Held, Stays
		until, _ = v.GuardAt(v.Working())
	case v.Now.Before(until):
		d.Why = Weighing
		guard, _ := v.GuardAt(false)
		until = soonest(until, guard)
	default:
		if at, ok := r.probe(job, v); ok {
			d.Probe, d.Why = at, Probing
			m.rejected.explain(d, job, r, nil)
			return
		}
		c.kind = r.uniform(job, v)
		c.take, d.Why = r.take(job, v, &c)
		until = policy.Again(policy.UniformProgress, *v, c.kind)
	}
	d.Again = soonest(until, v.Now.Add(c.step+1)) // the table is then requested again
	c.record(d, job, r)
	m.rejected.explain(d, job, r, &c)
}

// uniform returns the choice of Uniform Progress for a waiting job, unless its losses or its ladder require
// on-demand.
func (r *ranking) uniform(job *Job, v *policy.View) policy.Choice {
	choice := policy.Choose(policy.UniformProgress, *v)
	if r.onDemand != nil && (job.UnsavedLosses >= mostUnsavedLosses || choice == policy.Wait && len(job.Need.Ladder) > 0) {
		return policy.NonPreemptible
	}
	return choice
}

// tablePatience is how long a job waits for its table, in market time. A table takes a fifth of a second, so many
// are built by then.
const tablePatience = time.Minute

// soonest returns the earliest of the times that are set.
func soonest(list ...time.Time) (at time.Time) {
	for _, t := range list {
		if !t.IsZero() && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	return at
}

// missing reports whether the table for a job in one zone must be requested first.
func (m *Planner) missing(d *Decision, p onezone.Problem, seen onezone.Market) bool {
	if m.zones == nil {
		return false
	}
	want, ok := m.shelf.Missing(p, seen)
	if ok {
		d.Table = &TableRequest{Zone: &want}
	}
	return ok
}

// missingZones is missing for a job in several zones.
func (m *Planner) missingZones(d *Decision, p *placed, w *zonechoice.View) bool {
	want, ok := p.see.Missing(*w)
	if ok {
		d.Table = &TableRequest{Zones: &want}
	}
	return ok
}
