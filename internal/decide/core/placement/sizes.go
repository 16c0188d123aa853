package placement

import (
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/state"
	"scrimp/internal/market"
)

// sized returns the portion that j has of a machine with those seats: least, or more processors (or accelerators) of
// its range if its work costs less with them, or if only they meet its deadline. On an empty machine the job pays for
// all of it, so more cost nothing: it has as many as it may, unless jobs wait that could share the machine. nil is the
// whole machine.
func (dc *Decider) sized(j *state.Job, o *market.Offer, variant string, seats []state.Seat, left leftover,
	least *state.Portion) *state.Portion {
	need := &j.Terms().Need
	asks := need.RequirementsOf(variant)
	if need.Parallel <= 0 || !asks.Ranges() || dc.crowded(j) {
		return least
	}
	begin, free := unitsOf(least, asks), left.cpus
	if asks.Accelerator != "" {
		free = len(left.devices)
	}
	end := asks.MostUnits(o, free)
	if len(seats) == 0 {
		return dc.largest(asks, o, left, least, end)
	}
	best, others := least, sharesOf(seats)
	price, inTime := perSpeed(least, others, 1), dc.inTime(j, o, variant, begin)
	for n := begin + 1; n <= end; n++ {
		p := PartOf(asks.With(n), o)
		if p == nil || !left.fits(p) {
			break
		}
		v := perSpeed(p, others, need.GainOf(variant, n))
		if ok := dc.inTime(j, o, variant, n); ok && !inTime || ok == inTime && v < price {
			best, price, inTime = p, v, ok
		}
	}
	return best
}

// largest returns the largest portion of an empty machine with at most that many units; nil is the whole machine.
func (dc *Decider) largest(asks *plan.Requirements, o *market.Offer, left leftover, least *state.Portion,
	units int) *state.Portion {
	for ; units > unitsOf(least, asks); units-- {
		if p := PartOf(asks.With(units), o); p == nil || left.fits(p) {
			return p
		}
	}
	return least
}

// perSpeed is the part of the machine's price that the portion pays beside the shares of others, for one unit of speed.
func perSpeed(p *state.Portion, others int64, speed float64) float64 {
	return float64(p.Share) / float64(p.Share+others) / speed
}

// sharesOf is the sum of the shares of seats. Each seat must be a part of its machine.
func sharesOf(seats []state.Seat) (sum int64) {
	for n := range seats {
		sum += seats[n].Portion.Share
	}
	return sum
}

// unitsOf is the number of processors in a portion, or of accelerators if the job requests them; 0 for a whole machine.
func unitsOf(p *state.Portion, asks *plan.Requirements) int {
	switch {
	case p == nil:
		return 0
	case asks.Accelerator != "":
		return len(p.Devices)
	}
	return p.CPUs
}

// inTime reports whether the rest of j is expected to meet its deadline on that many units of a machine of o.
func (dc *Decider) inTime(j *state.Job, o *market.Offer, variant string, units int) bool {
	g := dc.Progress(j, dc.speedOf(j, o, variant, units))
	slack, timed := g.Slack(false)
	return !timed || slack >= g.Margin
}

// speedOf is the speed of j on that many processors or accelerators of a machine of o; 0 units are all of them.
func (dc *Decider) speedOf(j *state.Job, o *market.Offer, variant string, units int) float64 {
	return j.Terms().Need.SpeedOn(o, variant, units)
}

// SpeedWith is the speed of j with that portion of a machine of o; nil is the whole machine. It is 0 for an offer that
// states none if neither a variant nor more resources change it.
func (dc *Decider) SpeedWith(j *state.Job, o *market.Offer, variant string, p *state.Portion) float64 {
	if need := &j.Terms().Need; need.Parallel <= 0 && variant == "" {
		return o.Speed
	}
	return dc.speedOf(j, o, variant, unitsOf(p, j.Terms().Need.RequirementsOf(variant)))
}

// mostNeighbours bounds the waiting jobs that are checked for whether they could share a machine with another.
const mostNeighbours = 32

// crowded reports whether another of the most urgent waiting jobs could share a machine with j: it is of the same user,
// or of a team that shares machines, and requests a part of a machine.
func (dc *Decider) crowded(j *state.Job) bool {
	list, _ := dc.urgent(mostNeighbours + 1)
	for _, other := range list {
		if other != j && dc.neighbours(j, other) {
			return true
		}
	}
	return false
}

// neighbours reports whether two jobs could share a machine, as far as their owners and requests say.
func (dc *Decider) neighbours(j, other *state.Job) bool {
	t := other.Terms()
	if other.Tenant() != j.Tenant() || t.Most() > 1 || t.Need.CPUs == 0 && t.Need.Memory == 0 && t.Need.GPUs() == 0 {
		return false
	}
	if other.User() == j.User() {
		return true
	}
	team := j.Terms().Owner.Team
	return team != "" && team == t.Owner.Team && dc.sharesMachines(team)
}
