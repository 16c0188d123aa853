package main

import "math"

// adam is the optimiser and its state. The learning rate depends only on the step, not on the number of planned
// steps, so that a run can be extended.
type adam struct {
	mean, square   []float64
	peak, warmup   float64 // the highest learning rate, and the number of steps to it
	decay1, decay2 float64 // beta1 and beta2 to the power of the completed steps
}

const (
	beta1, beta2 = 0.9, 0.99
	peakRate     = 1e-2 // learning rate at the end of the warm-up
	warmup       = 100  // steps
	clip         = 1.0  // largest norm of a gradient
)

func newAdam(n int) *adam {
	return &adam{peak: peakRate, warmup: warmup, mean: make([]float64, n), square: make([]float64, n), decay1: 1,
		decay2: 1}
}

// rate returns the learning rate of a step, counted from 1: it rises linearly to peak, then falls with the square
// root of the step.
func (a *adam) rate(step int64) float64 {
	if x := float64(step); x < a.warmup {
		return float64(a.peak*x) / a.warmup
	}
	return float64(a.peak * math.Sqrt(a.warmup/float64(step)))
}

// step updates the weights with the gradients of a step, counted from 1.
func (a *adam) step(w, g []float64, step int64) {
	f := 1.0
	if size := math.Sqrt(dot(g, g)); size > clip {
		f = clip / size
	}
	a.decay1 = float64(a.decay1 * beta1)
	a.decay2 = float64(a.decay2 * beta2)
	lr := a.rate(step) / (1 - a.decay1)
	c := 1 / (1 - a.decay2)
	g, mean, square := g[:len(w)], a.mean[:len(w)], a.square[:len(w)]
	for i := range w {
		x := float64(g[i] * f)
		m := float64(mean[i]*beta1) + float64(x*(1-beta1))
		v := float64(square[i]*beta2) + float64(x*x*(1-beta2))
		mean[i], square[i] = m, v
		w[i] -= float64(lr*m) / (math.Sqrt(float64(v*c)) + 1e-8)
	}
}
