package tune

import "math"

// A Run is what is known of a trial.
type Run struct {
	Values []float64 // by epoch
	Costs  []float64 // by epoch, without the cost to switch
	Best   float64   // the smallest value, +Inf before the first
	Failed bool      // a value was not finite: the trial is not trained again
	Worker int       // that trains it, or None
}

// A History is what has happened in a search. Only Start and Add change it.
type History struct {
	*Search
	Runs      []Run
	Order     []Trial // the trials in the order of their first start
	Reports   []Report
	Spent     float64 // epochs in flight included
	Cost      float64 // of all reports
	Incumbent float64 // the smallest value so far, +Inf before the first
	Last      []Trial // the trial that each worker trained last
	Closed    bool    // no trial may be started that was not started before
}

// NewHistory is that of a search in which nothing has run.
func NewHistory(s *Search) *History {
	h := &History{Search: s, Runs: make([]Run, len(s.Trials)), Incumbent: math.Inf(1)}
	for i := range h.Runs {
		h.Runs[i] = Run{Best: math.Inf(1), Worker: None}
	}
	return h
}

// Start notes that a worker trains the next epoch of a trial, and reports whether that costs a switch.
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

// Add notes a report. It ignores a report of an epoch that is not the trial's next one, such as one that comes twice.
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

// Fresh reports whether a trial has not been started.
func (h *History) Fresh(t Trial) bool {
	r := &h.Runs[t]
	return len(r.Values) == 0 && r.Worker == None && !r.Failed && !h.Closed
}

// Epoch is how many epochs of a trial are done.
func (h *History) Epoch(t Trial) int { return len(h.Runs[t].Values) }

// Lose notes that an epoch in training was interrupted: the trial has not failed and may train the epoch again.
func (h *History) Lose(t Trial) { h.Runs[t].Worker = None }

// Retire notes that a trial is not trained any more, although it has not failed.
func (h *History) Retire(t Trial) { h.Runs[t].Worker, h.Runs[t].Failed = None, true }
