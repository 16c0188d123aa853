package plan

import (
	"slices"

	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// Reservation is how a job may use a reserved offer.
type Reservation struct {
	Offer    market.OfferID
	InUse    bool // all its machines are in use
	Promised bool // kept for another job; also set if this job holds it and must leave it
}

// reservation returns how the job may use a reserved offer.
func (job *Job) reservation(id market.OfferID) Reservation {
	for _, r := range job.Reserved {
		if r.Offer == id {
			return r
		}
	}
	return Reservation{}
}

// Elsewhere returns the hourly price of the machine that the job would take or keep if nothing were reserved, and
// how fast its work is done there. It returns 0 if the job would wait.
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

// endsSoon reports whether the reservation of o ends too soon to go there: within three restarts, or before the end
// of the work if the deadline allows no second move or the job saves nothing.
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

// shortLived reports whether the machines of o end before one of them could finish the work, and the job saves
// nothing to resume from: it would start from scratch forever.
func shortLived(job *Job, o *Option) bool {
	if o.Offer.MaxLifetime <= 0 || !job.Unsaving || !job.Progress.Known || job.Sooner {
		return false
	}
	p := scaled(job.Progress, o.speed)
	return p.Left > o.Offer.MaxLifetime-p.Restart
}
