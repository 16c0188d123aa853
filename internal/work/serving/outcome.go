package serving

import "time"

// A Span is the time in which a machine was rented, since the start of the window.
type Span struct{ From, To time.Duration }

// An Outcome is what a rule did with a trace.
type Outcome struct {
	Rule     Rule
	Requests int // that were answered: all of the trace, unless Stopped
	Batches  int
	Colds    int // machines that were started
	Spans    []Span
	End      time.Duration // of the window, or the last answer where that is later
	Busy     time.Duration // of all servers together; saturates
	Slots    int           // servers of a machine
	// Quantiles are latencies from arrival to answer, by what Target.PerMille names.
	Quantiles map[int]time.Duration
	Mean      time.Duration // latency
	Waited    time.Duration // mean from arrival to the start of its service
	// Stopped says that too many requests missed a target, or that no end came in sight, so that the rest was not played.
	Stopped bool
}

// Meets reports whether the outcome is within all targets.
func (o Outcome) Meets(targets []Target) bool {
	for _, t := range targets {
		if o.Stopped || o.Quantiles[t.PerMille] > t.Limit {
			return false
		}
	}
	return !o.Stopped
}

// Rented returns how long machines are rented, all together; it saturates.
func (o Outcome) Rented() (sum time.Duration) {
	for _, s := range o.Spans {
		if sum += s.To - s.From; sum < 0 {
			return never
		}
	}
	return sum
}

// Idle returns the share of the rented time in which a server answered nothing, and false where nothing was rented.
func (o Outcome) Idle() (float64, bool) {
	paid := 0.0
	for _, s := range o.Spans {
		paid += (s.To - s.From).Seconds()
	}
	if paid == 0 {
		return 0, false
	}
	return max(0, 1-o.Busy.Seconds()/paid/float64(o.Slots)), true
}
