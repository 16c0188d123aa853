package market

import "time"

// Next returns when the offer's price or availability changes next after a time
// since the market opened; false where it never does.
func (t Trace) Next(l TraceLine, at time.Duration) (time.Duration, bool) {
	if l.Reserved.Count > 0 {
		return l.Reserved.next(at)
	}
	within, turn := t.fold(at)
	first, next := time.Duration(-1), time.Duration(-1) // of a turn, and after at; -1: none
	see := func(d time.Duration) {
		if t.Repeat > 0 && d >= t.Repeat {
			d = 0 // where the turn ends the next begins
		}
		if first < 0 || d < first {
			first = d
		}
		if d > within && (next < 0 || d < next) {
			next = d
		}
	}
	for _, p := range l.Price {
		see(p.At)
	}
	for _, s := range l.Available {
		see(s.From)
		see(s.To)
	}
	switch {
	case next >= 0:
		return turn + next, true
	case t.Repeat > 0 && first >= 0 && l.varies():
		return turn + t.Repeat + first, true
	}
	return 0, false
}

// varies reports whether the offer changes at all within a turn.
func (l *TraceLine) varies() bool { return len(l.Price) > 1 || len(l.Available) > 0 }

// next is when the reservation begins or ends.
func (r Term) next(at time.Duration) (time.Duration, bool) {
	for _, edge := range []time.Duration{r.From, r.To} {
		if edge > at {
			return edge, true
		}
	}
	return 0, false
}
