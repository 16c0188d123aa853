package admission

import (
	"time"

	"scrimp/internal/decide/state"
)

// Resumes reports whether a job can go on: it is paused, or about to be, or over and did
// not succeed.
func Resumes(j *state.Job) bool {
	return j.State() == state.Paused || j.Pausing() || j.State().Over() && j.State() != state.Succeeded
}

// WallClock is how long a job has taken since it first asked for a machine, but for the
// time that it was paused or over.
func WallClock(j *state.Job, now time.Time) time.Duration {
	switch {
	case j.Began().IsZero():
		return 0
	case !j.PausedSince().IsZero():
		now = j.PausedSince()
	case j.State().Over():
		now = j.Finished()
	}
	return now.Sub(j.Began())
}
