package placement

import (
	"slices"
	"time"

	"scrimp/internal/decide/core/step"
	"scrimp/internal/decide/state"
	"scrimp/internal/market"
)

// Frees returns how many machines of a reserved offer jobs have or request, and when they become free, soonest
// first, as their jobs are expected to progress from t. t must not be before the last event. It omits machines
// whose jobs have an unknown end.
func (mk *Market) Frees(o *market.Offer, t time.Time) (used int, at []time.Time) {
	if o.Reserved.Count == 0 {
		return 0, nil
	}
	ends, endless := map[string]time.Time{}, map[string]bool{} // by machine, which several jobs may share
	for _, j := range mk.State.Running() {
		for _, a := range j.Open() {
			if a.Offer() != o.ID || !a.Live() {
				continue
			}
			lasts, known := HoldsFor(j, a, t)
			for _, k := range a.Tasks() {
				if k.Live() {
					ends[k.Instance()] = step.Later(ends[k.Instance()], t.Add(lasts))
					endless[k.Instance()] = endless[k.Instance()] || !known
				}
			}
		}
	}
	for machine, end := range ends {
		if !endless[machine] {
			at = append(at, end)
		}
	}
	slices.SortFunc(at, time.Time.Compare)
	return max(0, o.Reserved.Count-max(0, mk.Free(o))), at
}

// HoldsFor returns how long j is expected to hold the machines of a from t on. ok is false if that is unknown.
func HoldsFor(j *state.Job, a *state.Attempt, t time.Time) (time.Duration, bool) {
	if j.Ending() != "" || a.Draining() {
		return 0, true // they are being terminated
	}
	start, kept := time.Duration(0), a.Kept()
	if a.Started().IsZero() {
		start, kept = max(0, j.Restart()+a.Transfer()-t.Sub(a.Requested())), time.Time{}
	}
	left, _, known := step.Remains(j, a.Machine().Speed, kept, t)
	return start + left, known
}
