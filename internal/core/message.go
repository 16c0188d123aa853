package core

import (
	"cmp"
	"slices"
	"time"

	"scrimp/internal/ledger"
	"scrimp/internal/policy"
	"scrimp/internal/policy/horizon"
	"scrimp/internal/state"
)

// started takes that the program runs. saved is the step that the newest checkpoint was
// thought to hold.
func (m *Machine) started(b AttemptStarted, saved int64) {
	a := m.s.Attempt(b.Attempt)
	if a == nil || a.Task() == TaskRunning || a.Task() == Ended {
		return
	}
	j := m.s.Job(a.Job())
	f := state.TaskStarted{Attempt: a.ID(), Work: j.SavedWork()}
	m.regain(j, a, b.Step-saved, &f)
	m.forfeit(j, a, b.Step, saved, &f)
	if b.Restored == "" {
		f.Work = 0
	}
	m.fact(f)
	m.settle(j, a, ledger.StartUp, m.now())
	m.guardTimes(j, a)
	if !a.Machine().Prepaid {
		m.outbid(j)
	}
	m.gotOn(j, a)
}

// progressed takes how far the program is. seen is what its metric had come to before.
func (m *Machine) progressed(b Progressed, seen policy.Seen) {
	a := m.s.Attempt(b.Attempt)
	if a == nil || a.Task() != TaskRunning {
		return
	}
	j := m.s.Job(a.Job())
	metric := j.Terms().Metric
	if _, stop := seen.Judge(metric, b.Objective(metric)); stop != "" && j.Ending() == "" {
		as := Stopped
		if stop == policy.TargetReached {
			as = Succeeded
		}
		m.drain(j, a, string(stop), as, "")
		return
	}
	m.gotOn(j, a)
}

func (m *Machine) saved(b CheckpointSaved) {
	if a := m.s.Attempt(b.Attempt); a != nil && !a.Started().IsZero() {
		m.gotOn(m.s.Job(a.Job()), a)
	}
}

// between is the mean time between losses of the attempt's machine.
func (m *Machine) between(a *Attempt) time.Duration {
	between := policy.Hazard{}.Between()
	if l := m.s.Listing(a.Offer()); l != nil {
		between = l.Hazard().Between()
		if w := l.Watch(); w.Known && w.Up { // at the period's present age, not in the mean
			between = horizon.Public.Between(w.At(m.now()))
		}
		if most := l.Offer().MaxLifetime; most > 0 {
			between = min(between, most)
		}
	}
	if !isSpot(a) {
		between *= 10 // on-demand machines still break
	}
	return between
}

func (m *Machine) noticed(b NoticeGiven) {
	a := m.s.Attempt(b.Attempt)
	if a == nil {
		return
	}
	m.fact(state.NoticeTaken{Attempt: a.ID()})
	m.coolOff(a.Machine(), b.Until) // it would be interrupted again at once
}

func (m *Machine) used(b UsageSeen) {
	a := m.s.Attempt(b.Attempt)
	if a == nil || a.Task() != TaskRunning {
		return
	}
	j := m.s.Job(a.Job())
	if policy.Idle(a.IdleFrom(), m.now(), j.Terms().IdleLimit) {
		m.drain(j, a, string(policy.MachineIdle), Stopped, "")
	}
}

// programEnded gives the machine back and settles what becomes of the job.
func (m *Machine) programEnded(b AttemptEnded) {
	a := m.s.Attempt(b.Attempt)
	if a == nil || a.Task() == Ended {
		return
	}
	j := m.s.Job(a.Job())
	lost := time.Duration(0)
	switch {
	case a.Started().IsZero():
		m.settle(j, a, ledger.StartUp, m.now())
	case b.Reason == "completed":
		m.settle(j, a, ledger.Useful, m.now())
	case b.Saved:
		// its last checkpoint counted as useful when it was published; what came after it was the leaving
		m.settle(j, a, ledger.Useful, a.Kept())
		m.settle(j, a, ledger.Idle, m.now())
	default:
		lost = m.now().Sub(a.Kept())
		m.settle(j, a, ledger.Useful, a.Kept())
		m.settle(j, a, ledger.Lost, m.now())
	}
	m.fact(state.TaskEnded{Attempt: a.ID(), Lost: lost})
	keeps := m.mayKeep(a, b.Reason)
	if !keeps {
		m.release(a, "program_"+b.Reason, "")
	}
	if !j.State().Over() {
		m.becomes(j, a, b)
	}
	if keeps {
		m.vacate(j, a, b.Reason)
	}
}

// becomes says what becomes of a job whose program has ended.
func (m *Machine) becomes(j *Job, a *Attempt, b AttemptEnded) {
	switch {
	case b.Reason == "completed":
		m.finish(j, Succeeded, "completed", j.Detail())
	case j.State() == Paused: // its machine was being given back when the program began
	case j.Ending() != "":
		m.finish(j, j.Ending(), j.EndingWhy(), j.Detail())
	case b.Reason == "drained":
		m.requeue(j, state.JobQueued{Why: cmp.Or(a.DrainWhy(), "interrupted")})
	case b.Reason == "setup" && j.Failures() < 2:
		m.requeue(j, state.JobQueued{Why: "setup_failed", Failed: true})
	case b.Reason == "setup":
		m.finish(j, Failed, "setup_failed", j.Detail())
	case m.retries(j, b.Exit):
		m.requeue(j, state.JobQueued{Why: "retry", Retried: true})
	default:
		m.finish(j, Failed, "exit", j.Detail())
	}
}

// retries reports whether a program that ended with that status is tried again:
// 75 asks for it; 137 is a kill, most often for memory, and never retried unless the user lists it.
func (m *Machine) retries(j *Job, exit int) bool {
	t := j.Terms()
	return j.Retries() < t.MaxRetries && (exit == 75 || slices.Contains(t.RetryCodes, exit))
}
