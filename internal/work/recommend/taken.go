package recommend

import (
	"math/big"
	"slices"
	"time"

	"scrimp/internal/lib/money"
)

// Month is how long a recommendation that was taken is measured, and how far back it is compared.
const Month = 30 * 24 * time.Hour

// leastSpan is how long costs must be known before a saving is scaled to a month.
const leastSpan = 24 * time.Hour

// Taken is a recommendation that somebody follows.
type Taken struct {
	Name     string         `json:"name"`
	Team     string         `json:"team,omitempty"` // "": all teams
	Currency money.Currency `json:"currency"`
	// Alone is what it alone would have saved of the costs within Span, which ends when it was taken; nil: unknown.
	Alone *money.Amount `json:"alone"`
	Span  time.Duration `json:"span"` // at most a month
	// Series lists the recurring jobs that it concerns, if it is compared by a run.
	Series []string `json:"series,omitempty"`
}

// Outcome compares what a recommendation was expected to save with what it has saved.
type Outcome struct {
	Days     float64       // measured since it was taken, at most 30
	Over     bool          // the month has passed
	Monthly  *money.Amount // expected in a month; nil: unknown
	Expected *money.Amount // expected within the measured days; nil: unknown
	Before   money.Amount  // cost that it concerns, within Span before
	Cost     money.Amount  // the same since
	// Saved is what Cost would be at the earlier cost of a unit, less Cost; nil: there was no unit before or since.
	Saved *money.Amount
}

// Units is what a recommendation's cost is compared by.
type Units string

// The units.
const (
	UsefulTime Units = "an hour of useful machine time"
	UsefulList Units = "a dollar of useful machine time at the on-demand price"
	ListPrice  Units = "a dollar of machine time at the on-demand price"
	Run        Units = "a run"
	Elapsed    Units = "an hour"
)

// pool is the costs that a recommendation concerns. units is nil where the time is what counts.
type pool struct {
	by    Units
	cost  func(t *Taken, c *Cost, j Job) bool
	units func(t *Taken, c *Cost, j Job) bool
}

func ran(c *Cost) bool    { return c.Job != "" && c.Time > 0 }
func useful(c *Cost) bool { return ran(c) && c.Use == Useful }

// settled is machine time whose use and on-demand price are known.
func settled(c *Cost) bool { return ran(c) && c.Listed && c.Use != Open }

// pools holds the costs of each recommendation.
var pools = map[string]pool{
	"idle stop": {UsefulTime, func(_ *Taken, c *Cost, _ Job) bool {
		waits := c.Job == "" && c.Use == Idle && c.Time > 0 && !c.Reserved && !c.Due
		return waits || ran(c) && c.Use == StartUp
	}, func(_ *Taken, c *Cost, _ Job) bool { return useful(c) }},
	"checkpoint interval": {UsefulTime, func(_ *Taken, c *Cost, j Job) bool {
		return ran(c) && c.Use == Lost && c.Capacity == Spot && j.Saves
	}, func(_ *Taken, c *Cost, j Job) bool { return useful(c) && c.Capacity == Spot && j.Saves }},
	"spot share": {UsefulList, func(_ *Taken, c *Cost, j Job) bool { return settled(c) && j.Saves },
		func(_ *Taken, c *Cost, j Job) bool { return useful(c) && c.Listed && j.Saves }},
	"commitment": {UsefulList, func(_ *Taken, c *Cost, _ Job) bool { return settled(c) || c.Reserved },
		func(_ *Taken, c *Cost, _ Job) bool { return useful(c) && c.Listed }},
	"window":              {ListPrice, inWindow, inWindow},
	SmallerMachine:        {Run, (*Taken).ofSeries, (*Taken).ofSeries},
	MixedPrecision:        {Run, (*Taken).ofSeries, (*Taken).ofSeries},
	"retention":           {by: Elapsed, cost: func(_ *Taken, c *Cost, _ Job) bool { return c.Storage }},
	"smaller reservation": {by: Elapsed, cost: func(_ *Taken, c *Cost, _ Job) bool { return c.Reserved && c.Use == Idle }},
}

func inWindow(_ *Taken, c *Cost, j Job) bool {
	return ran(c) && c.Capacity == Spot && !j.Deadline && c.Listed
}

func (t *Taken) ofSeries(c *Cost, _ Job) bool { return ran(c) && slices.Contains(t.Series, c.Series) }

// UnitsOf returns what the cost of a recommendation is compared by; "": there is no such recommendation.
func UnitsOf(name string) Units { return pools[name].by }

// measure adds up what a recommendation concerns between two times, and its units.
func (t *Taken) measure(costs []Cost, jobs map[string]Job, from, until time.Time) (sum money.Amount, units *big.Int) {
	units = new(big.Int)
	runs := map[string]bool{}
	of, known := pools[t.Name]
	if !known {
		return sum, units
	}
	for i := range costs {
		c := &costs[i]
		if c.Begin.Before(from) || !c.Begin.Before(until) {
			continue
		}
		if of.cost(t, c, jobs[c.Job]) {
			sum = sum.Add(c.Amount)
		}
		switch {
		case of.units == nil || !of.units(t, c, jobs[c.Job]):
		case of.by == UsefulTime:
			units.Add(units, big.NewInt(int64(c.Time)))
		case of.by == Run:
			runs[c.Job] = true
		default:
			units.Add(units, c.List.Big())
		}
	}
	switch of.by {
	case Run:
		units.SetInt64(int64(len(runs)))
	case Elapsed:
		units.SetInt64(int64(until.Sub(from)))
	default: // added up above
	}
	return sum, units
}

// Measure compares the costs since a recommendation was taken, for at most a month, with those before. Costs are those
// of its team and currency; each lies on one side of the time.
func Measure(t *Taken, at, now time.Time, costs []Cost, jobs map[string]Job) Outcome {
	end := at.Add(Month)
	o := Outcome{Over: !now.Before(end)}
	if !o.Over {
		end = now
	}
	span := max(0, end.Sub(at))
	o.Days = span.Hours() / 24
	if t.Span >= leastSpan {
		o.Monthly, o.Expected = scaled(t.Alone, Month, t.Span), scaled(t.Alone, span, t.Span)
	}
	before, then := t.measure(costs, jobs, at.Add(-t.Span), at)
	cost, since := t.measure(costs, jobs, at, end)
	o.Before, o.Cost = before, cost
	if then.Sign() > 0 && since.Sign() > 0 {
		n := since.Mul(since, before.Big())
		if pace, ok := money.FromBig(n.Quo(n, then)); ok {
			saved := pace.Sub(cost)
			o.Saved = &saved
		}
	}
	return o
}

// scaled returns a · to / from, cut off at 1e-12; nil: it is unknown.
func scaled(a *money.Amount, to, from time.Duration) *money.Amount {
	if a == nil || from <= 0 {
		return nil
	}
	n := new(big.Int).Mul(a.Big(), big.NewInt(int64(to)))
	if v, ok := money.FromBig(n.Quo(n, big.NewInt(int64(from)))); ok {
		return &v
	}
	return nil
}
