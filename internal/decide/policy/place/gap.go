package place

import (
	"math"
	"slices"
)

// renting is the remaining cost on on-demand in a region, where some hours are still owed before it does work.
func (p *Foresight) renting(v View, g gap, region int, owed, work, slack float64) float64 {
	t, m := p.tab, &p.tab.m
	still, some := math.Inf(1), false
	for z, s := range v.Seen {
		if s == Up && (v.Held != Spot || z != v.Zone) {
			some = true
			still = min(still, t.staying(z, region, v.Past[z].age(), work, slack-owed))
		}
	}
	if !some {
		g.home = region
		still = g.cost(func(l *layer) [][ages][]float64 { return l.dem }, work, slack-owed)
	}
	return float64(m.demand[region]*owed) + still
}

// cheapestIn is the zone of a region with the cheapest on-demand, the first of equals.
func (p *Foresight) cheapestIn(region int) int {
	best := -1
	for z, k := range p.now.regions {
		if k == region && (best < 0 || p.Job.Zones[z].OnDemand < p.Job.Zones[best].OnDemand) {
			best = z
		}
	}
	return best
}

// gap is the state of a job while nothing is up.
type gap struct {
	t    *table
	home int       // region
	b    int       // bucket of the time since which nothing has been up
	f    float64   // fraction of the way to the next bucket
	now  []float64 // hazard of return, by zone
}

// gap finds the current hazard of return, and the bucket of nothing up with the same hazard.
func (p *Foresight) gap(v View, home int) gap {
	t, m := p.tab, &p.tab.m
	g := gap{t: t, home: home, b: ages - 1, now: make([]float64, len(m.price))}
	if home < 0 {
		g.home = slices.Index(m.demand, slices.Min(m.demand))
	}
	sum, total := 0.0, 0.0
	for z := range g.now {
		if r := &v.Past[z]; !r.Up {
			a := r.idle()
			g.now[z] = m.back[z].in(0) * returnShape.cumulative(a, a+m.tick) / m.tick
			sum += g.now[z]
		}
		total += t.share[z] * t.all
	}
	n := len(m.price)
	for k := range ages - 1 {
		hi, lo := total*returnMix(k, n), total*returnMix(k+1, n)
		if sum >= hi {
			g.b, g.f = k, 0
			break
		}
		if sum > lo {
			g.b, g.f = k, (hi-sum)/(hi-lo)
			break
		}
	}
	return g
}

// cost is the remaining cost there, from the rows that of selects.
func (g *gap) cost(of func(*layer) [][ages][]float64, work, slack float64) float64 {
	lo := g.t.pick(work, slack, func(l *layer) []float64 { return of(l)[g.home][g.b] })
	if g.f == 0 {
		return lo
	}
	hi := g.t.pick(work, slack, func(l *layer) []float64 { return of(l)[g.home][g.b+1] })
	return float64((1-g.f)*lo) + float64(g.f*hi)
}

// waiting is the remaining cost of waiting for one tick: zones that are up stay up or not, and zones that are down
// come back or not.
func (p *Foresight) waiting(v View, g gap, home int, work, slack float64) float64 {
	t, m := p.tab, &p.tab.m
	s := slack - m.tick
	if s < 0 {
		return m.forced(g.home, work)
	}
	rest, sum := 1.0, 0.0
	stay := g.cost(func(l *layer) [][ages][]float64 { return l.none }, work, s)
	for z, seen := range v.Seen {
		if seen == Up {
			stay = min(stay, t.take(z, home, v.Past[z].age(), work, s))
		}
	}
	for z := range g.now {
		r := g.now[z] * m.tick
		if r == 0 {
			continue
		}
		rest -= r
		sum += r * min(t.take(z, home, 0, work, s), stay)
	}
	return sum + float64(rest*stay)
}
