package place

// Certain is on-demand from the start to the end.
type Certain struct{ Job *Job }

// Decide takes on-demand.
func (p *Certain) Decide(v View) Choice { return Choice{OnDemand, p.Job.Reserve(v)} }

// Greedy keeps a live spot machine, takes the cheapest that it sees, and waits
// otherwise; the guard alone is on time.
type Greedy struct{ Job *Job }

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

// Uniform is Uniform Progress (Wu et al., "Can't Be Late", NSDI 2024) over any
// of several zones: the job is kept on a straight line from its start to its
// deadline. Second is the paper's condition for leaving on-demand: only where
// the job is ahead of the line by two restarts.
type Uniform struct {
	Job     *Job
	Second  bool
	pointer int
}

// Poll goes round the zones while no spot machine is held.
func (p *Uniform) Poll(v View) int {
	if v.Held == Spot {
		return -1
	}
	p.pointer = (p.pointer + 1) % len(p.Job.Zones)
	return p.pointer
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
