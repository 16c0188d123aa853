package plan

import "scrimp/internal/decide/policy"

// take returns the option for the chosen kind of capacity, and the reason; nil means to wait.
func (r *ranking) take(job *Job, v *policy.View, c *choice) (*Option, Reason) {
	switch {
	case r.affordable == 0:
		return nil, r.nothing()
	case c.kind == policy.NonPreemptible && r.onDemand != nil:
		return r.takeOnDemand(job, v, c)
	case r.held != nil && (c.kind == policy.NonPreemptible || c.kind == policy.Spot && r.held == r.spot):
		return r.stay(job, v, c)
	case r.spot != nil && c.kind != policy.Wait && !job.Need.Critical:
		return r.takeSpot(job, v, c)
	case r.budget.kept:
		return nil, BudgetWait
	case c.kind == policy.Wait && r.sold:
		return nil, WaitsSpot
	}
	return nil, NoCapacity
}

// nothing returns the reason why the job could pay for nothing.
func (r *ranking) nothing() Reason {
	switch {
	case r.fits > 0:
		return r.budget.broke()
	case r.later:
		return NoCapacity
	}
	return NoOffer
}

// takeSpot takes the cheapest spot option, unless the move does not pay.
func (r *ranking) takeSpot(job *Job, v *policy.View, c *choice) (*Option, Reason) {
	heldOnDemand := r.held != nil && !r.held.spot
	if job.byDefault() && r.held != nil && (!c.foresaw || !heldOnDemand) && !moveSaves(job, v, r.held, r.spot) {
		return r.held, Stays
	}
	return r.spot, Cheapest
}

// takeOnDemand takes a non-preemptible option.
func (r *ranking) takeOnDemand(job *Job, v *policy.View, c *choice) (*Option, Reason) {
	heldOnDemand := r.held != nil && !r.held.spot
	if heldOnDemand && (r.onDemand == r.held || !moveSaves(job, v, r.held, r.onDemand)) {
		return r.held, Stays
	}
	slack, timed := v.Slack(true)
	behind, _ := v.Behind(0)
	switch {
	case job.Need.Critical || job.Rule == policy.OnDemand:
		return r.onDemand, ByRule
	case heldOnDemand || !v.Sold:
		return r.onDemand, Cheapest
	case c.foresaw:
		return r.onDemand, WaitsMore
	case timed && slack < 2*v.Restart+v.Reserve+v.Detect+v.Margin+v.Poll:
		return r.onDemand, SlackGone
	case behind:
		return r.onDemand, BehindPace
	case v.Uncounted:
		return r.onDemand, Uncounted
	}
	return r.onDemand, ByRule
}

// stay keeps the held machine, unless another is cheaper by enough that the move pays.
func (r *ranking) stay(job *Job, v *policy.View, c *choice) (*Option, Reason) {
	if r.held == r.spot && r.onDemand != nil && perWork(r.onDemand) <= perWork(r.held) &&
		moveSaves(job, v, r.held, r.onDemand) {
		return r.onDemand, Cheapest // its price rose above non-preemptible capacity
	}
	if o := r.closer(job, v); o != nil {
		return o, Cheapest
	}
	if o := r.faster(job, v); o != nil && c.kind == policy.Spot {
		return o, Cheapest
	}
	return r.held, Stays
}

// byDefault reports whether the job uses the default policy.
func (job *Job) byDefault() bool { return job.Rule == "" || job.Rule == policy.Default }
