package tune

import "math"

// A Run is what is known about a trial.
type Run struct {
	Values []float64 // by epoch
	Costs  []float64 // by epoch, without switch costs
	Best   float64   // the smallest value; +Inf before the first
	Failed bool      // a value was not finite: the trial is not trained again
	Worker int       // that trains it, or None
}

// A History is the course of a search. Only its methods change it.
type History struct {
	*Search
	Runs      []Run
	Order     []Trial // the trials in the order of their first start
	Reports   []Report
	Spent     float64 // including running epochs
	Cost      float64 // of all reports
	Incumbent float64 // the smallest value so far; +Inf before the first
	Last      []Trial // the trial that each worker trained last
	Closed    bool    // no new trial may start
	// Price returns by which factor the next epoch of a trial costs more than its epochs so far, because prices differ;
	// nil: none does.
	Price func(t Trial) float64
}

// AtPrice returns what an epoch of a trial costs now that has cost an amount so far.
func (h *History) AtPrice(t Trial, cost float64) float64 {
	if h.Price == nil {
		return cost
	}
	return cost * h.Price(t)
}

// NewHistory returns the history of a search before its first run.
func NewHistory(s *Search) *History {
	h := &History{Search: s, Runs: make([]Run, len(s.Trials)), Incumbent: math.Inf(1)}
	for i := range h.Runs {
		h.Runs[i] = Run{Best: math.Inf(1), Worker: None}
	}
	return h
}

// Start records that a worker trains the next epoch of a trial, and reports whether that costs a switch.
func (h *History) Start(t Trial, worker int) (moved bool) {
	for len(h.Last) <= worker {
		h.Last = append(h.Last, None)
	}
	r := &h.Runs[t]
	if r.Worker = worker; len(r.Values) == 0 {
		h.Order = append(h.Order, t)
	}
	moved = h.Last[worker] != t
	h.Last[worker] = t
	return moved
}

// Add records a report. It ignores a report that is not of the trial's next epoch, such as a repeated one.
func (h *History) Add(r Report) bool {
	if r.Trial < 0 || r.Trial >= len(h.Runs) {
		return false
	}
	run := &h.Runs[r.Trial]
	if r.Epoch != len(run.Values)+1 || r.Epoch > h.Epochs || run.Failed {
		return false
	}
	cost := r.Cost
	if r.Moved {
		cost = math.Max(0, cost-h.Switch)
	}
	run.Values, run.Costs, run.Worker = append(run.Values, r.Value), append(run.Costs, cost), None
	if Finite(r.Value) {
		run.Best = math.Min(run.Best, r.Value)
		h.Incumbent = math.Min(h.Incumbent, r.Value)
	} else {
		run.Failed = true
	}
	h.Spent = math.Max(h.Spent, r.Spent)
	h.Cost += r.Cost
	h.Reports = append(h.Reports, r)
	return true
}

// Free reports whether a trial may train another epoch now.
func (h *History) Free(t Trial) bool {
	r := &h.Runs[t]
	return r.Worker == None && !r.Failed && len(r.Values) < h.Epochs && (!h.Closed || len(r.Values) > 0)
}

// Fresh reports whether a trial has not started.
func (h *History) Fresh(t Trial) bool {
	r := &h.Runs[t]
	return len(r.Values) == 0 && r.Worker == None && !r.Failed && !h.Closed
}

// Epoch returns the completed epochs of a trial.
func (h *History) Epoch(t Trial) int { return len(h.Runs[t].Values) }

// Lose records that an epoch was interrupted: the trial has not failed and may train the epoch again.
func (h *History) Lose(t Trial) { h.Runs[t].Worker = None }

// Retire records that a trial is not trained any more, although it has not failed.
func (h *History) Retire(t Trial) { h.Runs[t].Worker, h.Runs[t].Failed = None, true }
