package freeze

import (
	"math"
	"slices"

	"scrimp/internal/work/tune"
)

// costs predicts the cost of a trial's epoch from its own epochs, or from its parameters.
type costs struct {
	f     *features
	epoch []float64 // the newest prediction by trial; of returns it
	fresh []bool    // the prediction is of the newest fit
	sum   []float64 // of each trial's own costs
	count []float64
	seen  int          // reports in the sums
	order []tune.Trial // trials that have trained
	known int          // how many of them the newest fit uses
	// The newest fit: a prediction is the mean plus alpha times the kernel with each trial of basis.
	mean  float64
	alpha []float64
	basis []tune.Trial
}

func newCosts(f *features) *costs {
	n := len(f.x)
	c := &costs{f: f, epoch: make([]float64, n), fresh: make([]bool, n),
		sum: make([]float64, n), count: make([]float64, n)}
	for i := range c.epoch {
		c.epoch[i] = 1
	}
	return c
}

// Prior variances of a cost's logarithm: of the level, of a slope in a parameter, of similar trials, of one trial.
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

// fitted bounds the trials behind the prediction.
const fitted = 300

// update learns from the history. Trials that have trained cost what they did.
func (c *costs) update(h *tune.History) {
	for ; c.seen < len(h.Reports); c.seen++ {
		r := h.Reports[c.seen]
		own := h.Runs[r.Trial].Costs[r.Epoch-1]
		if own <= 0 {
			continue
		}
		if c.count[r.Trial] == 0 {
			c.order = append(c.order, r.Trial)
		}
		c.sum[r.Trial] += own
		c.count[r.Trial]++
		c.epoch[r.Trial] = c.sum[r.Trial] / c.count[r.Trial]
	}
	if n := len(c.order); n < c.known+1+c.known/growth {
		return // it has learned most of it
	}
	c.known = len(c.order)
	trials := slices.Clone(c.order)
	slices.Sort(trials)
	for len(trials) > fitted {
		trials = half(trials)
	}
	c.predict(trials)
}

// half returns every second trial.
func half(trials []tune.Trial) (list []tune.Trial) {
	for i := 0; i < len(trials); i += 2 {
		list = append(list, trials[i])
	}
	return list
}

// predict fits the costs of trained trials, and predicts those of the others.
func (c *costs) predict(trials []tune.Trial) {
	n, logs := len(trials), make([]float64, len(trials))
	for i, t := range trials {
		logs[i] = math.Log(c.epoch[t])
	}
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
	c.mean, c.alpha, c.basis = mean, alpha, trials
	clear(c.fresh)
}

// of returns the expected cost of a trial's epoch. It predicts only what is asked for, since a search may have many
// more trials than it considers.
func (c *costs) of(t tune.Trial) float64 {
	if c.count[t] == 0 && !c.fresh[t] {
		s := c.mean
		for i, o := range c.basis {
			s += c.alpha[i] * c.kernel(t, o)
		}
		c.epoch[t], c.fresh[t] = math.Exp(s), true
	}
	return c.epoch[t]
}
