package lifecycle

import (
	"cmp"
	"slices"
	"time"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/policy"
	"scrimp/internal/decide/state"
)

// Started handles the start of a program. saved is the step that the newest checkpoint was believed to have.
func (ts *Attempts) Started(b state.AttemptStarted, saved int64) {
	k := ts.TaskOf(b.Attempt, b.Node)
	if k == nil || k.Phase() == state.TaskRunning || k.Phase() == state.Ended {
		return
	}
	a := k.Attempt()
	j := ts.State.Job(a.Job())
	f := state.TaskStarted{Attempt: a.ID()}
	if b.Node == 0 {
		f.Work = j.SavedWork()
		ts.regain(j, a, b.Step, saved, &f)
		ts.forfeit(j, a, b.Step, saved, &f)
		if b.Restored == "" {
			f.Work = 0
		}
	}
	ts.Fact(f)
	ts.books.Settle(j, k, ledger.StartUp, ts.Now())
	ts.books.PostReads(j, k, b.Data)
	ts.admission.GuardTimes(j, a)
	ts.gotOn(j, a)
}

// TaskOf returns a rank of an attempt that has not ended, or nil.
func (ts *Attempts) TaskOf(attempt string, node int) *state.Task {
	if a := ts.State.Attempt(attempt); a != nil {
		return a.Rank(node)
	}
	return nil
}

// Progressed handles the progress of a program. seen summarizes its metric up to the previous report.
func (ts *Attempts) Progressed(b state.Progressed, seen policy.Seen) {
	a := ts.State.Attempt(b.Attempt)
	if a == nil || a.Lead().Phase() != state.TaskRunning {
		return
	}
	j := ts.State.Job(a.Job())
	metric := j.Terms().Metric
	if _, stop := seen.Judge(metric, b.Objective(metric)); stop != "" && j.Ending() == "" {
		as := state.Stopped
		if stop == policy.TargetReached {
			as = state.Succeeded
		}
		ts.jobs.Drain(j, a, string(stop), as, "")
		ts.jobs.Watcher.LooksAt(j.Terms().Group)
		return
	}
	if ts.jobs.Watcher.Judges(j, a) {
		return
	}
	ts.gotOn(j, a)
}

// Saved handles a stored checkpoint.
func (ts *Attempts) Saved(b state.CheckpointSaved) {
	if a := ts.State.Attempt(b.Attempt); a != nil && !a.Started().IsZero() {
		j := ts.State.Job(a.Job())
		ts.gotOn(j, a)
		ts.consolidates(j, a) // a move repeats no work now
	}
}

// Noticed handles an agent's report that its machine will be interrupted. It affects only that machine and the job
// on it, not other jobs.
func (ts *Attempts) Noticed(b state.NoticeGiven) {
	k := ts.TaskOf(b.Attempt, b.Node)
	if k == nil {
		return
	}
	if i := ts.State.Instance(k.Instance()); i != nil && i.Release() != "" {
		return // scrimp is terminating it, and the agent cannot tell that from an interruption
	}
	a := k.Attempt()
	ts.Fact(state.NoticeTaken{Attempt: a.ID()})
	if a.Nodes() > 1 {
		ts.leavesTogether(ts.State.Job(a.Job()), a, "interrupted")
	}
}

// Announced handles a provider's announcement that it will interrupt a machine. The core requests nothing from the
// offer until then.
func (ts *Attempts) Announced(b state.InterruptionAnnounced) {
	i := ts.State.Instance(b.Instance)
	if i == nil || !i.Live() || !i.Announced().IsZero() {
		return
	}
	ts.Fact(state.InterruptionTaken{Instance: i.ID()})
	ts.launches.coolOff(i.Machine(), b.At, "the provider takes a machine of it back")
}

// Used handles the measured usage of an attempt.
func (ts *Attempts) Used(b state.UsageSeen) {
	a := ts.State.Attempt(b.Attempt)
	if a == nil || a.Task() != state.TaskRunning {
		return
	}
	j := ts.State.Job(a.Job())
	if policy.Idle(a.IdleFrom(), ts.Now(), j.Terms().IdleLimit) {
		ts.jobs.Drain(j, a, string(policy.MachineIdle), state.Stopped, "")
	}
}

// ProgramEnded decides what happens to the job, and releases the machine or keeps it for the next job.
func (ts *Attempts) ProgramEnded(b state.AttemptEnded) {
	k := ts.TaskOf(b.Attempt, b.Node)
	if k == nil || k.Phase() == state.Ended || !k.Live() {
		return
	}
	a := k.Attempt()
	j := ts.State.Job(a.Job())
	lost, over := time.Duration(0), state.ProgramOver(k, b, ts.Now())
	switch {
	case k.Started().IsZero():
		ts.books.Settle(j, k, ledger.StartUp, ts.Now())
	case b.Reason == "completed", b.Saved && j.Terms().Session != "": // a session is used until its end
		ts.books.Settle(j, k, ledger.Useful, over)
	case b.Saved:
		// Its last checkpoint counted as useful when it was published; the time after it went into leaving.
		ts.books.Settle(j, k, ledger.Useful, k.Kept())
	default:
		lost = over.Sub(k.Kept())
		ts.books.Settle(j, k, ledger.Useful, k.Kept())
		ts.books.Settle(j, k, ledger.Lost, over)
	}
	ts.books.PostReads(j, k, b.Data)
	ts.books.Settle(j, k, ledger.Idle, ts.Now()) // the machine was storing the program's files
	ts.Fact(state.TaskEnded{Attempt: a.ID(), Lost: lost})
	if a.Nodes() > 1 {
		ts.rankEnded(j, k, b.Reason)
		return
	}
	keeps := ts.instances.mayKeep(k, b.Reason)
	if !keeps {
		ts.jobs.release(a, "program_"+b.Reason, "")
	}
	if !j.State().Over() {
		ts.becomes(j, a, b.Reason, b.Exit)
	}
	if keeps {
		ts.instances.vacate(j, k, b.Reason)
	}
}

// becomes decides what happens to a job whose program has ended.
func (ts *Attempts) becomes(j *state.Job, a *state.Attempt, reason string, exit int) {
	switch {
	case reason == "completed" && j.Terms().Session != "" && j.Ending() == "": // a user may resume it
		ts.jobs.Finish(j, state.Stopped, "session_left", j.Detail())
	case reason == "completed":
		ts.jobs.Finish(j, state.Succeeded, "completed", j.Detail())
	case j.State() == state.Paused: // its machine was already being terminated when the program started
	case j.Ending() != "":
		ts.jobs.Finish(j, j.Ending(), j.EndingWhy(), j.Detail())
	case reason == "drained":
		ts.jobs.requeue(j, state.JobQueued{Why: cmp.Or(a.DrainWhy(), "interrupted")})
	case reason == "setup" && j.Failures() < 2 && j.SetUpsAlike() < 2:
		ts.jobs.requeue(j, state.JobQueued{Why: "setup_failed", Failed: true})
	case reason == "setup":
		ts.jobs.Finish(j, state.Failed, "setup_failed", j.Detail())
	case ts.retries(j, exit):
		ts.jobs.requeue(j, state.JobQueued{Why: "retry", Retried: true})
	default:
		ts.jobs.Finish(j, state.Failed, "exit", j.Detail())
	}
}

// retries reports whether a program that ended with that exit status is tried again. 75 asks for a retry. 137 is a
// kill, mostly for memory, and is retried only if the user lists it.
func (ts *Attempts) retries(j *state.Job, exit int) bool {
	t := j.Terms()
	return j.Retries() < t.MaxRetries && (exit == 75 || slices.Contains(t.RetryCodes, exit))
}
