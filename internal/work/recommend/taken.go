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
	// Series lists the recurring jobs that ran on too large machines, for the smaller machine.
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

// UnitsOf returns what the cost of a recommendation is compared by; "": there is no such recommendation.
func UnitsOf(name string) Units {
	switch name {
	case "idle stop", "checkpoint interval":
		return UsefulTime
	case "spot share", "commitment":
		return UsefulList
	case "window":
		return ListPrice
	case "smaller machine":
		return Run
	case "retention", "smaller reservation":
		return Elapsed
	}
	return ""
}

// concerns reports whether a recommendation concerns a cost, and whether the cost counts as units too.
func (t *Taken) concerns(c *Cost, j Job) (cost, unit bool) {
	ran := c.Job != "" && c.Time > 0
	useful := ran && c.Use == Useful
	switch t.Name {
	case "idle stop":
		waits := c.Job == "" && c.Use == Idle && c.Time > 0 && !c.Reserved && !c.Due
		return waits || ran && c.Use == StartUp, useful
	case "checkpoint interval":
		mine := c.Capacity == Spot && j.Saves
		return mine && ran && c.Use == Lost, mine && useful
	case "spot share":
		mine := ran && j.Saves && c.Listed && c.Use != Open
		return mine, mine && useful
	case "commitment":
		return ran && c.Listed && c.Use != Open || c.Reserved, useful && c.Listed
	case "window":
		mine := ran && c.Capacity == Spot && !j.Deadline && c.Listed
		return mine, mine
	case "smaller machine":
		mine := ran && slices.Contains(t.Series, c.Series)
		return mine, mine
	case "retention":
		return c.Storage, false
	case "smaller reservation":
		return c.Reserved && c.Use == Idle, false
	}
	return false, false
}

// measure adds up what a recommendation concerns between two times, and its units.
func (t *Taken) measure(costs []Cost, jobs map[string]Job, from, until time.Time) (sum money.Amount, units *big.Int) {
	units = new(big.Int)
	runs := map[string]bool{}
	by := UnitsOf(t.Name)
	for i := range costs {
		c := &costs[i]
		if c.Begin.Before(from) || !c.Begin.Before(until) {
			continue
		}
		cost, unit := t.concerns(c, jobs[c.Job])
		if cost {
			sum = sum.Add(c.Amount)
		}
		switch {
		case !unit:
		case by == UsefulTime:
			units.Add(units, big.NewInt(int64(c.Time)))
		case by == Run:
			runs[c.Job] = true
		default:
			units.Add(units, c.List.Big())
		}
	}
	switch by {
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
			o.Saved = new(pace.Sub(cost))
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
