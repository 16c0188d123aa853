package simulation_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"scrimp/internal/work/serving/load"
	"scrimp/internal/work/serving/simulation"
)

// drawn takes the time of each request from a list; a batch takes the sum.
type drawn []time.Duration

func (d drawn) Time(first, n int) (sum time.Duration) {
	for _, t := range d[first : first+n] {
		sum += t
	}
	return sum
}

// flat takes the same time for any batch.
type flat time.Duration

func (f flat) Time(int, int) time.Duration { return time.Duration(f) }

func span(seconds float64) time.Duration { return time.Duration(seconds * 1e9) }

// poisson returns n arrivals with a mean rate, in requests a second.
func poisson(r *rand.Rand, n int, rate float64) load.Trace {
	var t load.Trace
	at := 0.0
	for range n {
		at += r.ExpFloat64() / rate
		t.At = append(t.At, span(at))
	}
	t.Window = t.At[n-1]
	return t
}

func within(t *testing.T, what string, got time.Duration, want, share float64) {
	t.Helper()
	if off := got.Seconds()/want - 1; math.Abs(off) > share {
		t.Errorf("%s is %v, theory has %.6f s: off by %.2f %%", what, got, want, 100*off)
	} else {
		t.Logf("%s is %v, theory has %.6f s: off by %.2f %%", what, got, want, 100*off)
	}
}

// erlangC is the chance that a request waits in M/M/c with an offered load of a.
func erlangC(c int, a float64) float64 {
	b := 1.0 // Erlang B by its recursion
	for k := 1; k <= c; k++ {
		b = a * b / (float64(k) + a*b)
	}
	return b / (1 - a/float64(c)*(1-b))
}

// M/M/c: the mean wait is C / (cμ - λ). With one server the latency is exponential with rate μ - λ, so that its quantile
// q is -ln(1-q) / (μ - λ). Where few requests wait the mean wait of one trace is off by about 1 %: it is taken over several.
func TestSimulation_AgreesWithErlangC(t *testing.T) {
	const n, mu = 2_000_000, 10.0
	for _, x := range []struct {
		c, traces int
		load      float64
	}{{1, 1, 0.6}, {4, 1, 0.7}, {16, 8, 0.8}} {
		lambda := x.load * mu * float64(x.c)
		spare := mu*float64(x.c) - lambda
		var waited time.Duration
		for seed := range x.traces {
			r := rand.New(rand.NewPCG(7+uint64(seed), uint64(x.c)))
			trace := poisson(r, n, lambda)
			times := make(drawn, n)
			for i := range times {
				times[i] = span(r.ExpFloat64() / mu)
			}
			o := simulation.NewSimulation(trace, times, 1, nil).Run(simulation.Rule{Batch: 1, Min: x.c, Max: x.c})
			waited += o.Waited / time.Duration(x.traces)
			within(t, "mean latency", o.Mean, erlangC(x.c, lambda/mu)/spare+1/mu, 0.01)
			if x.c == 1 {
				within(t, "p50", o.Quantiles[500], math.Ln2/spare, 0.01)
				within(t, "p99", o.Quantiles[990], math.Log(100)/spare, 0.01)
			}
			for _, q := range []int{500, 990} {
				within(t, "quantile", o.Quantiles[q], mmcQuantile(x.c, lambda, mu, float64(q)/1000), 0.01)
			}
			if idle, _ := o.Idle(); math.Abs(idle-1+x.load) > 0.004 {
				t.Errorf("idle %.4f of the time, theory has %.4f", idle, 1-x.load)
			}
		}
		within(t, "mean wait", waited, erlangC(x.c, lambda/mu)/spare, 0.01)
	}
}

// mmcQuantile solves the distribution of the latency in M/M/c by bisection: a request waits with chance C for an
// exponential time of rate r = cμ - λ, and is then served for one of rate μ.
func mmcQuantile(c int, lambda, mu, q float64) float64 {
	wait, r := erlangC(c, lambda/mu), mu*float64(c)-lambda
	above := func(t float64) float64 {
		both := (r*math.Exp(-mu*t) - mu*math.Exp(-r*t)) / (r - mu)
		return (1-wait)*math.Exp(-mu*t) + wait*both
	}
	low, high := 0.0, 100.0
	for range 100 {
		if mid := (low + high) / 2; above(mid) > 1-q {
			low = mid
		} else {
			high = mid
		}
	}
	return high
}

// M/D/1: the mean wait is ρ s / 2(1-ρ), and P(wait <= t) = (1-ρ) Σ_k (λ(ks-t))^k e^(λ(t-ks)) / k! for k up to t/s.
func TestSimulation_AgreesWithMD1(t *testing.T) {
	const n, s, rho = 2_000_000, 0.1, 0.7
	trace := poisson(rand.New(rand.NewPCG(3, 9)), n, rho/s)
	o := simulation.NewSimulation(trace, flat(span(s)), 1, nil).Run(simulation.Rule{Batch: 1, Min: 1, Max: 1})
	within(t, "mean wait", o.Waited, rho*s/2/(1-rho), 0.01)
	below := func(t float64) (p float64) {
		lambda := rho / s
		for k, over := 0, 1.0; float64(k)*s <= t; k++ {
			x := lambda * (float64(k)*s - t)
			if k > 0 {
				over *= float64(k)
			}
			p += math.Pow(x, float64(k)) / over * math.Exp(-x)
		}
		return (1 - rho) * p
	}
	for _, q := range []int{500, 900, 990} {
		low, high := 0.0, 10*s
		for range 60 {
			if mid := (low + high) / 2; below(mid) < float64(q)/1000 {
				low = mid
			} else {
				high = mid
			}
		}
		within(t, "quantile of the latency", o.Quantiles[q], high+s, 0.01)
	}
}
