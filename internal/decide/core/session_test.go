package core

import (
	"math"
	"testing"
	"time"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/policy"
	"scrimp/internal/lib/money"
)

// session returns a world in which the program of a session runs, until ten minutes without use.
func session(t *testing.T) *warmRig {
	t.Helper()
	w := newWarm(t, nil)
	w.step(10*time.Second, MachineCleaned{Instance: "i1"})
	w.by("", 0, JobSubmitted{Job: "a", Terms: Terms{Name: "a", Session: "shell", Currency: money.USD, Restart: time.Minute,
		Saves: true, Owner: ledger.Owner{Team: "vision"}, Budget: w.most, HasBudget: true, IdleLimit: 10 * time.Minute}})
	w.step(0, AgentClaimed{Attempt: "a.1"})
	w.step(0, AttemptStarted{Attempt: "a.1"})
	return w
}

// The agent's report decides whether a session is in use, whatever its processors and GPUs do.
func TestSession_IsIdleIfItsAgentReportsIt(t *testing.T) {
	for _, used := range []bool{true, false} {
		w := session(t)
		for n := int64(1); n < 13; n++ {
			w.step(time.Minute, UsageSeen{Attempt: "a.1", Message: n, CPU: map[bool]float64{true: 0, false: 8}[used], InUse: &used})
		}
		a := w.State().Attempt("a.1")
		if a.Draining() == used || !used && a.DrainWhy() != string(policy.MachineIdle) {
			t.Errorf("in use %v: draining %v (%s)", used, a.Draining(), a.DrainWhy())
		}
	}
}

// A session whose program exits is stopped. It can be resumed as the same job with one total cost.
func TestSession_ExitStopsAndResumes(t *testing.T) {
	w := session(t)
	w.step(time.Minute, AttemptEnded{Attempt: "a.1", Message: 1, Reason: "completed", Saved: true})
	j := w.State().Job("a")
	if j.State() != Stopped || j.Why() != "session_left" {
		t.Fatalf("it is %s: %s", j.State(), j.Why())
	}
	w.step(time.Minute, JobResumed{Job: "a"})
	if j := w.State().Job("a"); j.State().Over() {
		t.Errorf("it is %s: %s", j.State(), j.Why())
	}
}

// The time of a session is useful up to its end if its files are saved then, and otherwise up to its last save.
func TestSession_IsUsedUntilItsEndOrLastSave(t *testing.T) {
	for _, saved := range []bool{true, false} {
		w := session(t)
		w.step(time.Minute, CheckpointSaved{Attempt: "a.1", Message: 1, Captured: w.State().Now().Add(time.Minute)})
		w.step(5*time.Minute, AttemptEnded{Attempt: "a.1", Message: 2, Reason: "drained", Saved: saved})
		uses := w.State().Job("a").Attempts()[0].Uses()
		useful, lost := uses[ledger.Useful], uses[ledger.Lost]
		if saved != lost.IsZero() || math.Abs(useful.Float()-map[bool]float64{true: 6, false: 1}[saved]/60) > 1e-9 {
			t.Errorf("saved %v: useful %v, lost %v", saved, useful, lost)
		}
	}
}
