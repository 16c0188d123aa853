package plan

import (
	"slices"

	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// Reservation is how a job may have a reserved offer.
type Reservation struct {
	Offer    market.OfferID
	InUse    bool // all its machines are
	Promised bool // kept for another job; also where the job holds it, and is to leave it
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

// Elsewhere is what an hour of the machine costs that the job would take or stay on if nothing
// were reserved, and how fast its work is done there; 0 where it would wait.
func (m *Planner) Elsewhere(job Job, class *Class) (rate money.Rate, speed float64) {
	job.Unreserved = true
	d := m.Decide(job, class)
	l := class.listings.Of(d.Take)
	if l == nil {
		return 0, 0
	}
	way := 1 + slices.IndexFunc(job.Need.Variants, func(v Variant) bool { return v.Name == d.Variant })
	return d.Rate, job.Need.speed(way, l)
}

// endsSoon reports whether o is reserved for too short a time to go there: for less than
// three restarts, or not to the end of the work where the deadline allows no second move, or nothing is saved.
func endsSoon(job *Job, o *Option) bool {
	if !o.prepaid {
		return false
	}
	p := scaled(job.Progress, o.speed)
	lasts := o.Offer.Reserved.Until.Sub(p.Now) - p.Restart
	if lasts < 2*p.Restart || job.Unsaving && p.Known && p.Left > lasts {
		return true
	}
	slack, timed := p.Slack(false)
	return timed && p.Left > lasts && slack < 2*p.Restart+p.Reserve+p.Detect+p.Margin
}

// shortLived reports whether the machines of o are taken before the work could be done on one of them,
// and the job saves nothing that the next one could go on from: it would begin anew for ever.
func shortLived(job *Job, o *Option) bool {
	if o.Offer.MaxLifetime <= 0 || !job.Unsaving || !job.Progress.Known || job.Sooner {
		return false
	}
	p := scaled(job.Progress, o.speed)
	return p.Left > o.Offer.MaxLifetime-p.Restart
}
