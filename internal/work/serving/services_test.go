package serving_test

import (
	"math/rand/v2"
	"time"

	"scrimp/internal/work/serving/load"
)

const ms = time.Millisecond

// affine takes a time for a batch, and more for each request.
type affine struct{ base, each time.Duration }

func (a affine) Time(_, n int) time.Duration { return a.base + time.Duration(n)*a.each }

// flat takes the same time for every batch.
type flat time.Duration

func (f flat) Time(int, int) time.Duration { return time.Duration(f) }

// poisson returns n arrivals with a mean rate, in requests a second.
func poisson(r *rand.Rand, n int, rate float64) (t load.Trace) {
	at := 0.0
	for range n {
		at += r.ExpFloat64() / rate
		t.At = append(t.At, time.Duration(at*1e9))
	}
	t.Window = t.At[n-1]
	return t
}
