package plan

import "scrimp/internal/market"

// Reservation is how a job may have a reserved offer.
type Reservation struct {
	Offer    market.OfferID
	InUse    bool // all its machines are
	Promised bool // to a job that would pay more elsewhere or is more urgent; also where the job holds it
}

// reservation is what the job may have of a reserved offer.
func (job *Job) reservation(id market.OfferID) Reservation {
	for _, r := range job.Reserved {
		if r.Offer == id {
			return r
		}
	}
	return Reservation{}
}

// endsSoon reports whether o is reserved for too short a time to go there: for less than
// three restarts, or not to the end of the work where the deadline allows no second move.
func endsSoon(job *Job, o *Option) bool {
	if !o.prepaid {
		return false
	}
	p := scaled(job.Progress, o.speed)
	lasts := o.Offer.Reserved.Until.Sub(p.Now) - p.Restart
	if lasts < 2*p.Restart {
		return true
	}
	slack, timed := p.Slack(false)
	return timed && p.Left > lasts && slack < 2*p.Restart+p.Reserve+p.Detect+p.Margin
}
