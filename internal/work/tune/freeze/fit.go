package freeze

import "math"

// A row is an observed value, or the mean of several at neighbouring epochs.
type row struct {
	trial int
	at    [parts]float64 // the shapes at its epoch
	z     float64
	n     float64 // number of averaged values
}

// noiseOf returns the variance of a row: neighbouring values have correlated errors, so n of them count as the root of
// n.
func noiseOf(sigma2 float64, r *row) float64 { return sigma2 / math.Sqrt(r.n) }

// fitter fits the parameters of a kernel to rows.
type fitter struct {
	f      *features
	rows   []row
	trials []int // of the rows, each once
	of     []int // index of each row's trial in trials
	corr   []float64
	slope  []float64
	k, l   []float64
	inv    []float64
	alpha  []float64
}

func newFitter(f *features, rows []row) *fitter {
	t := &fitter{f: f, rows: rows}
	place := map[int]int{}
	for _, r := range rows {
		if _, ok := place[r.trial]; !ok {
			place[r.trial] = len(t.trials)
			t.trials = append(t.trials, r.trial)
		}
		t.of = append(t.of, place[r.trial])
	}
	m, n := len(t.trials), len(rows)
	t.corr, t.slope = make([]float64, m*m), make([]float64, m*m)
	t.k, t.l, t.inv, t.alpha = make([]float64, n*n), make([]float64, n*n), make([]float64, n*n), make([]float64, n)
	return t
}

// covariances computes the kernel of all rows.
func (t *fitter) covariances(th theta) {
	m := len(t.trials)
	inv := make([]float64, len(th)-lengths)
	for d := range inv {
		inv[d] = math.Exp(-2 * th[lengths+d])
	}
	for a := range m {
		for b := 0; b <= a; b++ {
			r2 := 0.0
			for d, s := range inv {
				r2 += s * t.f.apart(t.trials[a], t.trials[b], d)
			}
			t.corr[a*m+b], t.slope[a*m+b] = matern(r2)
			t.corr[b*m+a], t.slope[b*m+a] = t.corr[a*m+b], t.slope[a*m+b]
		}
	}
	var like, own [parts]float64
	for p := range parts {
		like[p], own[p] = math.Exp(th[likeLevel+p]), math.Exp(th[ownLevel+p])
	}
	n, sigma2 := len(t.rows), math.Exp(th[noise])
	for i := range t.rows {
		for j := 0; j <= i; j++ {
			c, v := t.corr[t.of[i]*m+t.of[j]], 0.0
			for p := range parts {
				k := shared[p] + like[p]*c
				if t.of[i] == t.of[j] {
					k += own[p]
				}
				v += k * t.rows[i].at[p] * t.rows[j].at[p]
			}
			if i == j {
				v += noiseOf(sigma2, &t.rows[i])
			}
			t.k[i*n+j] = v
		}
	}
}

// evaluate returns the log posterior of the parameters and sets its gradient.
func (t *fitter) evaluate(th, mean, spread, grad theta) float64 {
	t.covariances(th)
	n := len(t.rows)
	if !cholesky(t.k, t.l, n) {
		return math.Inf(-1)
	}
	value := 0.0
	for i := range n {
		s := t.rows[i].z
		for j := range i {
			s -= t.l[i*n+j] * t.alpha[j]
		}
		t.alpha[i] = s / t.l[i*n+i]
		value -= t.alpha[i]*t.alpha[i]/2 + math.Log(t.l[i*n+i])
	}
	for i := n - 1; i >= 0; i-- {
		s := t.alpha[i]
		for j := i + 1; j < n; j++ {
			s -= t.l[j*n+i] * t.alpha[j]
		}
		t.alpha[i] = s / t.l[i*n+i]
	}
	t.gradient(th, grad)
	for i := range th {
		d := (th[i] - mean[i]) / spread[i]
		value -= d * d / 2
		grad[i] -= d / spread[i]
	}
	return value
}

// gradient computes the derivatives of the likelihood.
func (t *fitter) gradient(th, grad theta) {
	n, m := len(t.rows), len(t.trials)
	invert(t.l, t.inv, n)
	clear(grad)
	var like, own [parts]float64
	for p := range parts {
		like[p], own[p] = math.Exp(th[likeLevel+p]), math.Exp(th[ownLevel+p])
	}
	sigma2 := math.Exp(th[noise])
	pair := make([]float64, m*m)
	for i := range n {
		for j := 0; j <= i; j++ {
			w := t.alpha[i]*t.alpha[j] - t.inv[i*n+j]
			if i == j {
				w /= 2
				grad[noise] += w * noiseOf(sigma2, &t.rows[i])
			}
			a, b := t.of[i], t.of[j]
			c, sum := t.corr[a*m+b], 0.0
			for p := range parts {
				at := w * t.rows[i].at[p] * t.rows[j].at[p]
				grad[likeLevel+p] += at * like[p] * c
				if a == b {
					grad[ownLevel+p] += at * own[p]
				}
				sum += at * like[p]
			}
			pair[a*m+b] += sum
		}
	}
	for a := range m {
		for b := range m {
			v := pair[a*m+b] * t.slope[a*m+b]
			if v == 0 || a == b {
				continue
			}
			for d := lengths; d < len(th); d++ {
				grad[d] += v * t.f.apart(t.trials[a], t.trials[b], d-lengths) * math.Exp(-2*th[d])
			}
		}
	}
}

// fit improves the parameters by steps whose size depends only on the sign of the gradient, which makes it independent
// of scale.
func (t *fitter) fit(from theta, steps int) theta {
	const most = 0.7
	mean, spread := priorOf(len(from) - lengths)
	th, best := append(theta{}, from...), append(theta{}, from...)
	grad, last, size := make(theta, len(th)), make(theta, len(th)), make(theta, len(th))
	for i := range size {
		size[i] = 0.2
	}
	top := math.Inf(-1)
	for range steps {
		v := t.evaluate(th, mean, spread, grad)
		if v > top {
			top = v
			copy(best, th)
		}
		if math.IsInf(v, -1) {
			break
		}
		for i, g := range grad {
			switch s := g * last[i]; {
			case s > 0:
				size[i] = math.Min(most, size[i]*1.3)
			case s < 0:
				size[i] *= 0.5
				g = 0
			}
			if last[i] = g; g > 0 {
				th[i] += size[i]
			} else if g < 0 {
				th[i] -= size[i]
			}
			th[i] = math.Max(mean[i]-4*spread[i], math.Min(mean[i]+4*spread[i], th[i]))
		}
	}
	return best
}

// cholesky computes the lower l with l·lᵀ = k, and reports whether k is positive definite.
func cholesky(k, l []float64, n int) bool {
	for i := range n {
		li := l[i*n : i*n+i+1]
		for j := 0; j <= i; j++ {
			lj := l[j*n : j*n+j+1]
			s := k[i*n+j]
			for q, v := range lj[:j] {
				s -= v * li[q]
			}
			if i == j {
				if s <= 1e-12 {
					return false
				}
				li[i] = math.Sqrt(s)
			} else {
				li[j] = s / lj[j]
			}
		}
	}
	return true
}

// invert computes the lower half of the inverse of l·lᵀ.
func invert(l, inv []float64, n int) {
	// The inverse of l, by rows of its transpose, so that the inner loops access memory sequentially.
	u := make([]float64, n*n) // u[j*n+i] is (l⁻¹)[i][j]
	for j := range n {
		uj := u[j*n : j*n+n]
		uj[j] = 1 / l[j*n+j]
		for i := j + 1; i < n; i++ {
			s, li := 0.0, l[i*n:i*n+i]
			for q := j; q < i; q++ {
				s += li[q] * uj[q]
			}
			uj[i] = -s / l[i*n+i]
		}
	}
	for i := range n {
		ui := u[i*n : i*n+n]
		for j := 0; j <= i; j++ {
			s, uj := 0.0, u[j*n:j*n+n]
			for q := i; q < n; q++ {
				s += ui[q] * uj[q]
			}
			inv[i*n+j] = s
		}
	}
}
