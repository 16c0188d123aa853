package state

import (
	"slices"
	"testing"
)

// illegal counts the transitions that a table refuses. It fails if move allows a transition that the table lacks,
// or refuses one that it has.
func illegal[P ~string](t *testing.T, what string, next map[P][]P, all []P) (refused int) {
	t.Helper()
	try := func(from, to P) (ok bool) {
		defer func() { ok = recover() == nil }()
		at := from
		move(next, what, "x", &at, to)
		if at != to {
			t.Errorf("%s: from %q to %q it is at %q", what, from, to, at)
		}
		return true
	}
	for _, from := range append([]P{""}, all...) {
		for _, to := range all {
			legal := slices.Contains(next[from], to)
			if got := try(from, to); got != legal {
				t.Errorf("%s: from %q to %q is taken: %v, and legal: %v", what, from, to, got, legal)
			}
			if !legal {
				refused++
			}
		}
	}
	for from, list := range next {
		for _, to := range append([]P{from}, list...) {
			if to != "" && !slices.Contains(all, to) {
				t.Errorf("%s: %q is no state", what, to)
			}
		}
	}
	return refused
}

// Each state machine allows exactly the transitions of its table.
func TestMove_AllowsOnlyTableTransitions(t *testing.T) {
	n := illegal(t, "job", NextStatus, Statuses)
	n += illegal(t, "allocation", NextAllocation, []AllocationPhase{Pending, Granted, Refused, Expired, Cancelling, CancelDone})
	n += illegal(t, "task", NextTask, []TaskPhase{Assigned, Starting, TaskRunning, Ended})
	n += illegal(t, "attempt", NextAttempt, []AttemptPhase{Underway, Over})
	n += illegal(t, "instance", NextInstance, []InstancePhase{Provisioning, Ready, Draining, Terminating, Missing, Gone})
	if n < 80 {
		t.Errorf("only %d moves are refused", n)
	}
	for _, s := range Statuses {
		if s.Over() == slices.Contains(NextStatus[s], Cancelled) { // what is not over can be ended
			t.Errorf("a job that is %s is over: %v, and may go to %v", s, s.Over(), NextStatus[s])
		}
	}
}

// A fact about an unknown object, or one that a state machine does not allow, is a bug in the rule that made it:
// Apply panics.
func TestApply_PanicsOnImpossibleFact(t *testing.T) {
	s := New()
	e := Event{Schema: Schema, Tenant: "t", Body: JobSubmitted{Job: "j"}}
	s.Begin(&e)
	s.Apply(&e, JobQueued{Job: "j"})
	s.Apply(&e, JobOver{Job: "j", State: Cancelled, Why: "x"})
	for _, f := range []Fact{
		JobOver{Job: "j", State: Failed}, JobQueued{Job: "j"}, JobEnding{Job: "k"}, AllocationQueued{Allocation: "j.1"},
		AttemptBegan{Attempt: "j.1"}, TaskEnded{Attempt: "j.1"}, InstanceReleased{Instance: "i"}, InstanceClosed{Instance: "i"},
		AllocationGranted{Allocation: "j.1", Instance: "i"},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s is taken: %+v", f.Fact(), f)
				}
			}()
			s.Apply(&e, f)
		}()
	}
}
