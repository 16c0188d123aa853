package freeze

import (
	"math"

	"scrimp/internal/work/tune"
)

// A posterior is level, drop and bend of a trial, given what was seen.
type posterior struct {
	mean [parts]float64
	cov  [parts][parts]float64
}

// at is the mean and the variance of the curve where the shapes are these, noise left out.
func (p *posterior) at(s *[parts]float64) (mean, variance float64) {
	for a := range parts {
		mean += p.mean[a] * s[a]
		for b := range parts {
			variance += p.cov[a][b] * s[a] * s[b]
		}
	}
	return mean, math.Max(variance, 0)
}

// model is a Gaussian process over the level, drop and bend of some trials. A row that is added changes all posteriors
// at once, for the number of rows times the number of trials.
type model struct {
	f      *features
	trials []tune.Trial
	place  []int // of each trial in trials, or -1
	like   [parts]float64
	own    [parts]float64
	sigma2 float64
	inv    []float64 // squared inverse lengths
	post   []posterior
	rows   []row
	l      [][]float64 // of the rows' covariances, by row
	b      []float64   // l⁻¹ z
	v      [][]float64 // l⁻¹ × covariances with each trial's parts, by row
	corr   map[tune.Trial][]float64
}

func newModel(f *features, th theta, trials []tune.Trial) *model {
	m := &model{f: f, trials: trials, place: make([]int, len(f.x)), sigma2: math.Exp(th[noise]),
		post: make([]posterior, len(trials)), corr: map[tune.Trial][]float64{}}
	for t := range m.place {
		m.place[t] = -1
	}
	for i, t := range trials {
		m.place[t] = i
	}
	for p := range parts {
		m.like[p], m.own[p] = math.Exp(th[likeLevel+p]), math.Exp(th[ownLevel+p])
	}
	for _, l := range th[lengths:] {
		m.inv = append(m.inv, math.Exp(-2*l))
	}
	for i := range m.post {
		for p := range parts {
			m.post[i].cov[p][p] = shared[p] + m.like[p] + m.own[p]
		}
	}
	return m
}

// of is the posterior of a trial, or nil where the model leaves the trial out.
func (m *model) of(t tune.Trial) *posterior {
	if m.place[t] < 0 {
		return nil
	}
	return &m.post[m.place[t]]
}

// correlations are those of a trial with every trial.
func (m *model) correlations(trial tune.Trial) []float64 {
	if c, ok := m.corr[trial]; ok {
		return c
	}
	c := make([]float64, len(m.trials))
	for i, o := range m.trials {
		r2 := 0.0
		for d, s := range m.inv {
			r2 += s * m.f.apart(trial, o, d)
		}
		c[i], _ = matern(r2)
	}
	m.corr[trial] = c
	return c
}

// covariances are those of a row with each part of each trial that the model has, before any row is known.
func (m *model) covariances(r row) []float64 {
	at, c := m.place[r.trial], m.correlations(r.trial)
	next := make([]float64, parts*len(m.post))
	for i := range m.post {
		for p := range parts {
			k := shared[p] + m.like[p]*c[i]
			if i == at {
				k += m.own[p]
			}
			next[parts*i+p] = k * r.at[p]
		}
	}
	return next
}

// add conditions all posteriors on a row. It ignores a row of a trial that the model leaves out.
func (m *model) add(r row) {
	at := m.place[r.trial]
	if at < 0 {
		return
	}
	n := len(m.rows)
	l, next := make([]float64, n+1), m.covariances(r)
	for q := range m.rows { // the covariance with an earlier row, and the row of l
		o, s := &m.rows[q], 0.0
		for p := range parts {
			s += next[parts*m.place[o.trial]+p] * o.at[p]
		}
		for k, v := range m.l[q][:q] {
			s -= l[k] * v
		}
		l[q] = s / m.l[q][q]
	}
	s := noiseOf(m.sigma2, &r)
	for p := range parts {
		s += next[parts*at+p] * r.at[p]
	}
	b := r.z
	for k, v := range l[:n] {
		s -= v * v
		b -= v * m.b[k]
	}
	l[n] = math.Sqrt(math.Max(s, 1e-9))
	b /= l[n]
	for k, v := range l[:n] {
		old := m.v[k]
		for i := range next {
			next[i] -= v * old[i]
		}
	}
	for i := range next {
		next[i] /= l[n]
	}
	m.rows, m.l, m.b, m.v = append(m.rows, r), append(m.l, l), append(m.b, b), append(m.v, next)
	for i := range m.post {
		p, v := &m.post[i], next[parts*i:parts*i+parts]
		for a := range parts {
			p.mean[a] += v[a] * b
			for q := range parts {
				p.cov[a][q] -= v[a] * v[q]
			}
		}
	}
}
