// Package freeze is scrimp's default searcher. A model of all learning curves says what each trial will come to: its
// level, drop and bend go by the parameters. Each decision goes to the trial from which the model expects the most
// improvement per cost. It can leave any trial at any epoch, and come back to it.
package freeze

import (
	"math"
	"slices"

	"scrimp/internal/work/tune"
)

// Searcher is the default one.
type Searcher struct {
	aims
	f        *features
	costs    *costs
	model    *model
	th       theta
	shape    shape
	scale    scale
	first    []tune.Trial // the design that it begins with
	order    []tune.Trial // in which trials that were never trained come into the model
	seen     int          // reports that the model knows
	fitted   int          // reports at the newest fit
	until    []int        // the epochs to which a trial may be trained on
	planned  []float64    // the cost that was expected of each trial's newest epoch
	promises []promise
	beaten   float64 // what a gain had to beat at the last decision
	paid     float64 // what was spent when going on paid last
}

// power is that by which curves fall, and ahead is how much further each epoch lies to which a trial may be trained on.
const (
	power = 0.5
	ahead = 1.6
)

// New makes the default searcher.
func New(s *tune.Search) tune.Searcher {
	f := newFeatures(s)
	th, _ := priorOf(len(s.Space.Params))
	d := &Searcher{f: f, costs: newCosts(f), th: th, shape: newShape(s.Epochs, power), first: design(s, f),
		order: tune.Shuffled(len(s.Trials), s.Seed), planned: make([]float64, len(s.Trials))}
	for e := 1.0; int(e+0.5) < s.Epochs; e *= ahead {
		if t := int(e + 0.5); len(d.until) == 0 || d.until[len(d.until)-1] < t {
			d.until = append(d.until, t)
		}
	}
	d.until = append(d.until, s.Epochs)
	return d
}

// starts is how many trials the design has, and crowd how many it is chosen from.
const (
	starts = 8
	crowd  = 32
)

// design is the user's own values first, where a trial has them, and then the trials that differ most from those
// before.
func design(s *tune.Search, f *features) (list []tune.Trial) {
	order := tune.Shuffled(len(s.Trials), s.Seed)
	if own := slices.IndexFunc(s.Trials, func(v []tune.Value) bool { return slices.Equal(v, s.Space.Default) }); own >= 0 {
		list = append(list, own)
	} else if len(order) > 0 {
		list = append(list, order[0])
	}
	for len(list) < min(starts, len(order)) {
		best, far := tune.None, 0.0
		for _, t := range order[:min(len(order), crowd)] {
			near := math.Inf(1)
			for _, o := range list {
				near = math.Min(near, f.distance(t, o))
			}
			if near > far {
				best, far = t, near
			}
		}
		if best == tune.None {
			break // the rest are the same
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
	d.aim(h)
	best, top := tune.None, 0.0
	for _, t := range d.model.trials {
		if !h.Free(t) || d.next(h, t) > room {
			continue
		}
		if g := d.rate(h, t, d.target, math.Inf(1), d.model.sigma2, room); best == tune.None || g > top {
			best, top = t, g
		}
	}
	c := tune.Wait
	if best != tune.None {
		c = d.train(h, best)
	}
	c.Stop = !d.pays(h, room)
	return c
}

func (d *Searcher) train(h *tune.History, t tune.Trial) tune.Choice {
	d.planned[t] = d.next(h, t)
	return tune.Train(t)
}

// room is what is left of the budget when the epochs in flight have cost what was expected of them.
func (d *Searcher) room(h *tune.History) float64 {
	left := h.Budget - h.Cost
	for t := range h.Runs {
		if h.Runs[t].Worker != tune.None {
			left -= d.planned[t]
		}
	}
	return left
}

// careful is what a trial that was never trained may cost beyond what is expected.
const careful = 1.2

// next is what the next epoch of a trial may cost. Before any has cost something nobody knows, and the first begin.
func (d *Searcher) next(h *tune.History, t tune.Trial) float64 {
	if d.costs.known == 0 {
		return 0
	}
	if costs := h.Runs[t].Costs; len(costs) > 0 {
		return math.Max(d.costs.epoch[t], costs[len(costs)-1]) + h.Switch
	}
	return careful*d.costs.epoch[t] + h.Switch
}
