package core

import (
	"fmt"
	"testing"
	"time"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/plan"
	"scrimp/internal/lib/money"
)

// A machine that stores the files of an ended program is idle meanwhile. It costs 1 per hour and took one minute
// to start; the program started 9 minutes ago.
func TestProgramEnded_BooksStoringAsIdle(t *testing.T) {
	for _, c := range []struct {
		reason  string
		keeping time.Duration
		want    string
	}{
		{"completed", 0, "map[start-up:0.016666666666 useful:0.15]"},
		{"completed", 6 * time.Minute, "map[idle:0.1 start-up:0.016666666666 useful:0.05]"},
		{"failed", 6 * time.Minute, "map[idle:0.1 lost:0.05 start-up:0.016666666666]"},
		{"completed", -time.Hour, "map[start-up:0.016666666666 useful:0.15]"},
		{"completed", time.Hour, "map[idle:0.15 start-up:0.016666666666]"},
	} {
		w := imageRig(t, "", 0)
		a, _ := w.Attempt("j.1")
		w.step(0, AttemptEnded{Attempt: "j.1", Reason: c.reason, Keeping: c.keeping})
		if got := fmt.Sprint(a.Tasks()[0].Uses()); got != c.want {
			t.Errorf("%s, keeping %v: %s, want %s", c.reason, c.keeping, got, c.want)
		}
	}
}

// A total that covers only one epoch is dropped; if the epochs are counted, it becomes the total of the job.
func TestTotal_IgnoresThatOfOneEpoch(t *testing.T) {
	w := imageRig(t, "", 4)
	w.step(0, JobSubmitted{Job: "k", Terms: Terms{Name: "k", Currency: money.USD, Priority: 1, Restart: time.Minute,
		Owner: ledger.Owner{Team: "vision"}, Need: plan.Need{Requirements: plan.Requirements{CPUs: 1}}}})
	w.begins("k.1")
	for id, known := range map[string]int64{"j": 100, "k": 0} { // the job file of j states its steps
		j, _ := w.Job(id)
		if j.Attempt() == nil {
			t.Fatalf("%s does not run", id)
		}
		for n, c := range []struct{ step, total, want int64 }{{20, 20, 20}, {21, 0, 0}, {41, 400, 400}} {
			if c.want = max(known, c.want); known > 0 {
				c.want = known
			}
			w.step(0, Progressed{Attempt: id + ".1", Message: int64(20 + n), Step: c.step, Total: c.total, Anew: n > 0})
			if j.Total() != c.want || j.Step() != c.step || j.Anew() != (n > 0) {
				t.Errorf("%s: step %d of %d, want %+v", id, j.Step(), j.Total(), c)
			}
		}
	}
}

// A failed copy of a checkpoint is reported until a complete checkpoint is stored, also between attempts.
func TestSaveTrouble_LastsUntilACompleteCheckpoint(t *testing.T) {
	w := imageRig(t, "", 0)
	j, _ := w.Job("j")
	for n, c := range []struct {
		body Body
		want string
	}{
		{CheckpointFailed{Attempt: "j.1", Message: 11, Why: "no room"}, "no room"},
		{Progressed{Attempt: "j.1", Message: 12, Step: 3}, "no room"},
		{CheckpointFailed{Attempt: "j.1", Message: 11, Why: "heard before"}, "no room"},
		{CheckpointSaved{Attempt: "j.1", Message: 13, Manifest: "m", Step: 3, Lacks: "base"}, "base"},
		{CheckpointSaved{Attempt: "j.1", Message: 14, Manifest: "m", Step: 4}, ""},
		{CheckpointFailed{Attempt: "j.1", Message: 15, Why: "no room"}, "no room"},
		{AttemptEnded{Attempt: "j.1", Message: 16, Reason: "failed"}, "no room"},
	} {
		w.step(0, c.body)
		if got := j.SaveTrouble(); got != c.want {
			t.Errorf("after %d: %q, want %q", n, got, c.want)
		}
	}
}

// A program that fails loses the work since its last save. The ledger and the attempt agree with the plain sum:
// steps times the time and the price of a step.
func TestFailure_LosesTheStepsSinceTheLastSave(t *testing.T) {
	w := imageRig(t, "", 0) // the program started 9 minutes ago and costs 1 per hour
	a, _ := w.Attempt("j.1")
	const saved, failed, perStep = 8, 12, 45 * time.Second // 9 minutes are 12 steps
	w.step(0, CheckpointSaved{Attempt: "j.1", Message: 10, Manifest: "m", Step: saved, Captured: a.Started().Add(saved * perStep)})
	w.step(0, AttemptEnded{Attempt: "j.1", Message: 11, Reason: "failed", Step: failed})
	lost := (failed - saved) * perStep
	if got := a.LostTime(); got != lost {
		t.Errorf("lost are %v, and the steps since are %v", got, lost)
	}
	if got, want := a.Tasks()[0].Uses()[ledger.Lost].Float(), lost.Hours(); got < want-1e-9 || got > want+1e-9 {
		t.Errorf("they cost %v, and the steps %v", got, want)
	}
	if got := fmt.Sprint(a.Tasks()[0].Uses()); got != "map[lost:0.05 start-up:0.016666666666 useful:0.1]" {
		t.Error(got)
	}
}
