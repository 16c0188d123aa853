package plan

import (
	"time"

	"scrimp/internal/decide/policy"
)

// unknownRun is how far a move is weighed ahead where nobody knows the work.
const unknownRun = 4 * time.Hour

// faster returns the spot machine that does the work sooner and for less than the one
// held, where going there is expected to pay: what it saves while it is expected to
// last, against two restarts, that of the move and that of its loss. Nil where there
// is none. A faster machine is never left for a slower one, so a job does not go to and fro.
func (r *ranking) faster(job *Job, v *policy.View) *Option {
	if r.held == nil || !r.held.spot || job.Unsaving || !job.byDefault() {
		return nil
	}
	for _, o := range r.usable {
		if !o.spot || perHour(o) <= perHour(r.held) || perWork(o) >= perWork(r.held) || !pays(job, v, r.held, o) {
			continue
		}
		run := unknownRun
		if job.Progress.Known {
			run = scaled(job.Progress, perHour(o)).Left
		}
		_, mean := o.outlasts(v.Now, run)
		away := 2 * v.Restart
		carry := 0.0
		if job.CheckpointRegion != "" && o.Offer.Region != job.CheckpointRegion {
			away += job.Transfer
			carry = job.moving(o).Float()
		}
		saves := float64(perHour(o) * mean.Hours() * (perWork(r.held) - perWork(o)))
		if saves > carry+float64(away.Hours()*o.Quote.Rate.Float()) {
			return o
		}
	}
	return nil
}
