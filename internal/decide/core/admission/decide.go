package admission

import (
	"cmp"
	"time"

	"scrimp/internal/decide/state"
	"scrimp/internal/lib/quantity"
)

// Unsaved is the work that the machine of j has done since the newest checkpoint, on speed 1.
func (ad *Admission) Unsaved(j *state.Job) time.Duration {
	a, t := j.Live(), j.Terms()
	switch {
	case a == nil || a.Task() != state.TaskRunning || a.Nodes() > 1 && j.State() != state.Running:
		return 0
	case j.Total() > 0 && j.StepRate() > 0:
		return quantity.Hours(float64(max(0, a.Step()-j.SavedStep())) / j.StepRate())
	case t.Work > 0 && j.Total() > 0:
		return state.Share(t.Work, min(max(0, a.Step()-j.SavedStep()), j.Total()), j.Total())
	}
	return quantity.Scale(max(0, ad.Now().Sub(a.Kept())), cmp.Or(max(a.Speed(), 0), 1))
}
