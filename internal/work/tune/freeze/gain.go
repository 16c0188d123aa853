package freeze

import (
	"math"
	"slices"

	"scrimp/internal/work/tune"
)

// Shares of all trials, best first, that define a search's aims.
const (
	goodShare = 0.1  // a trial must beat the final value of this share of the trials
	quarter   = 0.25 // from here on to the best trial is a point
	bestShare = 0.01 // the best trial
)

// soon is how many epochs ahead a running trial counts as trained.
const soon = 5

// wide is the position of the two outer of three points that approximate a Gaussian, in standard deviations.
const wide = 1.2

// aims holds values on the model's scale.
type aims struct {
	now     float64 // the best value so far
	target  float64 // the value that a trial must beat to be worth an epoch
	quarter float64
	best    float64
}

// aim computes the aims. Beating the best value so far is not enough: while that is poor, the quickest way to beat it
// is a cheap and poor trial. A trial must beat what a tenth of all trials will reach, and what the running trials will
// reach soon.
func (d *Searcher) aim(h *tune.History) {
	d.aims = aims{now: d.scale.of(h.Incumbent)}
	list := make([]float64, 0, 3*len(d.model.trials))
	for i, t := range d.model.trials {
		if t >= len(h.Runs) || h.Runs[t].Failed {
			continue
		}
		m, v := d.model.post[i].at(&d.shape[h.Epochs])
		sd := wide * math.Sqrt(v)
		list = append(list, m, m-sd, m+sd)
	}
	if slices.Sort(list); len(list) == 0 {
		list = append(list, d.now)
	}
	share := func(s float64) float64 { return list[int(s*float64(len(list)-1))] }
	d.quarter, d.best = math.Min(share(quarter), noScale), math.Min(d.now, share(bestShare))
	d.target = math.Min(d.now, share(goodShare))
	for i, t := range d.model.trials {
		if t >= len(h.Runs) {
			continue
		}
		if e := h.Epoch(t); e > 0 && h.Runs[t].Worker != tune.None {
			m, _ := d.model.post[i].at(&d.shape[min(h.Epochs, e+soon)])
			d.target = math.Min(d.target, m)
		}
	}
}

// rate returns the expected improvement on the target per cost of continuing a trial, to the epoch where it is largest.
func (d *Searcher) rate(h *tune.History, t tune.Trial, room float64) float64 {
	p, from, best, epoch := d.model.of(t), h.Epoch(t), 0.0, h.AtPrice(t, d.costs.of(t))
	for _, e := range d.until {
		if e <= from {
			continue
		}
		cost := epoch*float64(e-from) + h.Switch
		if cost > room && e > from+1 {
			break
		}
		m, v := p.at(&d.shape[e])
		best = math.Max(best, improvement(m-d.target, math.Sqrt(v+d.model.sigma2))/math.Max(cost, 1e-12))
	}
	return best
}

// improvement returns the mean of how far a Gaussian is below 0: for mean 0 and standard deviation 1 it is 0.399.
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
