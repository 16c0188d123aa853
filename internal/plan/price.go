package plan

import (
	"scrimp/internal/market"
	"scrimp/internal/policy"
)

// pays reports whether leaving held for o saves more than the move costs: the
// restart is paid at o's price and does no work. Where nobody knows the work,
// what costs less per work pays.
func pays(job *Job, v *policy.View, held, o *Option) bool {
	if !job.Progress.Known {
		return perWork(o) < perWork(held)
	}
	slack, timed := v.Slack(false)
	switch {
	case !timed:
	case o.Offer.Capacity == market.Spot && slack <= 3*v.Restart+v.Detect+v.Doubt+v.Look:
		return false // the job would come back at once
	case slack < v.Detect+v.Doubt:
		return false // the move would make it late
	}
	left := job.Progress.Left
	if job.Unsaving {
		left -= job.Unsaved // which a move would throw away
	}
	stay := perWork(held) * left.Hours()
	move := float64(perWork(o)*job.Progress.Left.Hours()) + float64(o.Quote.Rate.Float()*job.Progress.Restart.Hours())
	return move < stay
}

// perWork is the price of an hour of work on a machine of speed 1, for ranking only.
func perWork(o *Option) float64 {
	if prepaid(o) {
		return 0
	}
	return o.Quote.Rate.Float() / perHour(o)
}

// prepaid reports whether o costs nothing more, used or not.
func prepaid(o *Option) bool { return o.Offer.Reserved.Count > 0 }

// ends reports whether o is reserved for too short a time to go there: for less than
// three restarts, or not to the end of the work where the deadline allows no second move.
func ends(job *Job, o *Option) bool {
	if !prepaid(o) {
		return false
	}
	p := scaled(job.Progress, o.speed)
	lasts := o.Offer.Reserved.Until.Sub(p.Now) - p.Restart
	if lasts < 2*p.Restart {
		return true
	}
	slack, timed := p.Slack(false)
	return timed && p.Left > lasts && slack < 2*p.Restart+p.Reserve+p.Detect+p.Doubt
}

// perHour is the work of an hour on o, in hours on a machine of speed 1.
func perHour(o *Option) float64 {
	if o.speed <= 0 {
		return 1
	}
	return o.speed
}
