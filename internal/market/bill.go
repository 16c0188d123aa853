package market

import (
	"time"

	"scrimp/internal/lib/money"
)

// Segment is a price from a point in time on.
type Segment struct {
	From time.Time  `json:"from"`
	Rate money.Rate `json:"rate"` // per hour
}

// Cost returns the cost by t of a span that starts with the first segment. It is a difference of cumulative costs over
// the price segments, so every division of the span has exactly the same sum.
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
	Rule   string // empty for plain seconds
	From   time.Time
	To     time.Time
	Amount money.Amount
}

// Rules with lines of their own.
const (
	RuleMinimum          = "minimum"
	RuleInterruptedEarly = "interrupted-early"
)

// Bill returns the lines for a span that ended at end: its plain seconds, and each billing rule that applies.
// interrupted means that the provider reclaimed the machine.
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

// Piece is a part of a span with one price.
type Piece struct {
	Begin, End time.Time
	Rate       money.Rate // per hour
	Amount     money.Amount
}

// Pieces splits the cost of a span between two times at each price change. Each amount is a difference of cumulative
// costs, so the pieces add up exactly.
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
