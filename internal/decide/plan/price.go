package plan

import (
	"time"

	"scrimp/internal/decide/policy"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/quantity"
)

// moveSaves reports whether leaving held for o costs less than staying: the rest of the work at o's price plus a
// restart, against the rest of the work at held's price. It also decides between an idle machine, which counts as held,
// and a new one. The restart is billed at o's price and does no work, and moving a checkpoint to another region costs
// its egress. If the work is unknown, a lower price per unit of work decides.
func moveSaves(job *Job, v *policy.View, held, o *Option) bool {
	if !job.Progress.Known {
		return perWork(o) < perWork(held)
	}
	slack, timed := v.Slack(false)
	switch {
	case !timed:
	case o.spot && slack <= 3*v.Restart+v.Detect+v.Margin+v.Poll:
		return false // the job would come straight back
	case slack < v.Detect+v.Margin:
		return false // the move would make the job late
	}
	left := job.Progress.Left
	if job.Unsaving {
		left -= job.Unsaved // a move would discard it
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

// more is what an hour on o adds to the bill: the marginal rate of a machine that the user owns, if it has one,
// else the price.
func (o *Option) more() money.Rate {
	if o.prepaid && o.Offer.Reserved.Marginal > 0 {
		return o.Offer.Reserved.Marginal
	}
	return o.Quote.Rate
}

// perHour is the work done in an hour on o, in hours on a machine of speed 1.
func perHour(o *Option) float64 {
	if o.speed <= 0 {
		return 1
	}
	return o.speed
}

// late reports whether the remaining work would finish after the deadline on o.
func late(job *Job, o *Option) bool {
	slack, ok := scaled(job.Progress, o.speed).Slack(o.held)
	return ok && slack < 0
}

// onSpeed returns how long work takes on a machine of that speed.
func onSpeed(work time.Duration, speed float64) time.Duration {
	if speed > 0 && speed != 1 {
		return quantity.Over(work, speed)
	}
	return work
}

// scaled returns p with its work counted on a machine of that speed.
func scaled(p policy.Progress, speed float64) policy.Progress {
	p.Left, p.Done, p.Margin = onSpeed(p.Left, speed), onSpeed(p.Done, speed), onSpeed(p.Margin, speed)
	return p
}
