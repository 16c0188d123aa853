package lifecycle

import (
	"scrimp/internal/decide/core/queue"
	"scrimp/internal/decide/core/step"
	"scrimp/internal/decide/state"
	"scrimp/internal/market"
)

// EndJob ends a job on behalf of its user or of a limit.
func (js *Jobs) EndJob(b state.JobEnded) {
	j := js.State.Job(b.Job)
	if j == nil || j.State().Over() {
		return
	}
	why, detail := "cancelled_by_user", ""
	switch {
	case b.Limit != "":
		why, detail = step.LimitSpent, "all of the budget "+b.Limit+" is spent"
	case b.Save:
		why = "stopped_by_user"
	}
	js.End(j, b.Save, why, detail)
}

// Drain asks the agent to save and end. The job then gets the state as, or is queued again if as is empty.
func (js *Jobs) Drain(j *state.Job, a *state.Attempt, why string, as state.Status, to market.OfferID) {
	if j.State() != state.Running { // its machine is already being terminated
		return
	}
	if as != "" && j.Ending() == "" {
		js.Fact(state.JobEnding{Job: j.ID(), State: as, Why: why})
	}
	if a.Draining() || a.Task() != state.TaskRunning {
		return
	}
	js.drains(j, a, state.DrainRequested{Why: why, MigratesTo: to})
}

// drains asks all ranks of an attempt to save and end, for the reason in f.
func (js *Jobs) drains(j *state.Job, a *state.Attempt, f state.DrainRequested) {
	by := js.Now().Add(j.Terms().Grace + js.Config().Patience)
	f.Attempt, f.By = a.ID(), by
	js.Fact(f)
	js.WakeAt(j, by)
	if broke, limited := js.admission.BrokeAt(j); limited {
		js.WakeAt(j, broke)
	}
}

// release terminates an attempt's machines, unless that is already under way. If others have seats on the machine, or
// a part of it is kept for another job, it releases only the attempt's own seat.
func (js *Jobs) release(a *state.Attempt, why, end string) {
	if a.Beside() || js.instances.staysKept(a.Lead()) {
		js.instances.releaseSeat(a.Lead(), why, end)
		return
	}
	for _, k := range a.Tasks() {
		if k.Live() {
			js.releaseMachine(k, why, end)
		}
	}
}

// releaseMachine terminates a task's machine, whoever else has a seat on it.
func (js *Jobs) releaseMachine(k *state.Task, why, end string) {
	i := js.State.Instance(k.Instance())
	if i == nil || !i.Live() || i.Release() != "" || i.Disowned() {
		return
	}
	js.Fact(state.InstanceReleased{Instance: i.ID(), Why: why, End: end})
}

// Finish ends the job and cancels its pending request. What its machine still costs is added once the machine has
// ended.
func (js *Jobs) Finish(j *state.Job, as state.Status, why, detail string) {
	if j.State().Over() {
		return
	}
	if as == state.Paused {
		js.suspend(j, why, "")
		return
	}
	js.queue.Queue.Remove(j)
	js.queue.Queue.Leave(j)
	js.Fact(state.JobOver{Job: j.ID(), State: as, Why: why, Detail: detail})
	if a := j.Asked(); a != nil {
		js.launches.giveUp(a, why)
	}
	js.Freed()
	js.Watcher.Settled(j.ID())
	js.Watcher.Left(j)
}

// Freed makes the capacity that a job released available to other jobs.
func (js *Jobs) Freed() {
	js.queue.Sums = nil
	js.queue.Queue.Changed()
}

// requeue lets the job try again.
func (js *Jobs) requeue(j *state.Job, f state.JobQueued) {
	if j.State().Over() || queue.At(j).Waits || j.Asked() != nil { // it has already requested its next machine
		return
	}
	f.Job = j.ID()
	if f.Detail == "" {
		f.Detail = j.Detail()
	}
	js.Fact(f)
	js.Freed()
	js.queue.Queue.Add(j)
	js.launches.OverAt(j)
}

// Watcher learns what happens to jobs, so that groups can plan.
type Watcher interface {
	// Settled is called when a job has ended, for those that wait for it.
	Settled(job string)
	// Left is called when a job is paused or has ended.
	Left(*state.Job)
	// Judges is called with new values of a job's metric. It reports whether they end the job.
	Judges(*state.Job, *state.Attempt) bool
	// Uses is called when a job gets a machine, or has had one for longer than was known.
	Uses(*state.Job)
	// LooksAt is called when a group's planner must run again.
	LooksAt(group string)
}
