package pack

import "math"

// Interference assumed for two kinds that were never seen together, and the uncertainty of the learner.
const (
	// assumedPair is the rate of a task beside one unknown neighbour: a loss of 5 %, the common experience with GPU
	// jobs.
	assumedPair = 0.95
	// assumedSpread is the standard deviation of the logarithm of a pair's rate before any measurement.
	assumedSpread = 0.1
	// measuredSpread is that of one measurement: rates vary by about 1 % between machines.
	measuredSpread = 0.01
)

// Rates learns how much tasks of one kind slow those of another. The rate of a task is modelled as a product over
// its neighbours, so its logarithm is a sum. Each measurement corrects the terms of that sum by their uncertainty
// (a Kalman filter with a diagonal covariance).
type Rates struct {
	of [][]pair // by kind, by neighbour's kind
}

// pair is the knowledge about one kind beside another.
type pair struct {
	rate     float64 // exp(log)
	log      float64
	variance float64
}

// Of returns the rate of a task of kind a beside one of kind b.
func (r *Rates) Of(a, b int) float64 {
	if a >= len(r.of) || b >= len(r.of[a]) {
		return assumedPair
	}
	return r.of[a][b].rate
}

// at returns the entry of a pair, and creates it if needed.
func (r *Rates) at(a, b int) *pair {
	for len(r.of) <= a {
		r.of = append(r.of, nil)
	}
	for len(r.of[a]) <= b {
		r.of[a] = append(r.of[a], pair{rate: assumedPair, log: math.Log(assumedPair),
			variance: assumedSpread * assumedSpread})
	}
	return &r.of[a][b]
}

// Observe learns from the rate of a task of a kind beside neighbours.
func (r *Rates) Observe(kind int, beside []int, rate float64) {
	if len(beside) == 0 || !(rate > 0) || rate > 1 {
		return // a rate above full speed, or of a stopped task, says nothing about neighbours
	}
	known, spread := 0.0, measuredSpread*measuredSpread
	for i, b := range beside {
		p := r.at(kind, b)
		known += p.log
		if n, first := count(beside, i); first {
			spread += float64(n*n) * p.variance
		}
	}
	miss := math.Log(rate) - known
	for i, b := range beside {
		n, first := count(beside, i)
		if !first {
			continue
		}
		p := r.at(kind, b)
		gain := float64(n) * p.variance / spread
		p.log = math.Min(0, p.log+float64(gain*miss))
		p.variance -= gain * float64(n) * p.variance
		p.rate = math.Exp(p.log)
	}
}

// count returns how often list[i] occurs in list, and whether i is its first position.
func count(list []int, i int) (n int, first bool) {
	first = true
	for j, k := range list {
		if k == list[i] {
			n++
			first = first && j >= i
		}
	}
	return n, first
}

// Learn observes every task of a view that makes progress beside others.
func (r *Rates) Learn(v *View) {
	var beside []int
	for _, m := range v.Machines {
		for _, t := range m.Tasks {
			if v.Tasks[t].Rate <= 0 {
				continue
			}
			beside = beside[:0]
			for _, o := range m.Tasks {
				if o != t && v.Tasks[o].Busy {
					beside = append(beside, v.Tasks[o].Kind)
				}
			}
			r.Observe(v.Tasks[t].Kind, beside, v.Tasks[t].Rate)
		}
	}
}
