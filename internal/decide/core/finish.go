package core

import (
	"scrimp/internal/decide/state"
	"scrimp/internal/market"
)

func (m *Machine) endJob(b JobEnded) {
	j := m.s.Job(b.Job)
	if j == nil || j.State().Over() {
		return
	}
	why, detail := "cancelled_by_user", ""
	switch {
	case b.Limit != "":
		why, detail = LimitSpent, "all of the budget "+b.Limit+" is spent"
	case b.Save:
		why = "stopped_by_user"
	}
	m.end(j, b.Save, why, detail)
}

// drain asks the agent to save and end; the job becomes as afterwards, or is queued again where that is "".
func (m *Machine) drain(j *Job, a *Attempt, why string, as State, to market.OfferID) {
	if j.State() != Running { // its machine is being given back already
		return
	}
	if as != "" && j.Ending() == "" {
		m.fact(state.JobEnding{Job: j.ID(), State: as, Why: why})
	}
	if a.Draining() || a.Task() != TaskRunning {
		return
	}
	m.drains(j, a, why, to)
}

// drains asks all of an attempt to save and end.
func (m *Machine) drains(j *Job, a *Attempt, why string, to market.OfferID) {
	by := m.now().Add(j.Terms().Grace + m.cfg().Patience)
	m.fact(state.DrainRequested{Attempt: a.ID(), Why: why, By: by, MigratesTo: to})
	m.wakeAt(j, by)
	if broke, limited := m.brokeAt(j); limited {
		m.wakeAt(j, broke)
	}
}

// release gives an attempt's machines back, where that is not asked for already; its seat alone
// where others have seats there too.
func (m *Machine) release(a *Attempt, why, end string) {
	if a.Beside() {
		m.releaseSeat(a.Lead(), why, end)
		return
	}
	for _, k := range a.Tasks() {
		if k.Live() {
			m.releaseMachine(k, why, end)
		}
	}
}

// releaseMachine gives a task's machine back, whoever else has a seat there.
func (m *Machine) releaseMachine(k *Task, why, end string) {
	i := m.s.Instance(k.Instance())
	if i == nil || !i.Live() || i.Release() != "" || i.Disowned() {
		return
	}
	m.fact(state.InstanceReleased{Instance: i.ID(), Why: why, End: end})
}

// finish ends the job; what its machine still costs is added when the machine has gone.
// What it asked for is given up.
func (m *Machine) finish(j *Job, as State, why, detail string) {
	if j.State().Over() {
		return
	}
	if as == Paused {
		m.suspend(j, why, "")
		return
	}
	m.queue.remove(j)
	m.queue.leave(j)
	m.fact(state.JobOver{Job: j.ID(), State: as, Why: why, Detail: detail})
	if a := j.Asked(); a != nil {
		m.giveUp(a, why)
	}
	m.freed()
	m.watcher.Settled(j.ID())
	m.watcher.Left(j)
}

// freed lets others have what a job holds no more.
func (m *Machine) freed() {
	m.sums = nil
	m.queue.changed()
}

// requeue lets the job try again.
func (m *Machine) requeue(j *Job, f state.JobQueued) {
	if j.State().Over() || at(j).waits || j.Asked() != nil { // it has asked for its next machine already
		return
	}
	f.Job = j.ID()
	if f.Detail == "" {
		f.Detail = j.Detail()
	}
	m.fact(f)
	m.freed()
	m.queue.add(j)
	m.overAt(j)
}

// watcher is told what becomes of jobs: groups plan by it.
type watcher interface {
	// Settled is told of a job that is over, for those that wait for it.
	Settled(job string)
	// Left is told of a job that is paused or over.
	Left(*Job)
	// Judges is told of values of a job's metric. It reports whether the job ends by them.
	Judges(*Job, *Attempt) bool
	// LooksAt is told of a group whose planner is to look at it again.
	LooksAt(group string)
}
