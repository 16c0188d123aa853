package groups

import (
	"time"

	"scrimp/internal/work/retrain"
)

// RunMove is a planner's proposal for a run of a schedule.
type RunMove struct {
	Saw    time.Time `json:"saw,omitzero"`     // the due time that the planner knew
	Due    time.Time `json:"due,omitzero"`     // when the run was due
	Missed int       `json:"missed,omitempty"` // earlier due times that passed while the server was down
	Next   time.Time `json:"next"`             // the next due time, or when the server looks again at a run that waits
	// Since is when a run was due that waits for a price; zero: none waits.
	Since time.Time `json:"since,omitzero"`
	// Checks are what the conditions of the schedule compared.
	Checks []retrain.Check `json:"checks,omitempty"`
}

// DueSince returns when the run of a move was due first: it may have waited for a price since then.
func (s *Snapshot) DueSince(r *RunMove) time.Time {
	if !s.Since.IsZero() {
		return s.Since
	}
	return r.Due
}

// Under returns the move that starts a run, skips it or lets it wait, by the conditions of the schedule.
func (v Move) Under(s *Snapshot, by retrain.Verdict) Move {
	r := *v.Run
	r.Checks = by.Checks
	v.Run = &r
	switch {
	case by.Begin:
		return v
	case by.Wait.IsZero():
		v.Do, v.Why = Skip, by.Why
		return v
	}
	since := s.DueSince(&r)
	return Move{Do: Await, Why: by.Why, Run: &RunMove{Saw: r.Saw, Next: by.Wait, Since: since, Checks: by.Checks}}
}
