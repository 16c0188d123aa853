package zonechoice

import "slices"

// Certain uses on-demand from start to end.
type Certain struct{ Job *Job }

// Decide takes on-demand.
func (p *Certain) Decide(v View) Choice { return Choice{OnDemand, p.Job.Reserve(v)} }

// Greedy keeps a live spot machine, takes the cheapest that it sees, and otherwise waits. Only the guard keeps it
// in time.
type Greedy struct {
	Job   *Job
	round round
}

// Poll goes round the zones while no spot machine is held.
func (p *Greedy) Poll(v View) int { return p.round.poll(p.Job, v, p.Decide) }

// Decide ignores the deadline.
func (p *Greedy) Decide(v View) Choice {
	if v.Held == Spot {
		return Choice{Spot, v.Zone}
	}
	if z, ok := Cheapest(v); ok {
		return Choice{Spot, z}
	}
	if v.Held == OnDemand {
		return Choice{OnDemand, v.Zone}
	}
	return Choice{}
}

// Uniform is Uniform Progress (Wu et al., "Can't Be Late", NSDI 2024) over any of several zones: it keeps the job
// on a straight line from its start to its deadline. Second is the paper's condition for leaving on-demand: only if
// the job is ahead of the line by two restarts.
type Uniform struct {
	Job    *Job
	Second bool
	round  round
}

// Poll goes round the zones while no spot machine is held.
func (p *Uniform) Poll(v View) int { return p.round.poll(p.Job, v, p.Decide) }

// round decides which zone a published policy polls. In form B it polls one after the other, one in each tick
// without spot. If a poll is an attempt to rent, it tries only what it would take: the same zones if a tick allows
// one attempt, else the cheapest first until one succeeds. So it never pays for an attempt.
type round struct{ at int }

func (r *round) poll(j *Job, v View, decide func(View) Choice) int {
	if v.Held == Spot {
		return -1
	}
	next := -1
	if !j.Tries || j.PerTick == 1 {
		r.at = (r.at + 1) % len(j.Zones)
		next = r.at
	} else {
		for z, s := range v.Seen {
			if s == Up {
				return -1
			}
			if s == Unseen && (next < 0 || v.Prices[z] < v.Prices[next]) {
				next = z
			}
		}
	}
	if next < 0 || !j.Tries {
		return next
	}
	seen := slices.Clone(v.Seen)
	seen[next] = Up
	v.Seen = seen
	if c := j.Guard(v, decide(v)); c.Kind != Spot || c.Zone != next {
		return -1
	}
	return next
}

// Decide follows the published order of the rules.
func (p *Uniform) Decide(v View) Choice {
	j := p.Job
	if v.Held == Spot {
		return Choice{Spot, v.Zone}
	}
	move := j.Restart + j.Transfer
	if j.tight(v.Tick, v.Left, 2*move) {
		return Choice{OnDemand, j.Reserve(v)}
	}
	z, ok := Cheapest(v)
	now := float64(v.Tick) * float64(j.Tick)
	if v.Held == OnDemand {
		if ok && (!p.Second || float64(v.Done)*float64(j.Deadline) > (now+float64(2*move))*float64(j.Work)) {
			return Choice{Spot, z}
		}
		return Choice{OnDemand, v.Zone}
	}
	switch {
	case ok:
		return Choice{Spot, z}
	case float64(v.Done)*float64(j.Deadline) < now*float64(j.Work):
		return Choice{OnDemand, j.Reserve(v)}
	}
	return Choice{}
}
