package step

import (
	"time"

	"scrimp/internal/decide/state"
)

// Tries is how many queued jobs one step tries, at most.
const Tries = 64

// WakeAt asks for a review of j at t, or earlier where that was asked before.
func (c *Context) WakeAt(j *state.Job, t time.Time) {
	if t.IsZero() {
		return
	}
	if !t.After(c.Now()) {
		t = c.Now().Add(time.Nanosecond)
	}
	if p := TimesOf(j); p.Wake.IsZero() || t.Before(p.Wake) {
		p.Wake = t
		c.Wakes.Push(Wake{t, j})
	}
}
