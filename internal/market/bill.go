package market

import (
	"time"

	"scrimp/internal/lib/money"
)

// Segment is a price from a time on.
type Segment struct {
	From time.Time  `json:"from"`
	Rate money.Rate `json:"rate"` // of an hour
}

// Cost returns what a span that begins with the first segment has cost by t:
// the cumulative cost over its price segments, so that any cut of the span has
// the same sum exactly.
func Cost(segments []Segment, t time.Time) money.Amount {
	var sum money.Amount
	for i, s := range segments {
		end := t
		if i+1 < len(segments) && segments[i+1].From.Before(t) {
			end = segments[i+1].From
		}
		if end.After(s.From) {
			sum = sum.Add(s.Rate.Until(end.Sub(s.From)))
		}
	}
	return sum
}

// Line is one line of a bill. Credits are negative.
type Line struct {
	Rule   string // "" for plain seconds
	From   time.Time
	To     time.Time
	Amount money.Amount
}

// The rules that make lines of their own.
const (
	RuleMinimum          = "minimum"
	RuleInterruptedEarly = "interrupted-early"
)

// Bill returns the lines for a span that ended at end: its plain seconds, and
// each billing rule that applies. interrupted says that the provider reclaimed the machine.
func Bill(rules Billing, segments []Segment, end time.Time, interrupted bool) []Line {
	if len(segments) == 0 {
		return nil
	}
	from := segments[0].From
	plain := Cost(segments, end)
	lines := []Line{{From: from, To: end, Amount: plain}}
	whole := plain
	if low := from.Add(rules.Minimum); end.Before(low) {
		more := Cost(segments, low).Sub(plain)
		lines = append(lines, Line{Rule: RuleMinimum, From: end, To: low, Amount: more})
		whole = whole.Add(more)
	}
	if interrupted && end.Sub(from) < rules.FreeIfInterruptedWithin {
		lines = append(lines, Line{Rule: RuleInterruptedEarly, From: from, To: end, Amount: whole.Neg()})
	}
	return lines
}
