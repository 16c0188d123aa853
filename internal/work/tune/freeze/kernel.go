package freeze

import "math"

// A curve is a level at the last epoch, plus a drop that remains, plus a bend:
//
//	value(t) = level + drop·w(t) + bend·v(t) + noise
//
// w falls from 1 at the first epoch to 0 at the last, v is 0 at both and 1 between. Level, drop and bend are Gaussian:
// a part that all trials share, a part that trials with similar parameters share, and a part of the trial's own.
const parts = 3

// The parameters of the kernel, as logarithms. Lengths of the parameters follow.
const (
	likeLevel = iota // variance that similar trials share
	likeDrop
	likeBend
	ownLevel // variance of the trial's own
	ownDrop
	ownBend
	noise
	lengths
)

// shared is the variance of what all trials have in common, by part.
var shared = [parts]float64{4, 4, 1}

// theta is the parameters of a kernel.
type theta []float64

// priorOf is the mean and the standard deviation of each parameter before anything is seen.
func priorOf(dims int) (mean, spread theta) {
	mean = theta{math.Log(1.0), math.Log(0.5), math.Log(0.05), math.Log(0.3), math.Log(0.2), math.Log(0.05),
		math.Log(0.02)}
	spread = theta{1, 1, 1, 1, 1, 1, 1}
	for range dims {
		mean, spread = append(mean, 0.3), append(spread, 1)
	}
	return mean, spread
}

// shape is w and v of each epoch.
type shape [][parts]float64

// newShape makes the shapes of epochs 0 to the last; w goes by the epoch to the power -p, and by its logarithm for 0.
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

// matern is the correlation at a squared distance (Matérn 5/2), and its derivative by the logarithm of a length per
// squared distance in that parameter.
func matern(r2 float64) (k, slope float64) {
	r := math.Sqrt(5 * r2)
	e := math.Exp(-r)
	return (1 + r + r*r/3) * e, 5.0 / 3 * (1 + r) * e
}
