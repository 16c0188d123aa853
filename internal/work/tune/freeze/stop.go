package freeze

import (
	"math"

	"scrimp/internal/work/tune"
)

// The mean course of recorded searches, in full trainings: a search gains rate points for each until it has spent
// early of them; from then on the gain of another one falls as the spend to the power -fall. A point is the distance
// from the trial at the best quarter to the best one. A search does not know how hard its own space is before it has
// searched it, and the expectations of the model of the curves did not improve on this mean.
const (
	rate  = 0.2
	early = 3
	fall  = 2.5
)

// patience is the share of the spend during which the best value must not have improved by enough to pay before the
// search stops. The model needs some reports to tell how far the best quarter and the best trial are apart.
const (
	patience = 0.15
	unsure   = 2 * starts
)

// progress is what the stopping rule knows about the course of a search.
type progress struct {
	best float64 // the best value when an improvement last paid for the spend since the one before
	at   float64 // the spend at that time
	paid int     // reports when that was so, or another unit of cost was expected to pay
}

// full returns the mean cost of a full training, without switches; 0 if unknown. Each trial counts once: trials that
// are cheap report more often.
func full(h *tune.History) float64 {
	sum, n := 0.0, 0.0
	for _, t := range h.Order {
		own, costs := 0.0, h.Runs[t].Costs
		for _, c := range costs {
			own += c
		}
		if len(costs) > 0 {
			sum, n = sum+own/float64(len(costs)), n+1
		}
	}
	return sum / math.Max(1, n) * float64(h.Epochs)
}

// gains returns the expected gain of points per unit of cost after a spend, where a full training costs an amount.
func gains(spent, full float64) float64 {
	if full <= 0 {
		return math.Inf(1)
	}
	return rate / full * math.Pow(math.Max(1, spent/(early*full)), -fall)
}

// dear reports whether the user values a point so little that no search is expected to pay. The first report tells the
// cost of a full training.
func dear(h *tune.History) bool {
	return h.PointValue > 0 && len(h.Reports) > 0 && h.PointValue*gains(0, full(h)) < 1
}

// judge says in a choice whether the search should end, because continuing is not worth its cost.
func (d *Searcher) judge(h *tune.History, c *tune.Choice) {
	if !h.Stops() {
		return
	}
	point := math.Max(d.scale.value(d.quarter)-d.scale.value(d.best), 1e-12)
	c.Gain, c.Least = point*gains(h.Spent, full(h)), h.Plateau.MinGain
	if h.PointValue > 0 {
		c.Least = point / h.PointValue
	}
	n, p := len(h.Reports), &d.progress
	pays := !(c.Gain <= c.Least) || n < unsure
	improved := p.paid == 0 || h.Incumbent < p.best && p.best-h.Incumbent >= c.Least*(h.Spent-p.at)
	if improved {
		p.best, p.at = h.Incumbent, h.Spent
	}
	if improved || pays {
		p.paid = n
	}
	if most := h.Plateau.Patience; most > 0 {
		c.Stop = n-p.paid >= most
	} else {
		c.Stop = !pays && h.Spent >= p.at*(1+patience)
	}
	c.Stop = c.Stop || dear(h)
}

// watched is another searcher, with the stopping rule of this one.
type watched struct {
	tune.Searcher
	model *Searcher
	seen  int         // reports at the last judgement
	last  tune.Choice // that judgement
}

// Watch returns a searcher that chooses as by does, and ends the search by the rule of the default searcher.
func Watch(by tune.Searcher, s *tune.Search) tune.Searcher {
	return &watched{Searcher: by, model: New(s).(*Searcher)}
}

// Next returns the choice of the watched searcher, and whether the search should end.
func (w *watched) Next(h *tune.History, worker int) tune.Choice {
	c := w.Searcher.Next(h, worker)
	if n := len(h.Reports); n > w.seen && n >= minRows {
		d := w.model
		d.costs.update(h)
		d.learn(h)
		d.aim(h)
		w.seen, w.last = n, tune.Choice{}
		d.judge(h, &w.last)
	}
	c.Stop, c.Gain, c.Least = w.last.Stop || dear(h), w.last.Gain, w.last.Least
	return c
}
