package costtogo

import (
	"math"
	"slices"

	"scrimp/internal/decide/policy/zonechoice/hazard"
)

// spotAt is the remaining cost on a machine of zone z at some age.
func (t *Table) spotAt(z int, age, work, slack float64) float64 {
	b, f := hazard.Between(age)
	lo := t.pick(work, slack, func(l *layer) []float64 { return l.spot[z][b] })
	if f == 0 {
		return lo
	}
	hi := t.pick(work, slack, func(l *layer) []float64 { return l.spot[z][b+1] })
	return float64((1-f)*lo) + float64(f*hi)
}

// Staying is the remaining cost on on-demand in a region while zone z is up at some age and is not taken in this
// tick.
func (t *Table) Staying(z, on int, age, work, slack float64) float64 {
	m := &t.Model
	if slack < -1e-9 || work < m.Tick {
		return m.Demand[on] * work
	}
	k := t.ways.of[m.Regions[z]][on]
	h := 1 - math.Exp(-float64(t.scale[z]*hazard.Loss.Cumulative(age, age+m.Tick)))
	b, f := hazard.Between(age + m.Tick)
	w := work - m.Tick
	lo := t.pick(w, slack, func(l *layer) []float64 { return l.cand[z][k][b] })
	if f > 0 {
		lo = float64((1-f)*lo) + float64(f*t.pick(w, slack, func(l *layer) []float64 { return l.cand[z][k][b+1] }))
	}
	gone := t.pick(w, slack, func(l *layer) []float64 { return l.dem[on][0] })
	return float64(m.Demand[on]*m.Tick) + float64((1-h)*lo) + float64(h*gone)
}

// Owes is the remaining cost on a machine of zone z at some age that still owes that many hours of overhead,
// without the cost of a move.
func (t *Table) Owes(z int, age, owed, work, slack float64) float64 {
	m := &t.Model
	if slack < (math.Ceil(owed/m.Tick-1e-9)-1)*m.Tick-1e-9 {
		return far
	}
	v := float64(m.Price[z]*owed) + t.spotAt(z, age+owed, work, slack-owed)
	if owed == 0 {
		return v
	}
	p := math.Exp(-float64(t.scale[z] * hazard.Loss.Cumulative(age, age+owed)))
	lost := float64(m.Price[z]*owed/2) + t.pick(work, slack-owed/2, func(l *layer) []float64 { return l.lost[z] })
	return float64(p*v) + float64((1-p)*lost)
}

// Take is the remaining cost of taking a machine of zone z at some age, with the checkpoint in a region or, below 0,
// without one.
func (t *Table) Take(z, home int, age, work, slack float64) float64 {
	m := &t.Model
	owed, c := m.Restart, 0.0
	if home >= 0 && m.Regions[z] != home {
		owed, c = owed+m.Further, m.Fare(home, m.Regions[z])
	}
	return c + t.Owes(z, age, owed, work, slack)
}

// Gap is the state of a job while nothing is up.
type Gap struct {
	t    *Table
	Home int       // region
	b    int       // bucket of the time since which nothing has been up
	f    float64   // fraction of the way to the next bucket
	Now  []float64 // hazard of return, by zone
}

// Gap finds the current hazard of return, and the bucket of nothing up with the same hazard.
func (t *Table) Gap(past []hazard.Record, home int) Gap {
	m := &t.Model
	g := Gap{t: t, Home: home, b: hazard.Ages - 1, Now: make([]float64, len(m.Price))}
	if home < 0 {
		g.Home = slices.Index(m.Demand, slices.Min(m.Demand))
	}
	sum, total := 0.0, 0.0
	for z := range g.Now {
		if r := &past[z]; !r.Up {
			a := r.Idle()
			g.Now[z] = m.Back[z].In(0) * hazard.Return.Cumulative(a, a+m.Tick) / m.Tick
			sum += g.Now[z]
		}
		total += t.share[z] * t.all
	}
	n := len(m.Price)
	for k := range hazard.Ages - 1 {
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

// Idle is the remaining cost of a job that holds nothing.
func (g Gap) Idle(work, slack float64) float64 {
	return g.cost(func(l *layer) [][hazard.Ages][]float64 { return l.none }, work, slack)
}

// Renting is the remaining cost of a job on on-demand in a region.
func (g Gap) Renting(region int, work, slack float64) float64 {
	g.Home = region
	return g.cost(func(l *layer) [][hazard.Ages][]float64 { return l.dem }, work, slack)
}

// cost is the remaining cost there, from the rows that of selects.
func (g Gap) cost(of func(*layer) [][hazard.Ages][]float64, work, slack float64) float64 {
	lo := g.t.pick(work, slack, func(l *layer) []float64 { return of(l)[g.Home][g.b] })
	if g.f == 0 {
		return lo
	}
	hi := g.t.pick(work, slack, func(l *layer) []float64 { return of(l)[g.Home][g.b+1] })
	return float64((1-g.f)*lo) + float64(g.f*hi)
}
