package plan

import (
	"math"
	"time"

	"scrimp/internal/decide/policy"
	"scrimp/internal/decide/policy/horizon"
	"scrimp/internal/lib/quantity"
)

// A job that saves nothing does its work on one machine or not at all, so the
// tables, in which what is done stays done, do not tell its future. Spot is worth a
// try only where the whole of the work fits before the guard holds: later it would
// be left for on-demand with nothing to show for what it cost.

// whole reports whether the job is such a one and may choose: by the default
// policy, with a deadline before which the guard does not hold yet, and spot that
// is for sale for less.
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

// tryWhole weighs one uninterrupted run on each spot that can be had, on-demand after
// a loss, against on-demand at once, and says how long until the next poll. It
// puts the spot to be taken into s.
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
		r.spot = o // elsewhere it would begin anew
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

// onDemandCost is what is left of the work costs on on-demand, in dollars.
func onDemandCost(job *Job, r *ranking) float64 {
	left := scaled(job.Progress, r.onDemand.speed).Left
	if r.onDemand == r.held {
		return r.onDemand.hours(max(0, left-quantity.Over(job.Unsaved, perHour(r.onDemand))) + job.Warming)
	}
	return r.onDemand.hours(left + job.Progress.Restart)
}

// hours is what a span of o costs, in dollars, for ranking only.
func (o *Option) hours(span time.Duration) float64 { return o.Quote.Rate.Float() * span.Hours() }

// retries is what is expected to be paid after a loss, where as many runs of that span as
// go into the room can be tried on spot that has just come, and on-demand is paid after
// them, or instead where that is less.
func (o *Option) retries(now time.Time, run, room time.Duration, onDemand float64) float64 {
	seen := horizon.Market{Up: true, Odds: o.Watch.At(now).Odds}
	lasts, mean := horizon.Public.Outlasts(seen, run)
	usd := onDemand
	for range min(room/max(run, 1), 20) {
		usd = min(onDemand, o.hours(mean)+float64((1-lasts)*usd))
	}
	return usd
}

// attempt is what a run of that span on spot is expected to cost, with again to be
// paid after a loss, and the chance that it is not lost.
func (o *Option) attempt(now time.Time, run time.Duration, again float64) (usd, lasts float64) {
	lasts, mean := o.outlasts(now, run)
	return o.hours(mean) + float64((1-lasts)*again), lasts
}

// outlasts is the chance that o, which is up now, is not interrupted during a run of that span, and
// for how much of it it is expected to.
func (o *Option) outlasts(now time.Time, run time.Duration) (chance float64, mean time.Duration) {
	seen := o.Watch.At(now)
	seen.Up = true
	return horizon.Public.Outlasts(seen, run)
}
