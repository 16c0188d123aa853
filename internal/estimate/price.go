package estimate

import (
	"fmt"
	"math"

	"scrimp/internal/estimate/hardware"
	"scrimp/internal/estimate/residual"
	"scrimp/internal/estimate/runs"
)

// Prices gives the machines that carry accelerators and their list prices in dollars per hour.
type Prices interface {
	// Machines returns the ways to rent n accelerators of a kind: single machines that have them if they exist, or else
	// several machines of one type. It is empty if no price is known: unknown is never free. machine is set if a
	// certain machine type is requested.
	Machines(accelerator, machine string, n float64) []hardware.Machine
}

// priced sets the hourly and total cost of an answer, and returns the source of the price.
func (e *Estimator) priced(r runs.Row, a *Answer) (why string) {
	var h hardware.Machine
	ok := r.Host != nil && r.Host.Hourly > 0
	if ok {
		h = *r.Host
	} else {
		kind := r.Accelerator()
		if c, _, taken, guessed := r.Chip(e.chips); taken != "" && !guessed {
			kind = c.Name
		}
		h, ok = e.cheapest(kind, r.Machine, r.Count())
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

// held limits the rate of an answer to what the host's processors can decode, unless a run of the same programs, model
// and accelerator shows their rate. Programs differ by a factor of two.
func (e *Estimator) held(r runs.Row, p residual.Point, a *Answer) (why string) {
	if r.Host == nil || r.Decoded {
		return ""
	}
	most, ok := r.Host.Decoded(r.Shape())
	if !ok || e.shown[stackOf(p)] || a.Throughput.Value <= most {
		return ""
	}
	t := a.Throughput
	a.Throughput = &Range{Value: most, Low: math.Min(t.Low, most/2), High: math.Min(t.High, 2*most)}
	return fmt.Sprintf("%g processors decode about %.0f images a second, which holds it back (%.0f with images that are "+
		"decoded beforehand or on the accelerator: --decoded)", r.Host.Count*r.Host.CPUs, most, t.Value)
}

// least returns the lowest hourly price of n accelerators of a kind, and false if no price is known.
func (e *Estimator) least(kind, machine string, n float64) (usd float64, priced bool) {
	h, ok := e.cheapest(kind, machine, n)
	return h.Hourly, ok
}

// cheapest returns the cheapest machines that carry n accelerators of a kind.
func (e *Estimator) cheapest(kind, machine string, n float64) (best hardware.Machine, ok bool) {
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
