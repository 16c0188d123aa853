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

// Piece is a part of a span that had one price.
type Piece struct {
	Begin, End time.Time
	Rate       money.Rate // of an hour
	Amount     money.Amount
}

// Pieces cuts what a span cost between two times at each new price. Each amount is the difference of what the span
// had cost by its two ends, so that they add up to that of from and to exactly.
func Pieces(segments []Segment, from, to time.Time) (list []Piece) {
	for i, s := range segments {
		begin, end := s.From, to
		if begin.Before(from) {
			begin = from
		}
		if i+1 < len(segments) && segments[i+1].From.Before(to) {
			end = segments[i+1].From
		}
		if end.After(begin) {
			amount := s.Rate.Until(end.Sub(s.From)).Sub(s.Rate.Until(begin.Sub(s.From)))
			list = append(list, Piece{Begin: begin, End: end, Rate: s.Rate, Amount: amount})
		}
	}
	return list
}
