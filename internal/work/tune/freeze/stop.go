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
	unsure   = 3 * starts
)

// pays reports whether continuing is worth its cost. Without a value of a point it always is.
func (d *Searcher) pays(h *tune.History, room float64) bool {
	if h.PointValue <= 0 {
		return true
	}
	beat, top := math.Min(d.now, d.quarter), 0.0
	for _, t := range d.model.trials {
		if h.Free(t) || h.Runs[t].Worker != tune.None {
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
	// Cost units per unit of the metric.
	point := h.PointValue / math.Max(d.scale.value(d.quarter)-d.scale.value(d.best), 1e-12)
	if point*rate*kept > 1 || len(h.Reports) < unsure {
		d.paid = h.Spent
	}
	return h.Spent <= d.paid*(1+patience)
}
