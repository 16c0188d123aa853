package core

import (
	"cmp"
	"time"

	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/state"
)

// pauseJob lets a job give up its machine, once what it did is saved, and its place in
// the queue. One that ends or is paused already stays as it is.
func (m *Machine) pauseJob(b JobPaused) {
	j := m.s.Job(b.Job)
	if j == nil || j.State() != Queued && j.State() != Running {
		return
	}
	why := "paused_by_user"
	if b.Cause != "" {
		why = SetAside
	}
	m.pause(j, why, b.Cause)
}

// pause lets a job save and give up its machine. cause is what failed where a step worked on it.
func (m *Machine) pause(j *Job, why, cause string) {
	a := j.Live()
	atOnce := cause != "" && j.Ending() != "" // steps fail also while it ends: that is not waited for
	switch {
	case j.Ending() != "" && !atOnce:
	case a != nil && a.Task() == TaskRunning && j.State() == Running && !atOnce:
		m.fact(state.JobEnding{Job: j.ID(), State: Paused, Why: why, Detail: cause})
		m.drain(j, a, why, "", "")
	default:
		m.suspend(j, why, cause)
		if a != nil {
			m.release(a, why, "")
		}
	}
}

// SetAside is why a job is paused that a failed step worked on.
const SetAside = "set_aside"

// suspend pauses a job that does nothing which must be saved. What it asked for is given
// up; its deadline goes on, its wall-clock budget does not.
func (m *Machine) suspend(j *Job, why, detail string) {
	m.queue.remove(j)
	m.queue.leave(j)
	m.fact(state.JobSuspended{Job: j.ID(), Why: why, Detail: detail})
	m.watcher.Left(j)
	timesOf(j).wake = time.Time{}
	if a := j.Asked(); a != nil {
		m.giveUp(a, why)
	}
	m.freed()
}

// resumeJob lets a job go on that is paused, or is about to be, or is over and did not succeed.
func (m *Machine) resumeJob(b JobResumed) {
	j := m.s.Job(b.Job)
	if j == nil || !resumes(j) {
		return
	}
	v := m.verdict(b.Job)
	asking := cmp.Or(v.asking, b.Asking)
	switch {
	case v.no != nil:
		m.turnDown(v.no)
		return
	case j.State() == Paused:
		m.changes(j, b.Changes, len(b.Spec) > 0)
		m.fact(state.JobQueued{Job: j.ID(), Why: state.Resumed})
	case j.Pausing(): // it saves: it is queued when it has
		m.fact(state.JobEnding{Job: j.ID()})
		m.changes(j, b.Changes, len(b.Spec) > 0)
		return
	default: // it is over
		timesOf(j).wake = time.Time{} // of its earlier life
		m.changes(j, b.Changes, len(b.Spec) > 0)
		if asking != nil {
			m.fact(state.JobHeld{Job: j.ID(), Asking: v.asking})
			m.dependAgain(j)
			m.wakeAt(j, asking.Until)
			return
		}
		m.fact(state.JobReopened{Job: j.ID()})
		m.dependAgain(j)
	}
	if leaves(j) {
		return
	}
	m.freed()
	m.enqueue(j)
	m.overAt(j)
	m.added = j
}

// resumes reports whether a job can go on: it is paused, or about to be, or over and did
// not succeed.
func resumes(j *Job) bool {
	return j.State() == Paused || j.Pausing() || j.State().Over() && j.State() != Succeeded
}

// leaves reports whether the machine of a job that waits is still being given back: it is
// tried when that has ended.
func leaves(j *Job) bool {
	a := j.Live()
	return j.State() == Queued && a != nil && a.Task() != Ended
}

// updateJob takes new terms for a job that is not over. One that holds a machine is
// reviewed at once, one that waits takes the place that they give it.
func (m *Machine) updateJob(b JobUpdated) {
	j := m.s.Job(b.Job)
	if j == nil || j.State().Over() {
		return
	}
	v := m.verdict(b.Job)
	if v.no != nil {
		m.turnDown(v.no)
		return
	}
	waits := at(j).waits
	if waits {
		m.queue.remove(j)
	}
	m.changes(j, b.Changes, false)
	switch {
	case waits:
		m.queue.add(j)
		m.overAt(j)
	case j.State() == Running:
		m.wakeAt(j, m.now())
	case j.State() == Held && v.asking != nil: // for another sum than before
		m.fact(state.JobHeld{Job: j.ID(), Asking: v.asking})
	case j.State() == Held && (b.Changes.Budget != nil || b.Changes.NoBudget): // it is under all thresholds now
		timesOf(j).wake = time.Time{}
		m.fact(state.JobQueued{Job: j.ID(), Why: "under_the_threshold"})
		m.enqueue(j)
		m.added = j
	}
	m.freed()
}

// changes takes new terms, where there are any.
func (m *Machine) changes(j *Job, c Changes, spec bool) {
	if c != (Changes{}) || spec {
		m.fact(state.JobChanged{Job: j.ID()})
	}
}

// wallClock is how long a job has taken since it first asked for a machine, but for the
// time that it was paused or over.
func wallClock(j *Job, now time.Time) time.Duration {
	switch {
	case j.Began().IsZero():
		return 0
	case !j.PausedSince().IsZero():
		now = j.PausedSince()
	case j.State().Over():
		now = j.Finished()
	}
	return now.Sub(j.Began())
}

// Exhausted says which limit of the terms t is used up, so that the job could not go on
// with them; "" is none.
func (m *Machine) Exhausted(j *Job, t Terms) plan.Reason {
	switch {
	case t.HasBudget && !t.DeadlineFirst && j.Spent(m.now()).Cmp(t.Budget) >= 0:
		return plan.BudgetGone
	case t.WallClock > 0 && wallClock(j, m.now()) >= t.WallClock:
		return plan.TimeGone
	case t.GPUHours > 0 && j.GPUServed().Hours() >= t.GPUHours:
		return plan.HoursGone
	}
	return ""
}
