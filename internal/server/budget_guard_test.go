package server

import (
	"fmt"
	"testing"

	"scrimp/internal/budget"
	"scrimp/internal/core"
	"scrimp/internal/ledger"
)

// However many jobs of a spent limit wait, all are stopped and those of others are not,
// so many at a time that others have their turn between them.
func TestAllThatWaitUnderASpentLimitAreStoppedInParts(t *testing.T) {
	w := newWorld(t, nil)
	const jobs = 2*stopsAtOnce + 10
	var events []core.Event
	for i := range jobs {
		team := "a"
		if i%3 == 0 {
			team = "b"
		}
		id := fmt.Sprint("j", i)
		events = append(events, core.Event{At: w.control.Now(), Schema: core.Schema, Tenant: "default",
			Body: core.JobSubmitted{Job: id, Terms: core.Terms{Name: id, Owner: ledger.Owner{Team: team}}}})
	}
	if err := w.control.Propose(t.Context(), events...); err != nil {
		t.Fatal(err)
	}
	l := budget.Limit{Scope: "team:a", Window: budget.Month}
	w.stopAll(t.Context(), l, budget.Accounts{Outstanding: map[string]budget.Use{l.Name(): {Jobs: 1}}})
	w.control.Read(func(m *core.Machine) {
		for j := range m.Jobs() {
			if stopped := j.State() == core.Stopped; stopped != (j.Terms().Owner.Team == "a") {
				t.Fatalf("%s of team %s is %s", j.ID(), j.Terms().Owner.Team, j.State())
			}
		}
	})
	n, last := 0, w.control.Now()
	for r := range w.eachRecord(t) {
		if r.Kind != "job_ended" {
			continue
		}
		if !r.At.Equal(last) {
			n, last = 0, r.At
		}
		if n++; n > stopsAtOnce {
			t.Fatalf("more than %d jobs are stopped at once", stopsAtOnce)
		}
	}
}
