// Package plan decides where money is spent.
package plan

import (
	"cmp"
	"time"

	"scrimp/internal/decide/policy"
)

// Version names the rules of this package in the log, so that a recorded decision says which rules made it.
const Version = "horizon/1"

// Decide chooses the option that does the work for the least money among those that the deadline allows. Ties go to
// the held machine, then to the lower ID, so the result does not depend on the order of the input.
//
// It ranks the listings of the job's class (rank). The policy, and the tables if the future can be weighed, choose
// the kind of capacity (choose). Decide then takes the best option of that kind.
func (m *Planner) Decide(job Job, class *Class) Decision {
	class.follow()
	r := m.room.rank(&job, class)
	v := r.view(&job)
	if job.Open != nil && v.Guard(v.Working()) { // the ladder does not restrict options that are in time
		job.Open = nil
		r = m.room.rank(&job, class)
		v = r.view(&job)
	}
	return m.decide(&job, &r, &v)
}

// decide is Decide for a ranking.
func (m *Planner) decide(job *Job, r *ranking, v *policy.View) Decision {
	d := Decision{Budget: r.budget.shown(job, r)}
	zones := r.zones(job, v)
	if at, ok := r.probe(job, v); ok && zones == nil {
		d.Probe, d.Why = at, Probing
		m.rejected.explain(&d, job, r, nil)
		return d
	}
	d.Speed = r.speed()
	d.Slack, d.HasSlack = v.Slack(job.Held != "")
	d.Slack -= v.Warming
	d.Margin = v.Margin
	c := m.choose(&d, job, r, v, zones)
	if d.Table != nil {
		m.meanwhile(&d, job, r, v, c)
		return d
	}
	if d.Probe != "" {
		m.rejected.explain(&d, job, r, nil)
		return d
	}
	if !c.placed {
		c.take, d.Why = r.take(job, v, &c)
	}
	c.record(&d, job, r)
	d.Again = c.again(&d, job, r, v)
	m.rejected.explain(&d, job, r, &c)
	return d
}

// record writes the chosen option into d.
func (c *choice) record(d *Decision, job *Job, r *ranking) {
	o := c.take
	switch {
	case o == nil:
		return
	case o == r.held:
	case o.prepaid:
		d.Why = Prepaid
	case o == r.onDemand && (c.keptOff || !c.placed && job.Unsaving && c.foresaw):
		d.Why = SavesNone
	}
	d.Take, d.Rate, d.Reads = o.Offer.ID, o.Quote.Rate, o.reads
	d.Gets = job.Need.gets(o)
	if o.way > 0 {
		d.Variant = job.Need.Variants[o.way-1].Name
	}
}

// choice is the kind of capacity to take, and how it was found.
type choice struct {
	kind     policy.Choice
	take     *Option       // the chosen option; nil: wait
	placed   bool          // take was chosen with the kind, by weighing several zones
	foresaw  bool          // the expected cost of each kind was weighed
	step     time.Duration // time until the next poll, if it was weighed
	late     bool          // the running machine may finish in time, and nothing else would
	weighing bool          // the table with the expected cost of each kind is missing
	keptOff  bool          // kept off preemptible capacity after unsaved losses there
}

// choose finds the kind of capacity to take.
func (m *Planner) choose(d *Decision, job *Job, r *ranking, v *policy.View, zones []*Option) choice {
	c := choice{kind: policy.Choose(cmp.Or(job.Rule, policy.Default), *v)}
	d.Mode = v.Mode(v.Working())
	if job.Need.Critical {
		c.kind, d.Mode = policy.NonPreemptible, policy.Certain
	}
	switch {
	case c.kind == policy.NonPreemptible && r.tooLate(job, v):
		c.kind, c.late = policy.Spot, true
	case r.whole(job, v):
		c.kind, c.step = m.tryWhole(d, job, r, v)
		c.foresaw = true
	case zones != nil:
		c.take, d.Probe = m.place(d, job, r, v, zones)
		c.kind, c.step, c.foresaw, c.placed = kindOf(c.take), tickOf(v), true, true
	case r.foreseeable(job, v):
		c.kind, c.step = m.foresee(d, job, r, v)
		c.foresaw = true
	}
	if d.Table == nil && r.onDemand != nil {
		c.giveUpSpot(job)
	}
	return c
}

// giveUpSpot switches a job to non-preemptible capacity if it lost too much on preemptible capacity, or has waited for
// as long as its job file allows.
func (c *choice) giveUpSpot(job *Job) {
	if job.UnsavedLosses >= mostUnsavedLosses && c.kind != policy.NonPreemptible && (!job.Unsaving || !c.foresaw) {
		c.keptOff, c.kind, c.placed, c.foresaw = true, policy.NonPreemptible, false, false
	}
	if c.kind == policy.Wait && len(job.Need.Ladder) > 0 {
		c.kind, c.placed = policy.NonPreemptible, false
	}
}

// tooLate reports whether the running machine may finish in time and non-preemptible capacity would not.
func (r *ranking) tooLate(job *Job, v *policy.View) bool {
	return v.Working() && !job.Need.Critical && job.Rule != policy.OnDemand && r.onDemand != nil &&
		late(job, r.onDemand)
}

// mostUnsavedLosses is the number of machines that a job without checkpoints may lose before it is kept off
// preemptible capacity. Restarted from scratch each time, it might never finish.
const mostUnsavedLosses = 3

// kindOf returns the kind of capacity of an option.
func kindOf(o *Option) policy.Choice {
	switch {
	case o == nil:
		return policy.Wait
	case o.spot:
		return policy.Spot
	}
	return policy.NonPreemptible
}

// again returns the next time at which the passing of time alone could change the decision; zero: never.
func (c *choice) again(d *Decision, job *Job, r *ranking, v *policy.View) (at time.Time) {
	switch {
	case c.foresaw:
		at = r.again(v, c.kind, c.step)
	case c.take == nil && c.kind == policy.NonPreemptible:
		if !v.Guard(v.Working()) {
			at, _ = v.GuardAt(v.Working()) // then the ladder no longer counts
		}
	case c.late: // time changes nothing any more
	case c.kind == policy.Wait || c.take != nil && c.take.spot:
		at = policy.Again(cmp.Or(job.Rule, policy.Default), *v, c.kind)
	}
	if c.take == nil && at.IsZero() && r.untried && d.Why == BudgetWait { // nobody else probes
		at = v.Now.Add(max(v.Poll, v.Detect, time.Minute))
	}
	return at
}
