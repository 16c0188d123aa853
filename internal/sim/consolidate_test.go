package sim

import (
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/core/placement"
	"scrimp/internal/decide/state"
)

// consolidated verifies each move of a running job to a seat beside others in the plainest way: the job has its machine
// alone, has a checkpoint, has earned its last such move, and moving is expected to cost no more than staying.
func (t *twin) consolidated(out core.Outcome) {
	for _, f := range out.Facts {
		d, ok := f.(state.DrainRequested)
		if !ok || d.Why != placement.MoveConsolidates || d.Rests.IsZero() { // zero: a repeated request, not a new move
			continue
		}
		t.w.saw("a job moves beside others")
		s, now := t.w.m.State(), t.w.m.Now()
		a := s.AttemptOf(d.Attempt)
		j := s.Job(a.Job())
		own, to := s.Instance(a.Instance()), s.Instance(j.Last().Instance)
		if to == nil || own == to || len(own.Seats())-joined(out, own) != 1 || !j.HasSaved() || j.Terms().Unpreemptible {
			t.w.breaks("consolidates: %s leaves %s for %s", d.Attempt, a.Instance(), j.Last().Instance)
			continue
		}
		if now.Before(t.earned[j.ID()]) {
			t.w.breaks("consolidates: %s moves again before %v", j.ID(), t.earned[j.ID()])
		}
		t.earned[j.ID()] = d.Rests
		stay, known := statedRest(j, a, now)
		shared := time.Duration(0)
		for _, other := range s.SeatedAll(to) {
			if rest, known := statedRest(s.Job(other.Job()), other, now); known {
				shared = max(shared, rest)
			}
		}
		// it pays at least its equal part of the seat while others share it, and at most all of the machine then
		seat := j.Restart() + stay
		if costs := to.PresentRate().Until(max(0, seat-shared)); !known || costs.Cmp(own.PresentRate().Until(stay)) > 0 {
			t.w.breaks("consolidates: %s moves for %v on a machine of %v an hour that others share for %v, and stays for %v at %v",
				j.ID(), seat, to.PresentRate(), shared, stay, own.PresentRate())
		}
	}
}

// joined returns the number of tasks that a step has seated on a machine. A waiting job may take the rest of one that
// another job has just been asked to leave: it needs a machine anyway, and this one has booted.
func joined(out core.Outcome, i *state.Instance) (n int) {
	for _, f := range out.Facts {
		if g, ok := f.(state.AllocationGranted); ok && g.Instance == i.ID() {
			n++
		}
	}
	return n
}

// statedRest is restOf, or the part of the stated work that the steps since the checkpoint leave.
func statedRest(j *core.Job, a *core.Attempt, now time.Time) (time.Duration, bool) {
	if rest, known := restOf(j, a, now); known || j.Total() == 0 || j.Terms().Work == 0 {
		return rest, known
	}
	left := 1 - float64(j.SavedStep())/float64(j.Total())
	rest := time.Duration(float64(j.Terms().Work)*left/max(a.Speed(), 1e-9)) - now.Sub(a.Kept())
	return rest, rest > 0
}
