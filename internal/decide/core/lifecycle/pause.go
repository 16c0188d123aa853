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

// PauseJob lets a job give up its machine, once what it did is saved, and its place in
// the queue. One that ends or is paused already stays as it is.
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

// Pause lets a job save and give up its machine. cause is what failed where a step worked on it.
func (js *Jobs) Pause(j *state.Job, why, cause string) {
	a := j.Live()
	atOnce := cause != "" && j.Ending() != "" // steps fail also while it ends: that is not waited for
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

// SetAside is why a job is paused that a failed step worked on.
const SetAside = "set_aside"

// suspend pauses a job that does nothing which must be saved. What it asked for is given
// up; its deadline goes on, its wall-clock budget does not.
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

// ResumeJob lets a job go on that is paused, or is about to be, or is over and did not succeed.
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
	case j.Pausing(): // it saves: it is queued when it has
		js.Fact(state.JobEnding{Job: j.ID()})
		js.changes(j, b.Changes, len(b.Spec) > 0)
		return
	default: // it is over
		step.TimesOf(j).Wake = time.Time{} // of its earlier life
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

// Leaves reports whether the machine of a job that waits is still being given back: it is
// tried when that has ended.
func Leaves(j *state.Job) bool {
	a := j.Live()
	return j.State() == state.Queued && a != nil && a.Task() != state.Ended
}

// UpdateJob takes new terms for a job that is not over. One that holds a machine is
// reviewed at once, one that waits takes the place that they give it.
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
	case j.State() == state.Held && v.Asking != nil: // for another sum than before
		js.Fact(state.JobHeld{Job: j.ID(), Asking: v.Asking})
	case j.State() == state.Held && (b.Changes.Budget != nil || b.Changes.NoBudget): // it is under all thresholds now
		step.TimesOf(j).Wake = time.Time{}
		js.Fact(state.JobQueued{Job: j.ID(), Why: "under_the_threshold"})
		js.Enqueue(j)
		js.Added = j
	}
	js.Freed()
}

// changes takes new terms, where there are any.
func (js *Jobs) changes(j *state.Job, c state.Changes, spec bool) {
	if c != (state.Changes{}) || spec {
		js.Fact(state.JobChanged{Job: j.ID()})
	}
}

// Exhausted says which limit of the terms t is used up, so that the job could not go on
// with them; "" is none.
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
