package sim

import (
	"math/rand/v2"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/state"
)

// gangs reports whether jobs of this life may take several machines at once.
func (w *World) gangs() bool {
	return w.extra != nil && !w.calm5() && !w.plain && w.seed%7 == 3 && !w.warm()
}

// drawGang turns a job into a gang, elastic or not, from its own random source.
func (w *World) drawGang(j *simJob) {
	if w.gang == nil {
		w.gang = rand.New(rand.NewPCG(w.seed, 0x6a46))
		w.partly = 0.2
	}
	if w.gang.IntN(4) == 0 {
		return
	}
	t := &j.terms
	t.Nodes = 2 + w.gang.IntN(3)
	if w.gang.IntN(3) == 0 {
		t.LeastNodes = 1 + w.gang.IntN(t.Nodes)
	}
	t.Budget = t.Budget.Add(t.Budget)
	for n := 2; n < t.Nodes && t.HasBudget; n++ {
		t.Budget = t.Budget.Add(t.Budget)
	}
	t.GPUHours *= float64(t.Nodes)
}

// gangWait is the longest time for which a gang may have some of its machines and wait for the others.
const gangWait = 10 * time.Minute

// halfRented verifies that a gang gives up some of its machines in time if the others do not come.
func (t *twin) halfRented(e core.Event) {
	s := t.w.m.State()
	waits := map[string]time.Time{}
	for a := range s.Allocations() {
		if a.Nodes() == 1 || a.Phase() != state.Pending || a.Answered() || len(a.Granted()) == 0 {
			continue
		}
		t.w.saw("a gang waits for the rest of its machines")
		since, known := t.half[a.ID()]
		if !known {
			since = s.Now()
		}
		waits[a.ID()] = since
		most := max(gangWait, s.Config().TimingOf(a.Machine().Provider).GrantWait)
		paused, aside := e.Body.(core.JobPaused) // a step that sets a job aside works on no other
		if half := s.Now().Sub(since); half > most && (!aside || paused.Cause == "") {
			t.w.breaks("gang wait: %s has %d of %d machines for %v", a.ID(), len(a.Granted()), a.Nodes(), half)
		}
	}
	t.half = waits
}
