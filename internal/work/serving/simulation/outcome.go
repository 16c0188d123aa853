package simulation

import (
	"time"

	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/work/serving/load"
)

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
			return Never
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

// Miss returns the largest latency as a multiple of its limit.
func (o Outcome) Miss(targets []Target) (worst float64) {
	for _, t := range targets {
		worst = max(worst, o.Quantiles[t.PerMille].Seconds()/t.Limit.Seconds())
	}
	return worst
}

// epoch is the time at which the windows of simulations begin, for bills: only spans count.
var epoch = time.Unix(0, 0).UTC()

// Cost returns what the machines of an outcome cost: each span by the second, and what the provider bills at least.
func (o Outcome) Cost(rate money.Rate, rules market.Billing) (sum money.Amount) {
	for _, s := range o.Spans {
		from := epoch.Add(s.From)
		for _, line := range market.Bill(rules, []market.Segment{{From: from, Rate: rate}}, epoch.Add(s.To), false) {
			sum = sum.Add(line.Amount)
		}
	}
	return sum
}

// Split divides a sum between the prompts and the answers of a trace by the time that both take in the batches of an
// outcome. It is false where the service does not tell them apart.
func Split(sum money.Amount, t load.Trace, s Service, o Outcome) (in, out money.Amount, ok bool) {
	r, known := s.(*load.Roofline)
	if _, _, counted := t.Tokens(); !known || !counted || o.Batches == 0 {
		return in, out, false
	}
	size := max(1, (o.Requests+o.Batches/2)/o.Batches) // of a batch, on average
	var prompt, decode float64
	for first := 0; first < len(t.At); first += size {
		p, d := r.Phases(first, min(size, len(t.At)-first))
		prompt += p
		decode += d
	}
	const parts = 1 << 40
	share := int64(prompt / (prompt + decode) * parts)
	in = money.Portion(sum, money.Picos(share), money.Picos(parts))
	return in, sum.Sub(in), true
}
