package propose

import (
	"math"

	"scrimp/internal/work/groups"
)

// prices learns what the machines of trials cost per hour. The costs of a trial's units were paid at the prices of its
// machines then. It goes on at the live price of its machine, or without one at the mean price of the search.
type prices struct {
	of  map[int]*paid // by configuration
	all paid
}

// paid is the sum of the prices at n reports, and the newest.
type paid struct {
	sum, n, newest float64
	holds          bool // it has a machine
}

func (p *paid) mean() float64 { return p.sum / p.n }

func (p *paid) add(rate float64) { p.sum, p.n, p.newest = p.sum+rate, p.n+1, rate }

// learn processes a report of a configuration's trial.
func (p *prices) learn(c int, r groups.Report) {
	o := p.of[c]
	if o == nil {
		o = &paid{}
		p.of[c] = o
	}
	if o.holds = r.Phase == ""; o.holds && r.Rate > 0 {
		o.add(r.Rate)
		p.all.add(r.Rate)
	}
}

// factor returns by how much the next unit of a configuration costs more than its units so far; 1 if unknown.
func (p *prices) factor(c int) float64 {
	o := p.of[c]
	if o == nil || o.n == 0 {
		return 1
	}
	now := p.all.mean()
	if o.holds {
		now = o.newest
	}
	f := now / o.mean()
	if math.Abs(f-1) < 1e-9 { // the sums are rounded
		return 1
	}
	return f
}
