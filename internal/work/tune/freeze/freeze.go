// Package freeze is scrimp's default searcher. A model of all learning curves (their level, drop and bend by the
// parameters) says what each trial will come to; each decision goes to the trial from which the model expects the
// most improvement per unit of cost. It can leave any trial at any epoch, and come back to it.
package freeze

import (
	"math"
	"slices"

	"scrimp/internal/work/tune"
)

// Searcher is the default one.
type Searcher struct {
	f       *features
	costs   *costs
	model   *model
	th      theta
	power   float64
	shape   shape
	first   []tune.Trial // the design that it begins with
	scale   scale
	seen    int // reports that the model knows
	fitted  int // reports at the newest fit
	until   []int
	planned map[int]float64 // the cost that was expected of each trial that runs
}

// New makes the default searcher.
func New(s *tune.Search) tune.Searcher {
	f := newFeatures(s)
	th, _ := prior(len(s.Space.Params))
	d := &Searcher{f: f, costs: newCosts(f), th: th, shape: newShape(s.Epochs, 0.5), power: 0.5, planned: map[int]float64{}}
	d.first = design(s, f)
	for e := 1.0; ; e *= 1.6 {
		if t := int(e + 0.5); t < s.Epochs {
			if len(d.until) == 0 || d.until[len(d.until)-1] < t {
				d.until = append(d.until, t)
			}
			continue
		}
		d.until = append(d.until, s.Epochs)
		break
	}
	return d
}

// starts is how many trials the design has.
const starts = 8

// design is the user's own values first, where a trial has them, and then the trials that differ most from those before.
func design(s *tune.Search, f *features) (list []tune.Trial) {
	order := tune.Shuffled(len(s.Trials), s.Seed)
	for t, values := range s.Trials {
		if len(s.Space.Default) > 0 && slices.Equal(values, s.Space.Default) {
			list = append(list, t)
			break
		}
	}
	if len(list) == 0 {
		list = append(list, order[0])
	}
	for len(list) < min(starts, len(order)) {
		best, far := tune.None, -1.0
		for _, t := range order[:min(len(order), 4*starts)] {
			near := math.Inf(1)
			for _, o := range list {
				r2 := 0.0
				for d := range f.equal {
					r2 += f.apart(t, o, d)
				}
				near = math.Min(near, r2)
			}
			if near > far {
				best, far = t, near
			}
		}
		if best == tune.None || far <= 0 {
			break
		}
		list = append(list, best)
	}
	return list
}

// Next is the trial with the largest gain per cost.
func (d *Searcher) Next(h *tune.History, _ int) tune.Choice {
	d.costs.update(h)
	room := d.room(h)
	for _, t := range d.first {
		if h.Fresh(t) && d.next(h, t) <= room {
			return d.train(h, t)
		}
	}
	d.learn(h)
	best, top := tune.None, 0.0
	for t := range h.Runs {
		if !h.Free(t) || d.next(h, t) > room {
			continue
		}
		if g := d.rate(h, t, room); best == tune.None || g > top {
			best, top = t, g
		}
	}
	if best == tune.None {
		return tune.Wait
	}
	return d.train(h, best)
}

func (d *Searcher) train(h *tune.History, t tune.Trial) tune.Choice {
	d.planned[t] = d.next(h, t)
	return tune.Train(t)
}

// room is what is left of the budget when the epochs in flight have cost what was expected of them.
func (d *Searcher) room(h *tune.History) float64 {
	left := h.Budget
	for _, r := range h.Reports {
		left -= r.Cost
	}
	for t := range h.Runs {
		if h.Runs[t].Worker != tune.None {
			left -= d.planned[t]
		}
	}
	return left
}

// next is what the next epoch of a trial may cost: more than expected where the trial is not known.
func (d *Searcher) next(h *tune.History, t tune.Trial) float64 {
	c := d.costs.epoch[t]
	if n := h.Epoch(t); n > 0 {
		return math.Max(c, h.Runs[t].Costs[n-1]) + h.Switch
	}
	return 1.2*c + h.Switch
}

// rate is the expected improvement per cost of training on, to the epoch where it is largest.
func (d *Searcher) rate(h *tune.History, t tune.Trial, room float64) float64 {
	p, from, best := &d.model.post[t], h.Epoch(t), 0.0
	moved := h.Switch
	for _, e := range d.until {
		if e <= from {
			continue
		}
		cost := d.costs.epoch[t]*float64(e-from) + moved
		if cost > room && e > from+1 {
			break
		}
		m, v := p.at(&d.shape[e])
		if g := improvement(m, math.Sqrt(v+d.model.sigma2)) / cost; g > best {
			best = g
		}
	}
	return best
}

// improvement is the mean of how far a Gaussian lies below 0.
func improvement(mean, sd float64) float64 {
	if sd <= 0 {
		return math.Max(0, -mean)
	}
	u := -mean / sd
	if u < -38 {
		return 0
	}
	return -mean*0.5*math.Erfc(-u/math.Sqrt2) + sd*math.Exp(-u*u/2)/math.Sqrt(2*math.Pi)
}
