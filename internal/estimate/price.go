package estimate

import (
	"fmt"
	"math"

	"scrimp/internal/estimate/likeness"
)

// Prices says which machines carry accelerators and what they cost in dollars an hour, list price.
type Prices interface {
	// Machines are the ways to rent n accelerators of a kind: single machines that have them
	// where there are such, else several of one type. It is empty where no price is known:
	// unpriced is never free. machine is set where a certain machine type was asked for.
	Machines(accelerator, machine string, n float64) []Machine
}

// priced says what an hour and all hours of an answer cost, and whose price it is.
func (e *Estimator) priced(r Row, a *Answer) (why string) {
	var h Machine
	ok := r.Host != nil && r.Host.Hourly > 0
	if ok {
		h = *r.Host
	} else {
		kind := r.accelerator()
		if c, _, taken, guessed := r.chip(e.chips); taken != "" && !guessed {
			kind = c.Name
		}
		h, ok = e.cheapest(kind, r.Machine, r.count())
	}
	if !ok {
		return "no price is known"
	}
	a.Hourly = h.Hourly
	if a.Hours != nil {
		c := a.Hours.Times(h.Hourly)
		a.Cost = &c
	}
	return "price " + h.Source
}

// held holds the rate of an answer to what the host's processors decode, where no run of these
// programs, this model and accelerator has shown what they do. Programs differ by a factor of two.
func (e *Estimator) held(r Row, p likeness.Point, a *Answer) (why string) {
	if r.Host == nil || r.Decoded {
		return ""
	}
	most, ok := r.Host.decoded(r.Shape())
	if !ok || e.shown[stackOf(p)] || a.Throughput.Value <= most {
		return ""
	}
	t := a.Throughput
	a.Throughput = &Range{Value: most, Low: math.Min(t.Low, most/2), High: math.Min(t.High, 2*most)}
	return fmt.Sprintf("%g processors decode about %.0f images a second, which holds it back (%.0f with images that are "+
		"decoded beforehand or on the accelerator: --decoded)", r.Host.Count*r.Host.CPUs, most, t.Value)
}

// least is what n accelerators of a kind cost an hour at the least, and false where no price is known.
func (e *Estimator) least(kind, machine string, n float64) (usd float64, priced bool) {
	h, ok := e.cheapest(kind, machine, n)
	return h.Hourly, ok
}

// cheapest is the machines that carry n accelerators of a kind for the least.
func (e *Estimator) cheapest(kind, machine string, n float64) (best Machine, ok bool) {
	if e.prices == nil {
		return best, false
	}
	for _, h := range e.prices.Machines(kind, machine, n) {
		if !ok || h.Hourly < best.Hourly {
			best, ok = h, true
		}
	}
	return best, ok
}
