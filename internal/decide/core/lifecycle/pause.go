package lifecycle

import (
	"cmp"
	"time"

	"scrimp/internal/decide/core/admission"
	"scrimp/internal/decide/core/queue"
	"scrimp/internal/decide/core/step"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/state"
)

// PauseJob makes a job give up its machine, after it has saved, and its place in the queue. A job that is ending or
// already paused stays as it is.
func (js *Jobs) PauseJob(b state.JobPaused) {
	j := js.State.Job(b.Job)
	if j == nil || j.State() != state.Queued && j.State() != state.Running {
		return
	}
	why := "paused_by_user"
	if b.Cause != "" {
		why = SetAside
	}
	js.Pause(j, why, b.Cause)
}

// Pause makes a job save and give up its machine. cause is the error if a step that worked on the job failed.
func (js *Jobs) Pause(j *state.Job, why, cause string) {
	a := j.Live()
	atOnce := cause != "" && j.Ending() != "" // steps also fail while it ends, so do not wait for that
	switch {
	case j.Ending() != "" && !atOnce:
	case a != nil && a.Task() == state.TaskRunning && j.State() == state.Running && !atOnce:
		js.Fact(state.JobEnding{Job: j.ID(), State: state.Paused, Why: why, Detail: cause})
		js.Drain(j, a, why, "", "")
	default:
		js.suspend(j, why, cause)
		if a != nil {
			js.release(a, why, "")
		}
	}
}

// SetAside is the reason of a job that is paused because a step that worked on it failed.
const SetAside = "set_aside"

// suspend pauses a job that has nothing to save, and cancels its pending request. Its deadline keeps running, its
// wall-clock limit does not.
func (js *Jobs) suspend(j *state.Job, why, detail string) {
	js.queue.Queue.Remove(j)
	js.queue.Queue.Leave(j)
	js.Fact(state.JobSuspended{Job: j.ID(), Why: why, Detail: detail})
	js.Watcher.Left(j)
	step.TimesOf(j).Wake = time.Time{}
	if a := j.Asked(); a != nil {
		js.launches.giveUp(a, why)
	}
	js.Freed()
}

// ResumeJob resumes a job that is paused or pausing, or that ended without success.
func (js *Jobs) ResumeJob(b state.JobResumed) {
	j := js.State.Job(b.Job)
	if j == nil || !admission.Resumes(j) {
		return
	}
	v := js.admission.Verdict(b.Job)
	asking := cmp.Or(v.Asking, b.Asking)
	switch {
	case v.No != nil:
		js.admission.TurnDown(v.No)
		return
	case j.State() == state.Paused:
		js.changes(j, b.Changes, len(b.Spec) > 0)
		js.Fact(state.JobQueued{Job: j.ID(), Why: state.Resumed})
	case j.Pausing(): // it is still saving, and is queued after that
		js.Fact(state.JobEnding{Job: j.ID()})
		js.changes(j, b.Changes, len(b.Spec) > 0)
		return
	default: // it has ended
		step.TimesOf(j).Wake = time.Time{} // left over from before it ended
		js.changes(j, b.Changes, len(b.Spec) > 0)
		if asking != nil {
			js.Fact(state.JobHeld{Job: j.ID(), Asking: v.Asking})
			js.dependAgain(j)
			js.WakeAt(j, asking.Until)
			return
		}
		js.Fact(state.JobReopened{Job: j.ID()})
		js.dependAgain(j)
	}
	if Leaves(j) {
		return
	}
	js.Freed()
	js.Enqueue(j)
	js.launches.OverAt(j)
	js.Added = j
}

// Leaves reports whether the machine of a waiting job is still being terminated. The job is tried once that has
// ended.
func Leaves(j *state.Job) bool {
	a := j.Live()
	return j.State() == state.Queued && a != nil && a.Task() != state.Ended
}

// UpdateJob applies new terms to a job that has not ended. A job with a machine is reviewed at once; a waiting job
// takes its new place in the queue.
func (js *Jobs) UpdateJob(b state.JobUpdated) {
	j := js.State.Job(b.Job)
	if j == nil || j.State().Over() {
		return
	}
	v := js.admission.Verdict(b.Job)
	if v.No != nil {
		js.admission.TurnDown(v.No)
		return
	}
	waits := queue.At(j).Waits
	if waits {
		js.queue.Queue.Remove(j)
	}
	js.changes(j, b.Changes, false)
	switch {
	case waits:
		js.queue.Queue.Add(j)
		js.launches.OverAt(j)
	case j.State() == state.Running:
		js.WakeAt(j, js.Now())
	case j.State() == state.Held && v.Asking != nil: // for a different amount than before
		js.Fact(state.JobHeld{Job: j.ID(), Asking: v.Asking})
	case j.State() == state.Held && (b.Changes.Budget != nil || b.Changes.NoBudget): // it is now below all thresholds
		step.TimesOf(j).Wake = time.Time{}
		js.Fact(state.JobQueued{Job: j.ID(), Why: "under_the_threshold"})
		js.Enqueue(j)
		js.Added = j
	}
	js.Freed()
}

// changes applies new terms, if there are any.
func (js *Jobs) changes(j *state.Job, c state.Changes, spec bool) {
	if c != (state.Changes{}) || spec {
		js.Fact(state.JobChanged{Job: j.ID()})
	}
}

// Exhausted returns the limit of the terms t that is used up, so that the job could not continue with them, or "".
func (js *Jobs) Exhausted(j *state.Job, t state.Terms) plan.Reason {
	switch {
	case t.HasBudget && !t.DeadlineFirst && j.Spent(js.Now()).Cmp(t.Budget) >= 0:
		return plan.BudgetGone
	case t.WallClock > 0 && admission.WallClock(j, js.Now()) >= t.WallClock:
		return plan.TimeGone
	case t.GPUHours > 0 && j.GPUServed().Hours() >= t.GPUHours:
		return plan.HoursGone
	}
	return ""
}
