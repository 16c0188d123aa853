package freeze

import (
	"math"

	"scrimp/internal/work/tune"
)

// A promise is the model's expected gain of the spend since the last decision, and the actual gain.
type promise struct {
	spent     float64 // by the search at that time
	rate      float64 // expected gain per cost
	gain, got float64
}

// The model is too optimistic about the trial from which it expects most. So its promise counts by the share of recent
// promises that came true, with a prior as if earlier ones had come true.
const (
	recent = 0.5
	prior  = 30
)

// patience is the share of the spend during which continuing must not have paid before the search stops. After only a
// few reports the model is too uncertain to stop.
const (
	patience = 0.15
	unsure   = 2 * starts
)

// A model of the curves so far does not expect a trial that beats them all by much, and yet such trials come: the
// longer the search, the rarer, as records in a series do. While the spend doubles, the search counts on about chance
// of what is still to gain, and that on least of the way from the trial at the best quarter to the best one.
const (
	chance    = 0.5
	leastLeft = 0.1
)

// On average over recorded searches, a gain of a point has cost at least the price of pays full trainings: before, a
// search mostly finds nothing. Where a point is worth less, the search is not expected to pay.
const pays = 5

// dear reports whether the user values a point so little that no search pays. The first reports tell the cost of a full
// training.
func dear(h *tune.History) bool {
	if h.PointValue <= 0 || len(h.Reports) == 0 {
		return false
	}
	first := h.Reports[:min(len(h.Reports), unsure)]
	epoch := 0.0
	for _, r := range first {
		cost := r.Cost
		if r.Moved {
			cost -= h.Switch
		}
		epoch += math.Max(0, cost) / float64(len(first))
	}
	return h.PointValue < pays*epoch*float64(h.Epochs)
}

// judge says in a choice whether the search should end, because continuing is not worth its cost.
func (d *Searcher) judge(h *tune.History, room float64, c *tune.Choice) {
	if !h.Stops() {
		return
	}
	c.Gain, c.Least = math.Max(d.gain(h, room), d.surprise(h)), h.Plateau.MinGain
	if h.PointValue > 0 {
		c.Least = math.Max(d.scale.value(d.quarter)-d.scale.value(d.best), 1e-12) / h.PointValue
	}
	if !(c.Gain <= c.Least) || len(h.Reports) < unsure {
		d.paid, d.paidAt = h.Spent, len(h.Reports)
	}
	if n := h.Plateau.Patience; n > 0 {
		c.Stop = len(h.Reports)-d.paidAt >= n
	} else {
		c.Stop = h.Spent > d.paid*(1+patience)
	}
	c.Stop = c.Stop || dear(h)
}

// surprise returns the expected improvement of the metric per unit of cost by a trial that the model does not expect.
func (d *Searcher) surprise(h *tune.History) float64 {
	best := d.scale.value(d.best)
	way := d.scale.value(d.quarter) - best
	if !(way > 0 && h.Spent > 0) {
		return 0
	}
	return chance * math.Min(way, math.Max(h.Incumbent-best, leastLeft*way)) / h.Spent
}

// gain returns the expected improvement of the metric per unit of cost, by the most promising trial, times the share
// of such expectations that came true.
func (d *Searcher) gain(h *tune.History, room float64) float64 {
	beat, top := math.Min(d.now, d.quarter), 0.0
	for _, t := range d.model.trials {
		if t < len(h.Runs) && (h.Free(t) || h.Runs[t].Worker != tune.None) {
			top = math.Max(top, d.rate(h, t, beat, beat-d.best, 0, room))
		}
	}
	rate := top * d.scale.unit
	if n := len(d.promises); n > 0 {
		p := &d.promises[n-1]
		p.gain, p.got = p.rate*(h.Spent-p.spent), math.Max(0, d.beaten-h.Incumbent)
	}
	d.beaten = d.scale.value(beat)
	gain, got, n := 0.0, 0.0, 0.0
	for i := len(d.promises) - 1; i >= 0 && d.promises[i].spent >= (1-recent)*h.Spent; i-- {
		gain, got, n = gain+d.promises[i].gain, got+d.promises[i].got, n+1
	}
	d.promises = append(d.promises, promise{spent: h.Spent, rate: rate})
	kept := 1.0
	if before := prior * gain / math.Max(n, 1); gain > 0 {
		kept = math.Min(1, (got+before)/(gain+before))
	}
	return rate * kept
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
		d.judge(h, d.room(h), &w.last)
	}
	c.Stop, c.Gain, c.Least = w.last.Stop || dear(h), w.last.Gain, w.last.Least
	return c
}
