package plan

import (
	"math"
	"time"

	"scrimp/internal/decide/policy"
	"scrimp/internal/decide/policy/onezone"
	"scrimp/internal/lib/quantity"
)

// A job that saves nothing does all its work on one machine, so the tables, in which finished work stays finished,
// do not predict its future. Spot is worth a try only if the whole work fits before the guard applies: otherwise
// the job would leave spot for on-demand with nothing to show for the cost.

// whole reports whether the job is such a job and may choose: it uses the default policy, has a deadline for which
// the guard does not apply yet, and spot is for sale for less than on-demand.
func (r *ranking) whole(job *Job, v *policy.View) bool {
	if !job.Unsaving || !job.byDefault() || job.Need.Critical || r.onDemand == nil || len(r.spots) == 0 {
		return false
	}
	if r.held != nil && r.held.spot {
		return v.Known && !v.Deadline.IsZero() && !v.Guard(v.Working())
	}
	return perWork(r.spots[0]) < perWork(r.onDemand) && v.Known && v.Left > 0 && !v.Deadline.IsZero() &&
		!v.Guard(v.Working())
}

// tryWhole compares one uninterrupted run on each available spot option, with on-demand after a loss, against
// on-demand at once. It returns the time until the next poll, and sets r.spot to the spot option to take.
func (m *Planner) tryWhole(d *Decision, job *Job, r *ranking, v *policy.View) (policy.Choice, time.Duration) {
	guard, _ := v.GuardAt(false)
	room := guard.Sub(v.Now)
	step := max(v.Poll, v.Detect, time.Minute)
	onDemand := onDemandCost(job, r)
	d.Expect = &Expect{OnDemand: dollars(onDemand), Up: r.spot != nil, NextPoll: step}

	if o := r.held; o != nil && o.spot {
		run := max(0, scaled(job.Progress, o.speed).Left-quantity.Over(job.Unsaved, perHour(o))) + job.Warming
		again := onDemand + o.hours(v.Restart)
		cost, lasts := o.attempt(v.Now, run, o.retries(v.Now, run+v.Restart, room-run, again))
		d.Expect.Spot, d.Expect.Chance, d.Expect.NextPoll = dollars(cost), chance(lasts, true), max(run, step)
		if run > room {
			return policy.NonPreemptible, step
		}
		r.spot = o // it would start from scratch elsewhere
		return policy.Spot, step
	}
	best, least := (*Option)(nil), math.Inf(1)
	soonest := time.Duration(math.MaxInt64)
	for _, o := range r.spots {
		p := scaled(job.Progress, o.speed)
		run := p.Restart + p.Left + p.Margin + v.Detect
		soonest = min(soonest, run)
		if run > room || !o.Quote.Available || job.cools(o) || o.Quote.Untried {
			continue
		}
		if cost, lasts := o.attempt(v.Now, run, o.retries(v.Now, run, room-run, onDemand)); cost < least {
			best, least = o, cost
			d.Expect.Spot, d.Expect.Chance, d.Expect.NextPoll = dollars(cost), chance(lasts, true), max(run, step)
		}
	}
	switch {
	case best != nil && least < onDemand:
		r.spot = best
		return policy.Spot, step
	case best == nil && r.held == nil && quantity.Add(soonest, step) <= room:
		return policy.Wait, min(step, room-soonest)
	}
	return policy.NonPreemptible, step
}

// onDemandCost is the cost of the remaining work on on-demand, in dollars.
func onDemandCost(job *Job, r *ranking) float64 {
	left := scaled(job.Progress, r.onDemand.speed).Left
	if r.onDemand == r.held {
		return r.onDemand.hours(max(0, left-quantity.Over(job.Unsaved, perHour(r.onDemand))) + job.Warming)
	}
	return r.onDemand.hours(left+job.Progress.Restart) + r.onDemand.entry()
}

// hours is the cost of a span on o, in dollars, for ranking only.
func (o *Option) hours(span time.Duration) float64 { return o.Quote.Rate.Float() * span.Hours() }

// retries is the expected cost after a loss: as many runs as fit into room are tried on fresh spot, and on-demand
// is paid after them, or instead of them if that costs less.
func (o *Option) retries(now time.Time, run, room time.Duration, onDemand float64) float64 {
	seen := onezone.Market{Up: true, Odds: o.Watch.At(now).Odds, Losses: o.losses}
	lasts, mean := onezone.Public.Outlasts(seen, run)
	usd := onDemand
	for range min(room/max(run, 1), 20) {
		usd = min(onDemand, o.reads.Float()+o.hours(mean)+float64((1-lasts)*usd))
	}
	return usd
}

// attempt is the expected cost of a run of that span on spot, with again to be paid after a loss, and the
// probability that it is not lost.
func (o *Option) attempt(now time.Time, run time.Duration, again float64) (usd, lasts float64) {
	lasts, mean := o.outlasts(now, run)
	return o.entry() + o.hours(mean) + float64((1-lasts)*again), lasts
}

// outlasts returns the probability that o, which is up now, survives a run of that span, and how much of the run it
// is expected to last.
func (o *Option) outlasts(now time.Time, run time.Duration) (chance float64, mean time.Duration) {
	seen := o.Watch.At(now)
	seen.Up, seen.Losses = true, o.losses
	return onezone.Public.Outlasts(seen, run)
}
