// Package quota holds the limits that jobs wait for in the queue: on what runs at once, and on GPU-hours of a window.
package quota

import (
	"fmt"
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/core/admission"
	"scrimp/internal/decide/core/step"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/quantity"
	"scrimp/money"
)

// Quota is a limit that the queue keeps: on what runs at once, or on GPU-hours that a job waits for until the next
// window.
type Quota struct {
	budget.Limit
	Begin, End time.Time     // current window, if jobs wait for GPU-hours
	Used       time.Duration // GPU time in it of attempts that have ended
	N          int           // its index among the quotas
	// PassedFor is how long, in units of its own work, smaller jobs may pass a job, if the limit is of dollars an hour.
	PassedFor int
	// Cheapest returns the lowest price an hour of a machine for a job now; ok is false if nothing is available.
	Cheapest func(*state.Job) (rate money.Rate, ok bool)
}

// Tally is what runs under a quota.
type Tally struct {
	Running, GPUs int
	Past          time.Duration // used in the window
	Hours         time.Duration // Past, plus what is held for running jobs
	Rate          money.Rate    // an hour of what runs, is requested or idle
	Open          string        // a running job with unknown maximum GPU-hours
	OpenTeam      string        // the team of that job
}

// Shut reports whether nothing may start at all.
func (q *Quota) Shut() bool { return q.Running != nil && *q.Running == 0 }

// Want is the shortage of a quota for a job.
type Want int

// Shortages: HasRoom is none.
const (
	HasRoom Want = iota
	wantsPlace
	wantsGPUs
	wantsHours
	wantsRate
	wantsMost      // the job's maximum GPU-hours are unknown
	wantsOtherMost // those of a running job are unknown
)

// Lacks returns what the quota has too little of for j. A job that requests a machine, or whose last one is still
// being terminated, counts as running, but not against itself.
func (q *Quota) Lacks(s *Tally, j *state.Job) Want {
	running, gpus := s.Running, s.GPUs
	if asked := j.Asked(); asked != nil {
		gpus -= asked.Machine().GPUs * asked.Nodes()
	}
	serves := j.Holds() && running > 0
	if serves {
		running--
	}
	least := admission.LeastGPUs(j.Terms())
	switch {
	case q.Running != nil && running >= *q.Running:
		return wantsPlace
	case q.GPUs != nil && gpus+least > *q.GPUs && least > 0:
		return wantsGPUs
	case q.lacksRate(s, j):
		return wantsRate
	case !q.Wait || q.GPUHours == nil:
		return HasRoom
	}
	return q.lacksHours(s, j, serves)
}

// lacksHours says what a quota of GPU hours lacks for j: room for all that the job may still use, unless the job
// serves already and its hours are among those of the tally.
func (q *Quota) lacksHours(s *Tally, j *state.Job, serves bool) Want {
	most, bounded := admission.GPUMost(j.Terms())
	rest := time.Duration(0)
	if !serves {
		rest = max(0, most-j.GPUServed())
	}
	switch {
	case most == 0 && bounded:
		return HasRoom
	case !bounded:
		return wantsMost
	case s.Open != "" && s.Open != j.ID():
		return wantsOtherMost
	case quantity.Add(s.Hours, rest) > quantity.GPUTime(*q.GPUHours):
		return wantsHours
	}
	return HasRoom
}

// HoldsIdle reports whether an idle machine is under the quota.
func (q *Quota) HoldsIdle(i *state.Instance) bool {
	idle, ok := i.Idle()
	return ok && q.Scope.Holds(idle.Owner, idle.User)
}

// lacksRate reports whether the cheapest machines for j would exceed the dollars an hour. A job that even an idle quota
// has no room for is not held back here: a decision finds each offer too expensive, and no other job waits for it.
func (q *Quota) lacksRate(s *Tally, j *state.Job) bool {
	if q.Rate == nil {
		return false
	}
	rate, ok := q.Cheapest(j)
	if rate = rate.Times(j.Terms().Fewest()); !ok || rate > *q.Rate {
		return false
	}
	return quantity.Add(s.Rate-OwnRate(j), rate) > *q.Rate
}

// OwnRate is what the machines of a job cost that it leaves before the next ones start.
func OwnRate(j *state.Job) (rate money.Rate) {
	if asked := j.Asked(); asked != nil {
		return asked.Rate().Times(asked.Nodes())
	}
	if a := j.Live(); a != nil && j.State() == state.Running && a.Until().IsZero() {
		return a.Rate()
	}
	return 0
}

// Why explains in a sentence what the quota lacks, or returns "" if there is room.
func (q *Quota) Why(s *Tally, j *state.Job) string {
	switch q.Lacks(s, j) {
	case wantsPlace:
		verb := "run"
		if s.Running == 1 {
			verb = "runs"
		}
		return fmt.Sprintf("%s lets %s run at once, and %d %s", q.Name(), step.Count(*q.Running, "job"), s.Running, verb)
	case wantsGPUs:
		return fmt.Sprintf("%s lets %s be in use at once, %d are, and the job needs %d", q.Name(), step.Count(*q.GPUs, "GPU"),
			s.GPUs, admission.LeastGPUs(j.Terms()))
	case wantsHours:
		most, _ := admission.GPUMost(j.Terms())
		return fmt.Sprintf("of the %g GPU-hours of %s, %.4g are used or held, and the job can use %.4g: it waits for "+
			"what runs, or for the next %s",
			*q.GPUHours, q.Name(), s.Hours.Hours(), max(0, most-j.GPUServed()).Hours(), q.Window)
	case wantsMost:
		return fmt.Sprintf("%s has a limit of %g GPU-hours, and the most that the job can use is unknown", q.Name(),
			*q.GPUHours)
	case wantsOtherMost:
		other := "a job of another team"
		if s.OpenTeam == j.Terms().Owner.Team {
			other = "job " + s.Open
		}
		return fmt.Sprintf("%s has a limit of %g GPU-hours, and the most that %s can use is unknown", q.Name(),
			*q.GPUHours, other)
	case wantsRate:
		return fmt.Sprintf("%s lets machines cost $%s an hour, $%s of that is in use, and the cheapest for the job "+
			"does not fit", q.Name(), *q.Rate, s.Rate)
	case HasRoom:
	}
	return ""
}
