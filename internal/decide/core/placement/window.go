package placement

import (
	"time"

	"scrimp/internal/decide/state"
)

// Closed reports whether j must not have a machine because its window is closed, and when the window opens. A job
// without a machine also waits for the next opening if what is left of this one is too short to start and save, or, for
// a job that saves nothing, to finish.
func (dc *Decider) Closed(j *state.Job) (opens time.Time, closed bool) {
	w := j.Terms().Window
	if w.Always() {
		return time.Time{}, false
	}
	closes, open := w.Closes(dc.Now())
	if !open {
		return w.Opens(dc.Now()), true
	}
	if a := j.Live(); a != nil && a.Task() != state.Ended && !a.Releasing() {
		return time.Time{}, false
	}
	p := dc.Progress(j, 1)
	needs := 2*p.Restart + j.Terms().Grace
	if !j.Terms().Saves && p.Known {
		needs = p.Left + p.Restart
	}
	if needs <= w.Length() && closes.Sub(dc.Now()) < needs {
		return w.Opens(dc.Now()), true
	}
	return time.Time{}, false
}

// ClosesAt wakes j when its window closes.
func (dc *Decider) ClosesAt(j *state.Job) {
	if closes, open := j.Terms().Window.Closes(dc.Now()); open {
		dc.WakeAt(j, closes)
	}
}
