package lifecycle

import (
	"slices"
	"time"

	"scrimp/internal/decide/state"
)

// seat gives an idle machine, or a portion of a machine, to the job, whose request for it has just been recorded.
func (is *Instances) seat(j *state.Job, i *state.Instance) {
	a := j.Asked()
	if idle, waits := i.Idle(); waits {
		is.accrueIdle(i, &idle, is.Now())
	}
	is.Fact(state.AllocationGranted{Allocation: a.ID(), Instance: i.ID()})
	is.launches.began(a)
	is.reviewSeats(i, a.ID())
}

// reviewSeats schedules a review of the jobs on a shared machine: their hourly cost has changed.
func (is *Instances) reviewSeats(i *state.Instance, but string) {
	for _, a := range is.State.SeatedAll(i) {
		if a.ID() != but {
			is.WakeAt(is.State.Job(a.Job()), is.Now())
		}
	}
}

// releaseSeat makes a task leave its seat. Its agent ends the program and reports it.
func (is *Instances) releaseSeat(k *state.Task, why, end string) {
	a := k.Attempt()
	if k.Releasing() || a.Disowned() || !k.Live() {
		return
	}
	j := is.State.Job(a.Job())
	by := is.Now().Add(is.market.TimingOf(k.Machine()).Detect + is.Config().Patience)
	if a.Nodes() > 1 {
		by = by.Add(j.Terms().Grace)
	}
	is.Fact(state.SeatReleased{Attempt: a.ID(), Node: k.Rank(), Why: why, End: end, By: by})
	is.WakeAt(j, by)
	if is.Faults.Early && a.Nodes() == 1 {
		is.TaskGone(a.ID(), k.Rank())
	}
}

// TendSeats terminates machines on which a task does not leave its seat in time, after the other tasks there have
// saved: the agent does not do what it is asked.
func (is *Instances) TendSeats() {
	for _, k := range is.State.Leaving() {
		is.Works(is.State.Job(k.Attempt().Job()))
		i := is.State.Instance(k.Instance())
		if is.Now().Before(k.LeaveBy()) || i.Release() != "" {
			continue
		}
		saves := false
		for _, other := range is.State.SeatedAll(i) {
			if other.Task() == state.TaskRunning && other.Leaving() == "" {
				saves = true
				is.jobs.Drain(is.State.Job(other.Job()), other, "seat_not_left", "", "")
			}
		}
		if !saves {
			is.jobs.releaseMachine(k, "seat_not_left", "")
		}
	}
}

// WakeForSeats is when TendSeats is due next; zero: no task is leaving its seat.
func (is *Instances) WakeForSeats() (soonest time.Time) {
	for _, k := range is.State.Leaving() {
		if t := k.LeaveBy(); t.After(is.Event.At) && (soonest.IsZero() || t.Before(soonest)) {
			soonest = t
		}
	}
	return soonest
}

// RecallsKeeps restores the list of kept parts after a restart.
func (is *Instances) RecallsKeeps() {
	for _, i := range is.State.Instances() {
		for _, k := range i.Keeps() {
			if is.State.Keeps(&k) {
				is.kept = append(is.kept, k)
			}
		}
	}
}

// KeepsEnded lets waiting jobs try again once a part is no longer kept: its job has requested a machine, ends, is
// paused, or has taken too long.
func (is *Instances) KeepsEnded() {
	before := len(is.kept)
	is.kept = slices.DeleteFunc(is.kept, func(k state.Keep) bool { return !is.State.Keeps(&k) })
	if len(is.kept) < before {
		is.jobs.Freed()
	}
}

// WakeForKeeps is when KeepsEnded is due next; zero: nothing is kept.
func (is *Instances) WakeForKeeps() (soonest time.Time) {
	for n := range is.kept {
		t := is.kept[n].By
		if !is.State.Keeps(&is.kept[n]) {
			t = is.Now()
		}
		if soonest.IsZero() || t.Before(soonest) {
			soonest = t
		}
	}
	return soonest
}

// TaskGone handles a task that had to leave its seat and is gone. The machine stays for the others on it, or for a job
// that a part of it is kept for. If there are none, it is terminated or kept idle.
func (is *Instances) TaskGone(attempt string, node int) {
	k := is.attempts.TaskOf(attempt, node)
	if k == nil || k.Leaving() == "" || !k.Live() {
		return
	}
	a := k.Attempt()
	j := is.State.Job(a.Job())
	i := is.State.Instance(k.Instance())
	switch {
	case i.Release() != "":
		return
	case a.Nodes() > 1:
		is.attempts.rankGone(j, k)
		return
	case !k.Beside() && k.Phase() == state.Ended && is.mayKeep(k, k.End()):
		is.vacate(j, k, k.End())
		return
	}
	f, waits := state.SeatLeft{Instance: i.ID()}, k.Beside()
	if !waits && is.staysKept(k) {
		f, waits = is.waitsFor(j, k)
	}
	if !waits {
		is.jobs.releaseMachine(k, k.Leaving(), "")
		return
	}
	end := is.settleEnd(j, k, is.Now())
	f.Attempt, f.Lost = a.ID(), end.Lost
	is.Fact(f)
	is.jobs.Freed()
	is.reviewSeats(i, "")
	is.afterEnd(j, k, "released", end)
}
