package step

import (
	"cmp"
	"time"

	"scrimp/internal/decide/state"
	"scrimp/internal/lib/quantity"
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
