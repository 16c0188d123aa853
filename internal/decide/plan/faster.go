package plan

import (
	"time"

	"scrimp/internal/decide/policy"
)

// unknownRun is how far ahead a move is weighed if the work is unknown.
const unknownRun = 4 * time.Hour

// faster returns a spot machine that does the work sooner and for less than the held one, if the move is expected
// to pay: the savings while the new machine is expected to last must exceed two restarts, one for the move and one
// for its loss. It returns nil if there is none. A job never leaves a faster machine for a slower one, so it does
// not go back and forth.
func (r *ranking) faster(job *Job, v *policy.View) *Option {
	if r.held == nil || !r.held.spot || job.Unsaving || !job.byDefault() {
		return nil
	}
	for _, o := range r.usable {
		if !o.spot || perHour(o) <= perHour(r.held) || perWork(o) >= perWork(r.held) || !moveSaves(job, v, r.held, o) {
			continue
		}
		run := unknownRun
		if job.Progress.Known {
			run = scaled(job.Progress, perHour(o)).Left
		}
		_, mean := o.outlasts(v.Now, run)
		away := 2 * v.Restart
		carry := o.entry()
		if job.CheckpointRegion != "" && o.Offer.Region != job.CheckpointRegion {
			away += job.Transfer
			carry += job.moving(o).Float()
		}
		saves := float64(perHour(o) * mean.Hours() * (perWork(r.held) - (perWork(o) - o.readPart)))
		if saves > carry+float64(away.Hours()*o.Quote.Rate.Float()) {
			return o
		}
	}
	return nil
}
