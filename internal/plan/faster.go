package plan

import (
	"time"

	"scrimp/internal/market"
	"scrimp/internal/policy"
)

// unknownRun is how far a move is weighed ahead where nobody knows the work.
const unknownRun = 4 * time.Hour

// faster returns the spot machine that does the work sooner and for less than the one
// held, where going there is expected to pay: what it saves while it is expected to
// last, against two restarts, that of the move and that of its loss. Nil where there
// is none. A faster machine is never left for a slower one, so a job does not go to and fro.
func (s *sorted) faster(job *Job, v *policy.View) *Option {
	if s.held == nil || s.held.Offer.Capacity != market.Spot || job.Unsaving || job.Rule != "" && job.Rule != policy.Default {
		return nil
	}
	for _, o := range s.usable {
		if o.Offer.Capacity != market.Spot || perHour(o) <= perHour(s.held) || perWork(o) >= perWork(s.held) || !pays(job, v, s.held, o) {
			continue
		}
		run := unknownRun
		if job.Progress.Known {
			run = scaled(job.Progress, perHour(o)).Left
		}
		_, mean := o.outlasts(v.Now, run)
		away := 2 * v.Restart
		carry := 0.0
		if job.Home != "" && o.Offer.Region != job.Home {
			away += job.Transfer
			carry = job.Carry.Float()
		}
		saves := float64(perHour(o) * mean.Hours() * (perWork(s.held) - perWork(o)))
		if saves > carry+float64(away.Hours()*o.Quote.Rate.Float()) {
			return o
		}
	}
	return nil
}
