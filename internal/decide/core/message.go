package core

import (
	"cmp"
	"slices"
	"time"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/policy"
	"scrimp/internal/decide/policy/horizon"
	"scrimp/internal/decide/state"
)

// started takes that the program runs. saved is the step that the newest checkpoint was
// thought to hold.
func (m *Machine) started(b AttemptStarted, saved int64) {
	k := m.taskOf(b.Attempt, b.Node)
	if k == nil || k.Phase() == TaskRunning || k.Phase() == Ended {
		return
	}
	a := k.Attempt()
	j := m.s.Job(a.Job())
	f := state.TaskStarted{Attempt: a.ID()}
	if b.Node == 0 {
		f.Work = j.SavedWork()
		m.regain(j, a, b.Step, saved, &f)
		m.forfeit(j, a, b.Step, saved, &f)
		if b.Restored == "" {
			f.Work = 0
		}
	}
	m.fact(f)
	m.settle(j, k, ledger.StartUp, m.now())
	m.guardTimes(j, a)
	m.gotOn(j, a)
}

// taskOf is a rank of an attempt that is not over, or nil.
func (m *Machine) taskOf(attempt string, node int) *Task {
	if a := m.s.Attempt(attempt); a != nil {
		return a.Rank(node)
	}
	return nil
}

// progressed takes how far the program is. seen is what its metric had come to before.
func (m *Machine) progressed(b Progressed, seen policy.Seen) {
	a := m.s.Attempt(b.Attempt)
	if a == nil || a.Lead().Phase() != TaskRunning {
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
		m.watcher.LooksAt(j.Terms().Group)
		return
	}
	if m.watcher.Judges(j, a) {
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
		between = l.Hazard().Between() / time.Duration(a.Nodes()) // any of them ends the attempt
		if w := l.Watch(); w.Known && w.Up {                      // at the period's present age, not in the mean
			offer := horizon.Public.Between(w.At(m.now())) // when it ends all its machines go
			if a.Nodes() > 1 {
				offer = min(offer, between)
			}
			between = offer
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

// noticed takes an agent's word that its machine will be interrupted: it changes what becomes of
// that machine and of the job there, and nothing for others.
func (m *Machine) noticed(b NoticeGiven) {
	k := m.taskOf(b.Attempt, b.Node)
	if k == nil {
		return
	}
	if i := m.s.Instance(k.Instance()); i != nil && i.Release() != "" {
		return // we end it ourselves, and its agent is told that as it is told of the provider's end
	}
	a := k.Attempt()
	m.fact(state.NoticeTaken{Attempt: a.ID()})
	if a.Nodes() > 1 {
		m.leavesTogether(m.s.Job(a.Job()), a, "interrupted")
	}
}

// announced takes a provider's word for the same: nothing of the offer is asked for until then.
func (m *Machine) announced(b InterruptionAnnounced) {
	i := m.s.Instance(b.Instance)
	if i == nil || !i.Live() || !i.Announced().IsZero() {
		return
	}
	m.fact(state.InterruptionTaken{Instance: i.ID()})
	m.coolOff(i.Machine(), b.At, "the provider takes a machine of it back")
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
	k := m.taskOf(b.Attempt, b.Node)
	if k == nil || k.Phase() == Ended || !k.Live() {
		return
	}
	a := k.Attempt()
	j := m.s.Job(a.Job())
	lost, over := time.Duration(0), state.ProgramOver(k, b, m.now())
	switch {
	case k.Started().IsZero():
		m.settle(j, k, ledger.StartUp, m.now())
	case b.Reason == "completed":
		m.settle(j, k, ledger.Useful, over)
	case b.Saved:
		// its last checkpoint counted as useful when it was published; what came after it was the leaving
		m.settle(j, k, ledger.Useful, k.Kept())
	default:
		lost = over.Sub(k.Kept())
		m.settle(j, k, ledger.Useful, k.Kept())
		m.settle(j, k, ledger.Lost, over)
	}
	m.settle(j, k, ledger.Idle, m.now()) // the machine kept what the program had left
	m.fact(state.TaskEnded{Attempt: a.ID(), Lost: lost})
	if a.Nodes() > 1 {
		m.rankEnded(j, k, b.Reason)
		return
	}
	keeps := m.mayKeep(k, b.Reason)
	if !keeps {
		m.release(a, "program_"+b.Reason, "")
	}
	if !j.State().Over() {
		m.becomes(j, a, b.Reason, b.Exit)
	}
	if keeps {
		m.vacate(j, k, b.Reason)
	}
}

// becomes says what becomes of a job whose program has ended.
func (m *Machine) becomes(j *Job, a *Attempt, reason string, exit int) {
	switch {
	case reason == "completed":
		m.finish(j, Succeeded, "completed", j.Detail())
	case j.State() == Paused: // its machine was being given back when the program began
	case j.Ending() != "":
		m.finish(j, j.Ending(), j.EndingWhy(), j.Detail())
	case reason == "drained":
		m.requeue(j, state.JobQueued{Why: cmp.Or(a.DrainWhy(), "interrupted")})
	case reason == "setup" && j.Failures() < 2 && j.SetUpsAlike() < 2:
		m.requeue(j, state.JobQueued{Why: "setup_failed", Failed: true})
	case reason == "setup":
		m.finish(j, Failed, "setup_failed", j.Detail())
	case m.retries(j, exit):
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
