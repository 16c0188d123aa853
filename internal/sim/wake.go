package sim

import (
	"time"

	"scrimp/internal/decide/core"
)

// schedule arranges the core's next tick at the time that the core asks for.
func (w *World) schedule(wake time.Time) {
	if wake.IsZero() || !w.tick.IsZero() && !wake.Before(w.tick) && w.tick.After(w.now) {
		return
	}
	w.tick = wake
	at := wake.Add(-w.skew)
	if at.Before(w.now) {
		at = w.now
	}
	if w.fault == FaultNoTick {
		at = at.Add(2 * time.Hour)
	}
	w.at(at, func() {
		if w.tick.Equal(wake) {
			w.tick = time.Time{}
			w.rests()
			w.step(core.Tick{})
		}
	})
}

// ticksASecond bounds the ticks that the core may request within a second. After a restart many are due at once.
const ticksASecond = 20_000

// rests verifies that the core does not request ticks in a loop.
func (w *World) rests() {
	if w.now.Sub(w.ticked) >= time.Second {
		w.ticked, w.ticks = w.now, 0
	}
	if w.ticks++; w.ticks == ticksASecond {
		w.breaks("restless: the core asked %d times to look again, within a second", w.ticks)
		w.heap = nil // it would never end
	}
}
