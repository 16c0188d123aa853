package study

import (
	"fmt"
	"time"

	"scrimp/internal/lib/money"
)

// Means is what a search has for its trials, and what these need. Times are market time.
type Means struct {
	AtOnce   int           // trials that train at once
	GPUs     int           // the fewest of a trial
	Grace    time.Duration // in which a trial saves at the end
	Start    time.Duration // of a machine
	Budget   money.Amount
	Least    money.Amount // that a trial needs to begin: see LeastStarts; zero: nothing for sale has a price
	Currency money.Currency
}

// LeastStarts is the number of starts of the cheapest machine, each with a save, that a trial must be able to pay for
// when it begins.
const LeastStarts = 2

// Saves returns the GPU-hours that the trials which train at once take to save at the end.
func (m Means) Saves() float64 { return float64(m.AtOnce*max(1, m.GPUs)) * m.Grace.Hours() }

// Short returns the limit of a search that no trial fits in, with the figures and the fix; an empty field: each leaves
// room for one. The field is that of the study file.
func (s *Spec) Short(m Means) (field, cause, fix string) {
	switch {
	case s.GPUHours > 0 && s.GPUHours <= m.Saves():
		return "gpu_hours", fmt.Sprintf("the saves of %d trials at once take %.3g GPU-hours of %g", m.AtOnce, m.Saves(),
			s.GPUHours), "give more GPU-hours, or let fewer trials train at once (parallel)"
	case s.Wall > 0 && s.Wall <= m.Start:
		return "wall_clock", fmt.Sprintf("a machine takes %s to start, and the search has %s", m.Start, s.Wall),
			"give more time"
	case s.Proxy != nil && (s.Reserved(m.Budget).Cmp(m.Least) < 0 || m.Budget.Sub(s.Reserved(m.Budget)).Cmp(m.Least) < 0):
		kept := s.Reserved(m.Budget)
		return "usd", fmt.Sprintf("a trial begins with what two starts of the cheapest machine and two saves cost, %s, and "+
				"the proxy has %s and full trainings %s", money.Short(m.Least, m.Currency),
				money.Short(m.Budget.Sub(kept), m.Currency), money.Short(kept, m.Currency)), "give a larger budget, or another " +
				"reserve of the proxy"
	case m.Budget.Cmp(m.Least) < 0:
		return "usd", fmt.Sprintf("a trial begins with what two starts of the cheapest machine and two saves cost, %s, and "+
			"the search has %s", money.Short(m.Least, m.Currency), money.Short(m.Budget, m.Currency)), "give a larger budget"
	}
	return "", "", ""
}
