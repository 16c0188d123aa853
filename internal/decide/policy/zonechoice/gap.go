package zonechoice

import (
	"math"

	"scrimp/internal/decide/policy/zonechoice/costtogo"
)

// renting is the remaining cost on on-demand in a region, where some hours are still owed before it does work.
func (p *Foresight) renting(v View, g costtogo.Gap, region int, owed, work, slack float64) float64 {
	t, m := p.tab, &p.tab.Model
	still, some := math.Inf(1), false
	for z, s := range v.Seen {
		if s == Up && (v.Held != Spot || z != v.Zone) {
			some = true
			still = min(still, t.Staying(z, region, v.Past[z].Age(), work, slack-owed))
		}
	}
	if !some {
		still = g.Renting(region, work, slack-owed)
	}
	return float64(m.Demand[region]*owed) + still
}

// cheapestIn is the zone of a region with the cheapest on-demand, the first of equals.
func (p *Foresight) cheapestIn(region int) int {
	best := -1
	for z, k := range p.now.Regions {
		if k == region && (best < 0 || p.Job.Zones[z].OnDemand < p.Job.Zones[best].OnDemand) {
			best = z
		}
	}
	return best
}

// waiting is the remaining cost of waiting for one tick: zones that are up stay up or not, and zones that are down
// come back or not.
func (p *Foresight) waiting(v View, g costtogo.Gap, home int, work, slack float64) float64 {
	t, m := p.tab, &p.tab.Model
	s := slack - m.Tick
	if s < 0 {
		return m.Forced(g.Home, work)
	}
	rest, sum := 1.0, 0.0
	stay := g.Idle(work, s)
	for z, seen := range v.Seen {
		if seen == Up {
			stay = min(stay, t.Take(z, home, v.Past[z].Age(), work, s))
		}
	}
	for z := range g.Now {
		r := g.Now[z] * m.Tick
		if r == 0 {
			continue
		}
		rest -= r
		sum += r * min(t.Take(z, home, 0, work, s), stay)
	}
	return sum + float64(rest*stay)
}
