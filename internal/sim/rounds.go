package sim

import (
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/plan/round"
)

// round begins a round, whose groups come when it is over: what happens meanwhile makes them
// stale. A server that dies meanwhile never hears of it.
func (w *World) round() {
	s := w.m.RoundInputs()
	p := round.Plan(s)
	took := round.Took(&s) * time.Duration(max(1, w.slowRounds))
	life := w.lives
	w.after(took, func() {
		if life == w.lives && w.up {
			w.step(core.RoundProposed{Base: p.Base, Groups: p.Groups, Again: p.Again})
		}
	})
}
