package queue

import (
	"math"
	"slices"
	"time"

	"scrimp/internal/lib/money"
)

// Result holds a policy's cost and the durations of the jobs.
type Result struct {
	Policy string
	Cost   money.Amount
	// Mean and P99 are seconds from arrival to end.
	Mean, P99 float64
	Misses    []float64 // share of the jobs that miss each deadline of Factors
	Moves     float64   // per job
	Machines  int
	Rounds    []time.Duration // sorted
}

func (w *world) result() Result {
	r := Result{Policy: w.Policy, Cost: w.cost(), Misses: make([]float64, len(Factors)), Machines: len(w.machines)}
	n := float64(len(w.tasks))
	var took []int64
	var total int64
	moves := 0
	for i := range w.tasks {
		t := &w.tasks[i]
		took = append(took, t.end-t.Arrival)
		total += t.end - t.Arrival
		moves += t.moves
		for k, f := range Factors {
			if t.end > t.due(f) {
				r.Misses[k]++
			}
		}
	}
	slices.Sort(took)
	for k := range r.Misses {
		r.Misses[k] /= n
	}
	r.Mean, r.Moves = float64(total)/n, float64(moves)/n
	r.P99 = float64(took[rank(len(took), 0.99)])
	slices.Sort(w.spent)
	r.Rounds = w.spent
	return r
}

// rank returns the index of a quantile in a sorted list of n: the smallest value that at least a share q does not
// exceed.
func rank(n int, q float64) int { return max(0, int(math.Ceil(q*float64(n)))-1) }

// Round returns the q-quantile of the rounds' durations, or false if none was measured.
func (r Result) Round(q float64) (time.Duration, bool) {
	if len(r.Rounds) == 0 {
		return 0, false
	}
	return r.Rounds[rank(len(r.Rounds), q)], true
}

// Kinds of list entries.
const (
	Arrived  = "arrived"
	Launched = "launched"
	Started  = "started"
	Moved    = "moved"
	Left     = "left"
	Done     = "done"
	Released = "released"
	Ended    = "ended"
)

// Entry is one event. Task and Machine are -1 if it has none; Type is set for a launch.
type Entry struct {
	At      int64
	Kind    string
	Task    int
	Machine int
	Type    int
}
