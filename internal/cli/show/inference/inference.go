// Package inference writes what it costs to serve a model.
package inference

import (
	"strings"
	"time"

	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/work/serving"
	"scrimp/internal/work/serving/load"
	"scrimp/internal/work/serving/simulation"
)

// Choice is one rule on one offer. What is null is unknown, or does not apply. Costs are of the whole trace.
type Choice struct {
	Offer       string `json:"offer"`
	Provider    string `json:"provider,omitempty"`
	Region      string `json:"region,omitempty"`
	Machine     string `json:"machine,omitempty"`
	Accelerator string `json:"accelerator,omitempty"`
	Count       int    `json:"accelerators,omitempty"`

	Rule     simulation.Kind `json:"rule"`
	Batch    int             `json:"max_batch"`
	Wait     float64         `json:"max_wait_s"`
	Min      int             `json:"min_machines"`
	Max      int             `json:"max_machines"`
	Warm     string          `json:"warm_hours_utc,omitempty"`
	WarmMin  int             `json:"warm_machines,omitempty"`
	Meets    string          `json:"meets"` // yes; uncertain: the slow end of the estimate does not; no
	P50      float64         `json:"p50_s"`
	P90      float64         `json:"p90_s"`
	P95      float64         `json:"p95_s"`
	P99      float64         `json:"p99_s"`
	P999     float64         `json:"p99_9_s"`
	Mean     float64         `json:"mean_s"`
	Idle     *float64        `json:"idle"` // share of the rented time; null of functions, which are paid by use
	Requests int             `json:"requests"`
	Batches  int             `json:"batches"`
	Colds    int             `json:"cold_starts"`

	Format  string      `json:"format,omitempty"`
	Shards  int         `json:"accelerators_per_copy,omitempty"`
	Copies  int         `json:"copies_per_machine"`
	Needs   *size.Bytes `json:"memory_needed_bytes"`
	Have    *size.Bytes `json:"memory_bytes"`
	Weights *size.Bytes `json:"weights_bytes"`

	Currency money.Currency `json:"currency"`
	Machines money.Amount   `json:"machines_cost"`
	Egress   *money.Amount  `json:"egress_cost"`
	Total    *money.Amount  `json:"total_cost"` // null: the trace sends answers, and the price of that is unknown
	Each     money.Amount   `json:"cost_per_prediction"`
	Input    *money.Amount  `json:"cost_per_million_input_tokens"`
	Output   *money.Amount  `json:"cost_per_million_output_tokens"`
	Tokens   *money.Amount  `json:"cost_per_million_tokens"`

	Estimated bool     `json:"service_time_estimated"`
	FastP99   *float64 `json:"fast_p99_s"` // at the ends of the estimate; null: measured, or the end answers too late
	SlowP99   *float64 `json:"slow_p99_s"`

	Source string     `json:"price_source"`
	At     *time.Time `json:"price_at"`
	p99    time.Duration
	p50    time.Duration
	cold   time.Duration // of a function
	rule   simulation.Rule
	first  bool // the best of its offer
	ranged bool
}

// Skipped is an offer that the plan leaves out.
type Skipped struct {
	Offer string `json:"offer"`
	Why   string `json:"skipped"`
}

// Answer is the answer of scrimp serve-plan.
type Answer struct {
	Head    string // what is served
	Choices []Choice
	Skipped []Skipped
	Targets []simulation.Target
	Trace   load.Trace
	Cold    time.Duration
	Notes   []string
}

// AnswerOf returns the answer of a plan after Play of all its engines. best is the choice that comes first.
func AnswerOf(p *serving.Plan, head string) (v Answer, best serving.Choice, ok bool) {
	v = Answer{Head: head, Targets: p.Ask.Options.Targets, Trace: p.Ask.Trace, Cold: p.Ask.Options.Cold}
	seen := map[string]bool{}
	for i, c := range p.Choices() {
		x := choiceOf(p, c)
		if i == 0 {
			best, ok = c, true
		}
		x.first = !seen[c.Name()]
		seen[c.Name()] = true
		x.rangeOf(p, c)
		v.Choices = append(v.Choices, x)
	}
	for _, s := range p.Skipped {
		v.Skipped = append(v.Skipped, Skipped{string(s.Listing.Offer.ID), s.Why})
	}
	return v, best, ok
}

func choiceOf(p *serving.Plan, c serving.Choice) Choice {
	o, r := c.Outcome, c.Outcome.Rule
	x := Choice{Offer: c.Name(), Rule: r.Kind, Batch: r.Batch, Wait: r.Wait.Seconds(), Min: r.Min, Max: r.Max,
		WarmMin: r.WarmMin, Meets: "no", Mean: o.Mean.Seconds(), Requests: o.Requests, Batches: o.Batches,
		Colds: o.Colds, Copies: c.Engine.Slots, Currency: money.USD, Machines: c.Machines, Egress: c.Egress,
		Estimated: c.Engine.Fast != nil, p99: o.Quantiles[990], p50: o.Quantiles[500], rule: r}
	switch {
	case c.Met && c.Sure:
		x.Meets = "yes"
	case c.Met:
		x.Meets = "uncertain"
	}
	for q, to := range map[int]*float64{500: &x.P50, 900: &x.P90, 950: &x.P95, 990: &x.P99, 999: &x.P999} {
		*to = o.Quantiles[q].Seconds()
	}
	if r.WarmMin > 0 {
		x.Warm = strings.TrimSuffix(r.Warm.String(), " UTC")
	}
	if l := c.Listing; l != nil {
		x.Provider, x.Region, x.Machine = l.Offer.Provider, l.Offer.Region, l.Offer.Machine
		x.Accelerator, x.Count = l.Offer.Accelerator, l.Offer.Accelerators
		x.Source = l.Quote.Source
		if at := l.Quote.At; !at.IsZero() {
			x.At = &at
		}
		if idle, ok := o.Idle(); ok {
			x.Idle = &idle
		}
	} else {
		x.Source, x.cold = c.Function.Source, c.Function.Cold
	}
	if f := c.Engine.Fit; f != nil {
		x.Format, x.Shards, x.Needs, x.Have, x.Weights = f.Format.Name, f.Shards, &f.Need, &f.Have, &f.Weights
	}
	if c.Complete {
		x.Total = &c.Total
	}
	x.Each = c.Total.Over(o.Requests)
	x.tokens(p, c)
	return x
}

// tokens divides the total by the tokens of the trace, which a model that reads none does not process.
func (x *Choice) tokens(p *serving.Plan, c serving.Choice) {
	in, out, ok := p.Ask.Trace.Tokens()
	if m := p.Ask.Model; !ok || m != nil && (!m.Text() || m.Image) {
		return
	}
	of := func(sum money.Amount, n int64) *money.Amount {
		if v, ok := serving.PerMillion(sum, n); ok {
			return &v
		}
		return nil
	}
	x.Tokens = of(c.Total, in+out)
	if prompt, decode, ok := simulation.Split(c.Total, p.Ask.Trace, c.Engine.Service, c.Outcome); ok {
		x.Input, x.Output = of(prompt, in), of(decode, out)
	}
}

// rangeOf adds the p99 at both ends of an estimate.
func (x *Choice) rangeOf(p *serving.Plan, c serving.Choice) {
	r, ok := p.Range(c)
	if !ok {
		return
	}
	x.ranged = true
	for _, end := range []struct {
		o  *simulation.Outcome
		to **float64
	}{{r.Fast, &x.FastP99}, {r.Slow, &x.SlowP99}} {
		if end.o != nil {
			s := end.o.Quantiles[990].Seconds()
			*end.to = &s
		}
	}
}
