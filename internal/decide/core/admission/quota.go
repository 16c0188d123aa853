package admission

import (
	"time"

	"scrimp/internal/decide/state"
	"scrimp/internal/lib/quantity"
)

// Overlap is how much of the span lies after begin.
func Overlap(from, until, begin time.Time) time.Duration {
	if from.Before(begin) {
		from = begin
	}
	return max(0, until.Sub(from))
}

// GpuTime is the GPU time of an attempt from begin to t.
func GpuTime(a *state.Attempt, t, begin time.Time) (d time.Duration) {
	for _, k := range a.Tasks() {
		d = quantity.Add(d, quantity.Times(billed(k, t, begin), k.GPUs()))
	}
	return d
}

// billed is for how long the task is billed from begin to t.
func billed(a *state.Task, t, begin time.Time) time.Duration {
	if a.From().IsZero() {
		return 0
	}
	if !a.Until().IsZero() && t.After(a.Until()) {
		t = a.Until()
	}
	return Overlap(a.From(), t, begin)
}

// GpuMost is the GPU time that a job can use in all, or false where nobody knows.
func GpuMost(t *state.Terms) (time.Duration, bool) {
	return quantity.GPUTime(min(t.GPUHours, 5e5)), t.GPUHours > 0 || t.Need.LeastGPUs() == 0
}

// LeastGPUs is how many GPUs a job takes at least, on all its machines.
func LeastGPUs(t *state.Terms) int { return t.Need.LeastGPUs() * t.Fewest() }
