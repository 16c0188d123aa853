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
	Took      []int64   // the same of each job, sorted
	Misses    []float64 // share of the jobs that miss each deadline of Factors
	Moves     float64   // per job
	Machines  int
	Rounds    []time.Duration // sorted
}

func (w *world) result() Result {
	r := Result{Policy: w.Policy, Cost: w.cost(), Misses: make([]float64, len(Factors)), Machines: len(w.machines)}
	n := float64(len(w.tasks))
	moves := 0
	for i := range w.tasks {
		t := &w.tasks[i]
		r.Took = append(r.Took, t.end-t.Arrival)
		moves += t.moves
		for k, f := range Factors {
			if t.end > t.due(f) {
				r.Misses[k]++
			}
		}
	}
	for k := range r.Misses {
		r.Misses[k] /= n
	}
	r.Moves, r.Rounds = float64(moves)/n, w.spent
	r.summarize()
	return r
}

// summarize sorts the durations and computes their mean and quantile.
func (r *Result) summarize() {
	slices.Sort(r.Took)
	slices.Sort(r.Rounds)
	total := int64(0)
	for _, t := range r.Took {
		total += t
	}
	r.Mean = float64(total) / float64(len(r.Took))
	r.P99 = float64(r.Took[rank(len(r.Took), 0.99)])
}

// Merge returns the result of several runs of one policy, with jobs and machines of their own, as if they were one.
func Merge(runs []Result) Result {
	all := Result{Policy: runs[0].Policy, Misses: make([]float64, len(Factors))}
	for _, r := range runs {
		all.Cost, all.Machines = all.Cost.Add(r.Cost), all.Machines+r.Machines
		all.Took, all.Rounds = append(all.Took, r.Took...), append(all.Rounds, r.Rounds...)
	}
	for _, r := range runs {
		part := float64(len(r.Took)) / float64(len(all.Took))
		all.Moves += float64(part * r.Moves)
		for k := range r.Misses {
			all.Misses[k] += float64(part * r.Misses[k])
		}
	}
	all.summarize()
	return all
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
