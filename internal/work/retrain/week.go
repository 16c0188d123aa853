package retrain

import (
	"fmt"
	"math/big"
	"time"

	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
)

// Run is a run of a schedule for a weekly comparison: one that started, or Skipped that did not.
type Run struct {
	Due      time.Time // market time
	Skipped  int
	Cost     money.Amount
	Open     bool          // Cost is not final
	OnDemand *money.Amount // what its work would have cost on on-demand machines; nil: unknown
	Value    string        // of the metric of when_it_pays; "": the run has none
}

// Week sums up the runs that were due in a week.
type Week struct {
	Begin         time.Time // its Monday, 00:00 UTC
	Runs, Skipped int
	Cost          money.Amount
	Open          bool
	OnDemand      *money.Amount // nil: unknown for some run
	// Gain is that of the last value of the week over the last value before it, or over the first value of all in the week
	// that has it; "": unknown.
	Gain string
}

// Weeks sums up runs, in the order of their due times, by week. It leaves out weeks without any.
func Weeks(list []Run, minimize bool) (weeks []Week) {
	var before, last *big.Rat // values before the week and so far
	for _, r := range list {
		begin := monday(r.Due)
		if len(weeks) == 0 || !weeks[len(weeks)-1].Begin.Equal(begin) {
			weeks = append(weeks, Week{Begin: begin, OnDemand: &money.Amount{}})
			before = last
		}
		w := &weeks[len(weeks)-1]
		if r.Skipped > 0 {
			w.Skipped += r.Skipped
			continue
		}
		w.Runs++
		w.Cost, w.Open = w.Cost.Add(r.Cost), w.Open || r.Open
		if r.OnDemand == nil {
			w.OnDemand = nil
		} else if w.OnDemand != nil {
			w.OnDemand = new(w.OnDemand.Add(*r.OnDemand))
		}
		if v := decimal(r.Value); v != nil {
			if last = v; before == nil { // there is nothing to compare the first value with
				before = v
			} else {
				gain := new(big.Rat).Sub(v, before)
				if minimize {
					gain.Neg(gain)
				}
				w.Gain = shown(gain)
			}
		}
	}
	return weeks
}

// monday returns the beginning of the week of a time, in UTC.
func monday(t time.Time) time.Time {
	y, m, d := t.UTC().Date()
	back := (int(t.UTC().Weekday()) + 6) % 7
	return time.Date(y, m, d-back, 0, 0, 0, 0, time.UTC)
}

// Text compares the week in a sentence: cost, on-demand equivalent, and the gain of a metric; metric "": no gain is of
// interest.
func (w *Week) Text(metric string, currency money.Currency) string {
	text := fmt.Sprintf("%s, %d skipped, cost %s", draw.Count(w.Runs, "run"), w.Skipped, money.Format(w.Cost, currency, 4))
	if w.Open {
		text += " so far"
	}
	if w.OnDemand != nil && w.Runs > 0 {
		text += fmt.Sprintf("; on-demand it would be %s", money.Format(*w.OnDemand, currency, 4))
	}
	if metric != "" && w.Gain != "" {
		text += fmt.Sprintf("; %s gained %s", metric, w.Gain)
	}
	return "week of " + w.Begin.UTC().Format("2 January") + ": " + text
}
