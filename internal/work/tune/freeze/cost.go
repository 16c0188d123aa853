package freeze

import (
	"math"

	"scrimp/internal/work/tune"
)

// costs predicts what an epoch of a trial costs: what its own epochs cost, or what the parameters say.
type costs struct {
	f     *features
	epoch []float64 // the newest prediction by trial
	known int       // started trials at the newest fit
}

func newCosts(f *features) *costs {
	c := &costs{f: f, epoch: make([]float64, len(f.x)), known: -1}
	for i := range c.epoch {
		c.epoch[i] = 1
	}
	return c
}

// variances of the prior of a logarithm: of all, of a slope in a parameter, of similar trials, of one.
const (
	costLevel = 9.0
	costSlope = 4.0
	costLike  = 0.5
	costOwn   = 0.01
)

func (c *costs) kernel(i, j int) float64 {
	r2, k := 0.0, costLevel
	for d := range c.f.equal {
		a := c.f.apart(i, j, d)
		r2 += a
		if c.f.equal[d] {
			k += costSlope * 0.25 * (1 - a)
		} else {
			k += costSlope * (c.f.x[i][d] - 0.5) * (c.f.x[j][d] - 0.5)
		}
	}
	m, _ := matern(r2)
	return k + costLike*m
}

// update learns from the history. Trials that have trained cost what they did.
func (c *costs) update(h *tune.History) {
	var trials []int
	var logs []float64
	for _, t := range h.Order {
		sum, n := 0.0, 0.0
		for _, v := range h.Runs[t].Costs {
			if v > 0 {
				sum, n = sum+v, n+1
			}
		}
		if n > 0 {
			trials, logs = append(trials, t), append(logs, math.Log(sum/n))
			c.epoch[t] = sum / n
		}
	}
	n := len(trials)
	if n == c.known || n == 0 {
		return
	}
	if n > 40 && n < c.known+5 {
		return // it has learned most of it
	}
	c.known = n
	mean := 0.0
	for _, v := range logs {
		mean += v / float64(n)
	}
	k, l, alpha := make([]float64, n*n), make([]float64, n*n), make([]float64, n)
	for i := range n {
		for j := 0; j <= i; j++ {
			k[i*n+j] = c.kernel(trials[i], trials[j])
		}
		k[i*n+i] += costOwn
	}
	if !cholesky(k, l, n) {
		return
	}
	for i := range n {
		s := logs[i] - mean
		for j := range i {
			s -= l[i*n+j] * alpha[j]
		}
		alpha[i] = s / l[i*n+i]
	}
	for i := n - 1; i >= 0; i-- {
		s := alpha[i]
		for j := i + 1; j < n; j++ {
			s -= l[j*n+i] * alpha[j]
		}
		alpha[i] = s / l[i*n+i]
	}
	for t := range c.epoch {
		if h.Epoch(t) > 0 {
			continue
		}
		s := mean
		for i, o := range trials {
			s += alpha[i] * c.kernel(t, o)
		}
		c.epoch[t] = math.Exp(s)
	}
}
