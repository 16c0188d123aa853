// Package freeze is scrimp's default searcher. A model of all learning curves predicts the final value of each trial:
// its level, drop and bend depend on the parameters. Each decision goes to the trial with the largest expected
// improvement per cost. The searcher can leave any trial at any epoch, and return to it.
package freeze

import (
	"math"
	"slices"

	"scrimp/internal/work/tune"
)

// Searcher is the default searcher.
type Searcher struct {
	aims
	f        *features
	costs    *costs
	model    *model
	th       theta
	shape    shape
	scale    scale
	first    []tune.Trial // the initial design
	order    []tune.Trial // in which untrained trials enter the model
	seen     int          // reports in the model
	fitted   int          // reports at the newest fit
	until    []int        // epochs to which a trial may be trained
	planned  []float64    // expected cost of each trial's newest epoch
	progress progress
}

// power is the exponent of falling curves, and ahead the ratio between successive epochs to which a trial may be
// trained.
const (
	power = 0.5
	ahead = 1.6
)

// New returns the default searcher.
func New(s *tune.Search) tune.Searcher {
	all := *s
	for _, p := range s.Past {
		all.Trials = append(all.Trials[:len(all.Trials):len(all.Trials)], p.Values)
	}
	f := newFeatures(&all)
	th, _ := priorOf(len(s.Space.Params))
	d := &Searcher{f: f, costs: newCosts(f), th: th, shape: newShape(s.Epochs, power), first: design(s, f),
		order: tune.Shuffled(len(s.Trials), s.Seed), planned: make([]float64, len(s.Trials))}
	if points(s) >= minRows && len(d.first) > 1 {
		d.first = d.first[:1] // the model knows enough to choose the others
	}
	for e := 1.0; int(e+0.5) < s.Epochs; e *= ahead {
		if t := int(e + 0.5); len(d.until) == 0 || d.until[len(d.until)-1] < t {
			d.until = append(d.until, t)
		}
	}
	d.until = append(d.until, s.Epochs)
	return d
}

// starts is the number of trials in the design, and crowd the number that it is chosen from.
const (
	starts = 8
	crowd  = 32
)

// design returns the user's default values first, if a trial has them, followed by the trials that differ most from the
// earlier ones.
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
			break // the others are equal
		}
		list = append(list, best)
	}
	return list
}

// Next returns the trial with the largest gain per cost.
func (d *Searcher) Next(h *tune.History, _ int) tune.Choice {
	d.costs.update(h)
	room := d.room(h)
	for _, t := range d.first {
		if h.Fresh(t) && d.next(h, t) <= room {
			c := d.train(h, t)
			c.Stop = dear(h)
			return c
		}
	}
	d.learn(h)
	d.aim(h)
	best, top := tune.None, 0.0
	for _, t := range d.model.trials {
		if t >= len(h.Runs) || !h.Free(t) || d.next(h, t) > room {
			continue
		}
		if g := d.rate(h, t, room); best == tune.None || g > top {
			best, top = t, g
		}
	}
	c := tune.Wait
	if best != tune.None {
		c = d.train(h, best)
	}
	d.judge(h, &c)
	return c
}

// points counts the values that earlier searches have found.
func points(s *tune.Search) (n int) {
	for _, p := range s.Past {
		n += len(p.Points)
	}
	return n
}

func (d *Searcher) train(h *tune.History, t tune.Trial) tune.Choice {
	d.planned[t] = d.next(h, t)
	return tune.Train(t)
}

// room returns the rest of the budget if the running epochs cost what is expected.
func (d *Searcher) room(h *tune.History) float64 {
	left := h.Budget - h.Cost
	for t := range h.Runs {
		if h.Runs[t].Worker != tune.None {
			left -= d.planned[t]
		}
	}
	return left
}

// careful is the factor by which an untrained trial may exceed its expected cost.
const careful = 1.2

// next returns the cost bound of a trial's next epoch. While no cost is known it is 0, and the first trials start.
func (d *Searcher) next(h *tune.History, t tune.Trial) float64 {
	if d.costs.known == 0 {
		return 0
	}
	if costs := h.Runs[t].Costs; len(costs) > 0 {
		return h.AtPrice(t, math.Max(d.costs.of(t), costs[len(costs)-1])) + h.Switch
	}
	return careful*d.costs.of(t) + h.Switch
}
