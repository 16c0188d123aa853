package propose

import (
	"math"

	"scrimp/internal/work/groups"
	"scrimp/internal/work/tune"
)

// The resources that a search has limits on. Trials that train at once add up their dollars and GPU-hours; they share
// the hours of the clock.
const (
	dollars = iota
	gpuHours
	clock
	resources
)

// amounts holds an amount of each resource: dollars and hours. A limit of +Inf is none.
type amounts [resources]float64

// limitsOf returns the limits of a study.
func limitsOf(s groups.Snapshot) amounts {
	limits := amounts{s.Budget, math.Inf(1), math.Inf(1)}
	if s.Study.GPUHours > 0 {
		limits[gpuHours] = s.Study.GPUHours
	}
	if s.Study.Wall > 0 {
		limits[clock] = s.Study.Wall.Hours()
	}
	return limits
}

// flattens ends the search: no worker trains further, except the best trial at the end.
func (d *driver) flattens(c tune.Choice) {
	d.flat = &c
	for w := range d.workers {
		if k := &d.workers[w]; k.config != tune.None {
			d.h.Lose(k.config)
			k.config, k.waits = tune.None, false
		}
	}
}

// pays reports whether the rest of each limit suffices for the next unit of a configuration.
func (d *driver) pays(w, c int) bool {
	for r := range d.cost {
		left, next := d.left(r), d.cost[r].next(d.known[c], r)
		for o := range d.workers {
			if k := d.workers[o]; o != w && k.config != tune.None && !k.waits && r != clock {
				left -= d.cost[r].next(d.known[k.config], r)
			}
		}
		if left <= 0 || next > left {
			d.short = shortage{why: shortOf(r), of: r, needs: next}
			return false
		}
	}
	return true
}

// shortage is why the rest of a limit did not suffice; the zero value: every limit always did.
type shortage struct {
	why   string
	of    int     // the resource
	needs float64 // of it; 0 if unknown
	full  bool    // by a full training of a promoted configuration
}

// figures returns what a search that ends lacks; nil if nothing or unknown.
func (d *driver) figures() *groups.Shortage {
	s := d.short
	if s.why == "" {
		return nil
	}
	short := &groups.Shortage{Needs: s.needs, Full: s.full}
	if short.Left = d.limits[s.of] - d.spent[s.of]; !s.full {
		short.Kept = d.reserved(s.of)
		short.Left -= short.Kept
	}
	if s.needs > 0 && s.needs <= short.Left { // the searcher has no further trials of it
		return nil
	}
	return short
}

// shortOf returns the reason for which a search ends that has too little of a resource.
func shortOf(r int) string { return [...]string{BudgetSpent, HoursSpent, TimeSpent}[r] }

// left returns what the search may still use of a resource.
func (d *driver) left(r int) float64 { return d.limits[r] - d.reserved(r) - d.spent[r] }

// reserved returns what is reserved for a full training, whichever trial becomes the best, and for two units per
// worker: a trial continues training until its pause takes effect. With a proxy it is the part for promoted trials.
func (d *driver) reserved(r int) float64 {
	if share := d.spec.Share(); share > 0 && !math.IsInf(d.limits[r], 0) {
		return share * d.limits[r]
	}
	if !d.spec.Final || d.final {
		return 0
	}
	units := d.h.Epochs + 2*len(d.workers)
	if r == clock { // the workers leave at the same time
		units = d.h.Epochs + 2
	}
	return careful*float64(units)*d.cost[r].mean() + d.cost[r].move()
}

// holdBack sets the searcher's budget in dollars. If another limit is likely to end the search first, it is what the
// search will have spent by then.
func (d *driver) holdBack() {
	d.h.Budget = d.limits[dollars] - d.reserved(dollars)
	for r := gpuHours; r < resources; r++ {
		if d.spent[r] > 0 && d.spent[dollars] > 0 {
			left := math.Max(0, d.left(r)) / d.spent[r] * d.spent[dollars]
			d.h.Budget = math.Min(d.h.Budget, d.spent[dollars]+left)
		}
	}
}

// exhausted reports whether a limit is reached.
func (d *driver) exhausted() bool {
	for r := range d.limits {
		if d.limits[r] <= d.spent[r] {
			return true
		}
	}
	return false
}
