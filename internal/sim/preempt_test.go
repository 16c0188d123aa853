package sim

import (
	"cmp"
	"slices"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/state"
)

// leastRun is the guaranteed minimum run of these lives, the default of state.Config.
const leastRun = 10 * time.Minute

// preempted verifies each preemption of a step in the plainest way, and that no job takes a seat that is left for the
// critical job.
func (t *twin) preempted(out core.Outcome) {
	for _, f := range out.Facts {
		switch f := f.(type) {
		case state.JobPreempted:
			t.w.saw("a job is preempted")
			t.leaves(f)
		case state.AllocationRequested:
			t.rivals(f)
		}
	}
}

// leaves verifies that a preempted job was less urgent than the waiting critical job and may be preempted, has had its
// minimum run, leaves all of its machines, and that the preemption costs no more than it saves.
func (t *twin) leaves(f state.JobPreempted) {
	j, _ := t.w.known(f.Job)
	by, _ := t.w.known(f.By)
	a, now := j.Attempt(), t.w.m.Now()
	switch {
	case by.Terms().Priority < 2 || j.Terms().Priority >= 2:
		t.w.breaks("preempt: %s of priority %d leaves for %s of priority %d", f.Job, j.Terms().Priority, f.By, by.Terms().Priority)
	case by.State() != core.Queued:
		t.w.breaks("preempt: %s leaves for %s, which is %s", f.Job, f.By, by.State())
	case j.Terms().Unpreemptible:
		t.w.breaks("preempt: %s leaves, and may not be preempted", f.Job)
	case a.ID() != f.Attempt || !a.Draining() || a.DrainWhy() != state.Preempted:
		t.w.breaks("preempt: %s does not save and leave as a whole", f.Attempt)
	}
	for _, k := range a.Tasks() {
		if ran := now.Sub(k.Started()); k.Started().IsZero() || ran < leastRun {
			t.w.breaks("least run: %s leaves after %v", k.Name(), ran)
		}
	}
	hours := float64(f.Lost+f.Restart) / float64(time.Hour)
	if want := hours * a.Rate().Float(); !near(f.Cost.Float(), want) {
		t.w.breaks("preempt cost: %s costs %v, %v hours at %v an hour are %v", f.Job, f.Cost, hours, a.Rate(), want)
	}
	if rest, known := restOf(j, a, now); known && rest < f.Lost+f.Restart {
		t.w.breaks("preempt saves: %s repeats %v and restarts for %v, and needs its seat for %v only", f.Job, f.Lost, f.Restart, rest)
	}
	if d := j.Terms().Deadline; !d.IsZero() {
		if left, _, known := j.Left(a.Speed()); !known || now.Add(left+f.Restart).After(d) {
			t.w.breaks("preempt deadline: %s leaves with %v of work until %v", f.Job, left, d)
		}
	}
}

func near(a, b float64) bool { return max(a-b, b-a) <= 1e-9+1e-9*b }

// restOf is the time for which an attempt is expected to keep its seat: its remaining steps at the job's pace, or the
// rest of the stated work.
func restOf(j *core.Job, a *core.Attempt, now time.Time) (time.Duration, bool) {
	speed := cmp.Or(max(a.Speed(), 0), 1)
	switch {
	case j.Total() > 0 && j.StepRate() > 0:
		return time.Duration(float64(max(0, j.Total()-j.Step())) / j.StepRate() / speed * float64(time.Hour)), true
	case j.Total() > 0 || j.Terms().Work == 0:
		return 0, false
	}
	rest := time.Duration(float64(j.Terms().Work-j.SavedWork())/speed) - now.Sub(a.Kept())
	return rest, rest > 0
}

// rivals verifies that a preempted job requests nothing while the critical job waits for its seat. A critical job whose
// next attempt failed at once may have taken other seats meanwhile.
func (t *twin) rivals(f state.AllocationRequested) {
	j, known := t.w.known(f.Job)
	if !known {
		return
	}
	for n := len(j.Attempts()) - 1; n >= 0; n-- {
		a := j.Attempts()[n]
		if a.Epoch() != j.Epoch()-1 || a.Preemption() == nil {
			continue
		}
		t.w.saw("a preempted job goes on")
		by, known := t.w.known(a.Preemption().By)
		if known && by.State() == core.Queued && slices.Contains(by.Claims(t.w.m.Now()), j.ID()) &&
			t.w.m.Now().Before(a.Preemption().Until) {
			t.w.breaks("rivals: %s takes a seat again before %s has it", f.Job, by.ID())
		}
	}
}
