package core

func (m *Machine) endJob(out *Outcome, b JobEnded) {
	j := m.jobs[b.Job]
	if j == nil || j.State.Over() {
		return
	}
	state, why := Cancelled, "cancelled_by_user"
	if b.Save {
		state, why = Stopped, "stopped_by_user"
	}
	if b.Limit != "" {
		m.touch(j)
		why, j.Detail = LimitSpent, "all of the budget "+b.Limit+" is spent"
	}
	a := j.live()
	switch {
	case j.State == Held:
		m.touch(j)
		m.finish(out, j, state, why)
	case j.State == Queued || a == nil:
		m.finish(out, j, state, why)
	case b.Save && a.Phase == Working:
		m.drain(out, j, a, why, state)
	default:
		m.finish(out, j, state, why)
		if a.Phase != Asked {
			m.terminate(out, a, why)
		}
	}
}

// drain asks the agent to save and end; the job becomes state afterwards, or is queued again where that is "".
func (m *Machine) drain(out *Outcome, j *Job, a *Attempt, why string, state State) {
	if state != "" && j.Ending == "" {
		j.Ending, j.EndingWhy = state, why
	}
	if a.Draining || a.Phase != Working {
		return
	}
	a.Draining, a.DrainWhy = true, why
	a.DrainBy = m.now.Add(j.Terms.Grace + m.cfg.Patience)
	m.wakeAt(j, a.DrainBy)
	out.Actions = append(out.Actions, Drain{Attempt: a.ID, Why: why, Grace: j.Terms.Grace})
}

func (m *Machine) terminate(out *Outcome, a *Attempt, why string) {
	if a.Asking || a.Phase == Gone || a.Instance == "" {
		return
	}
	a.Asking = true
	out.Actions = append(out.Actions, Terminate{Instance: a.Instance, Attempt: a.ID, Why: why})
}

// finish ends the job; what its machine still costs is added when the machine has gone.
func (m *Machine) finish(out *Outcome, j *Job, s State, why string) {
	if j.State.Over() {
		return
	}
	m.queue.remove(j)
	m.queue.leave(j)
	j.State, j.Why, j.Finished = s, why, m.now
	if j.live() == nil {
		m.release(j)
	}
	out.Actions = append(out.Actions, Notify{Job: j.ID, State: s, Why: why})
}

// requeue lets the job try again.
func (m *Machine) requeue(j *Job, why string) {
	if j.State.Over() || j.place.waits {
		return
	}
	j.State, j.Why = Queued, why
	if j.Without.IsZero() { // a launch that is refused gave it no machine
		j.Without = m.now
	}
	if j.live() == nil {
		m.release(j)
	}
	m.queue.add(j)
	m.overAt(j)
}

// overAt wakes a job that waits when its wall clock runs out.
func (m *Machine) overAt(j *Job) {
	if j.Terms.WallClock > 0 && !j.Began.IsZero() {
		m.wakeAt(j, j.Began.Add(j.Terms.WallClock))
	}
}
