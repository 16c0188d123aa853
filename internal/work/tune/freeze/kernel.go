package freeze

import "math"

// A curve is a level at the last epoch, plus a remaining drop, plus a bend:
//
//	value(t) = level + drop·w(t) + bend·v(t) + noise
//
// w falls from 1 at the first epoch to 0 at the last; v is 0 at both and 1 between. Level, drop and bend are Gaussian,
// with a part common to all trials, a part common to trials with similar parameters, and the trial's own part.
const parts = 3

// Parameters of the kernel, as logarithms. The lengths of the hyper-parameters follow.
const (
	likeLevel = iota // variance shared by similar trials
	likeDrop
	likeBend
	ownLevel // variance of the trial's own part
	ownDrop
	ownBend
	noise
	lengths
)

// shared is the variance common to all trials, by part.
var shared = [parts]float64{4, 4, 1}

// theta holds the parameters of a kernel.
type theta []float64

// priorOf returns the prior mean and standard deviation of each parameter.
func priorOf(dims int) (mean, spread theta) {
	mean = theta{math.Log(1.0), math.Log(0.5), math.Log(0.05), math.Log(0.3), math.Log(0.2), math.Log(0.05),
		math.Log(0.02)}
	spread = theta{1, 1, 1, 1, 1, 1, 1}
	for range dims {
		mean, spread = append(mean, 0.3), append(spread, 1)
	}
	return mean, spread
}

// shape holds w and v of each epoch.
type shape [][parts]float64

// newShape returns the shapes of the epochs from 0 to the last; w depends on the epoch to the power -p, or on its
// logarithm for 0.
func newShape(epochs int, p float64) shape {
	s := make(shape, epochs+1)
	pow := func(t float64) float64 {
		if p == 0 {
			return -math.Log(t)
		}
		return math.Pow(t, -p)
	}
	last := pow(float64(epochs))
	span := pow(1) - last
	for t := range s {
		w := 0.0
		if span > 0 {
			w = (pow(math.Max(1, float64(t))) - last) / span
		}
		s[t] = [parts]float64{1, w, 4 * w * (1 - w)}
	}
	return s
}

// matern returns the correlation at a squared distance (Matérn 5/2), and its derivative by the logarithm of a length
// per squared distance in that parameter.
func matern(r2 float64) (k, slope float64) {
	r := math.Sqrt(5 * r2)
	e := math.Exp(-r)
	return (1 + r + r*r/3) * e, 5.0 / 3 * (1 + r) * e
}
