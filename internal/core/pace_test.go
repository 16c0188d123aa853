package core

import (
	"math"
	"testing"
	"time"
)

// A program whose first steps take minutes and the others a second is known to go at
// the pace of the others within a dozen of them, is rough until four looks at it, and
// an attempt that begins slowly again does not forget it.
func TestAPaceIsThatOfTheStepsAfterTheSlowFirstOnes(t *testing.T) {
	m := &Machine{now: time.Unix(0, 0)}
	j := &Job{Total: 100_000, Restart: time.Minute}
	steps := func(a *Attempt, n int, each time.Duration) {
		for range n {
			m.now = m.now.Add(each)
			a.Step()++
			m.stepRate(j, a)
		}
	}
	begin := func() *Attempt { return &Attempt{Phase: Working, Started: m.now, First: 500, Step: 500} }
	near := func(when string, want float64) {
		t.Helper()
		if math.Abs(j.StepRate()/want-1) > 0.01 {
			t.Errorf("%s: %.1f steps an hour, want %.1f", when, j.StepRate(), want)
		}
	}
	a := begin()
	steps(a, 2, 5*time.Minute)
	if steps(a, 7, time.Second); j.StepRate() != 0 {
		t.Errorf("a rate of %.1f after nine steps", j.StepRate())
	}
	steps(a, 1, time.Second)
	near("ten steps, nothing better", 10/(608/3600.0))
	if !j.Rough() {
		t.Error("ten steps, and not rough")
	}
	steps(a, 60, time.Second)
	near("a minute past the first ten", 3600)
	if !j.Rough() {
		t.Error("one look, and not rough")
	}
	if steps(a, 180, time.Second); j.Rough() {
		t.Errorf("rough after %v looks", j.Pace().Looks)
	}
	a = begin()
	steps(a, 2, 5*time.Minute)
	steps(a, 20, time.Second)
	near("the next attempt began as slowly", 3600)
	steps(a, 1000, 2*time.Second)
	near("it is half as fast", 1800)
}
