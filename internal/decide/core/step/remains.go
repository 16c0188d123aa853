package step

import (
	"cmp"
	"time"

	"scrimp/internal/decide/state"
	"scrimp/internal/lib/quantity"
	"scrimp/money"
)

// Likely is the share of jobs that last no longer than the slow end of their course, and of those that last no less
// than the quick end.
const Likely = 0.9

// Remains returns how long the job still takes on its machine, counted from its newest step and not its checkpoint,
// and how much longer or shorter it may take. ok is false if that is unknown, also for a job that has outrun its
// stated work.
func Remains(j *state.Job, speed float64, kept, t time.Time) (left, doubt time.Duration, ok bool) {
	speed = cmp.Or(max(speed, 0), 1)
	switch {
	case j.Total() > 0 && j.StepRate() > 0:
		if j.Step() >= j.Total() {
			return 0, 0, true // its program is about to end
		}
		hours := float64(j.Total()-j.Step()) / j.StepRate() / speed
		left = quantity.Hours(hours)
	case j.Terms().Work > 0:
		work := j.Terms().Work - j.SavedWork()
		if j.Total() > 0 {
			work = state.Share(j.Terms().Work, max(0, j.Total()-j.SavedStep()), j.Total())
		}
		left = quantity.Over(work, speed)
		if !kept.IsZero() {
			left -= max(0, t.Sub(kept))
		}
		if left <= 0 {
			return 0, 0, false
		}
	default:
		return 0, 0, false
	}
	if j.Pace().Looks >= 1 && j.StepRate() > 0 {
		return left, j.Margin(left, Likely), true
	}
	return left, left / 2, true // the work is only stated, so allow half of it either way, as budget.Bound does
}

// Burns returns the hourly price of what a job holds or requests.
func Burns(j *state.Job) (rate money.Rate) {
	if a := j.Asked(); a != nil {
		rate = a.Rate().Times(a.Nodes())
	}
	for _, a := range j.Open() {
		if a.Live() && a.Until().IsZero() {
			rate = quantity.Add(rate, a.Rate())
		}
	}
	return rate
}

// Expects is the expected cost of a job's machine beyond what is booked, at that hourly price. If the remaining time is
// unknown, or the job has exceeded it, the next hour counts. The result depends on the job alone, not on the time.
func Expects(j *state.Job, rate money.Rate) money.Amount {
	a := j.Live()
	switch {
	case j.Asked() != nil:
		return rate.Until(waitsFor(j, j.Asked().Machine().Speed))
	case a == nil || a.Task() == state.Ended || a.Releasing():
		return money.Amount{}
	case a.Started().IsZero():
		return rate.Until(waitsFor(j, a.Machine().Speed))
	}
	left, _, ok := Remains(j, a.Machine().Speed, a.Kept(), a.Kept())
	if rest := a.Cost(a.Kept().Add(left)).Sub(a.Posted()); ok && rest.Sign() > 0 {
		return rest
	}
	return rate.Until(time.Hour)
}

// waitsFor is how long a job that has not started is expected to take.
func waitsFor(j *state.Job, speed float64) time.Duration {
	left, _, ok := Remains(j, speed, time.Time{}, time.Time{})
	if !ok {
		return time.Hour
	}
	return quantity.Add(j.Restart(), left)
}

// LatestStart is the latest start that the deadline of a job allows, whatever its team has spent: when twice the
// expected time of its work and one restart are left, or, for unknown work, half of the time from its submission. ok is
// false if it has no deadline.
func LatestStart(j *state.Job) (at time.Time, ok bool) {
	deadline := j.Terms().Deadline
	if deadline.IsZero() {
		return at, false
	}
	left, _, known := j.Left(1)
	if known && left < deadline.Sub(time.Time{})/4 {
		return deadline.Add(-2*left - j.Restart()), true
	}
	return j.Submitted().Add(deadline.Sub(j.Submitted()) / 2), true
}
