package plan

import (
	"time"

	"scrimp/internal/decide/policy"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/quantity"
)

// pays reports whether leaving held for o saves more than the move costs: the
// restart is paid at o's price and does no work, and a checkpoint that goes to
// another region costs its egress. Where nobody knows the work, what costs less per
// work pays.
func pays(job *Job, v *policy.View, held, o *Option) bool {
	if !job.Progress.Known {
		return perWork(o) < perWork(held)
	}
	slack, timed := v.Slack(false)
	switch {
	case !timed:
	case o.spot && slack <= 3*v.Restart+v.Detect+v.Margin+v.Poll:
		return false // the job would come back at once
	case slack < v.Detect+v.Margin:
		return false // the move would make it late
	}
	left := job.Progress.Left
	if job.Unsaving {
		left -= job.Unsaved // which a move would throw away
	}
	stay := perWork(held) * left.Hours()
	move := float64(perWork(o)*job.Progress.Left.Hours()) + float64(o.Quote.Rate.Float()*job.Progress.Restart.Hours())
	if job.migrates(o) {
		move += job.moving(o).Float()
	}
	return move < stay
}

// perWork is the price of an hour of work on a machine of speed 1, for ranking only.
func perWork(o *Option) float64 { return o.perHourOfWork }

// more is what an hour on o adds to what is paid anyway, where that is something: the marginal rate of a
// machine of one's own, else the price.
func (o *Option) more() money.Rate {
	if o.prepaid && o.Offer.Reserved.Marginal > 0 {
		return o.Offer.Reserved.Marginal
	}
	return o.Quote.Rate
}

// perHour is the work of an hour on o, in hours on a machine of speed 1.
func perHour(o *Option) float64 {
	if o.speed <= 0 {
		return 1
	}
	return o.speed
}

// late reports whether the work left would not be done in time on o.
func late(job *Job, o *Option) bool {
	slack, ok := scaled(job.Progress, o.speed).Slack(o.held)
	return ok && slack < 0
}

// onSpeed is how long work takes on a machine of that speed.
func onSpeed(work time.Duration, speed float64) time.Duration {
	if speed > 0 && speed != 1 {
		return quantity.Over(work, speed)
	}
	return work
}

// scaled is p with its work counted on a machine of that speed.
func scaled(p policy.Progress, speed float64) policy.Progress {
	p.Left, p.Done, p.Margin = onSpeed(p.Left, speed), onSpeed(p.Done, speed), onSpeed(p.Margin, speed)
	return p
}
