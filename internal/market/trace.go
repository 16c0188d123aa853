package market

import (
	"cmp"
	"slices"
	"time"

	"scrimp/internal/lib/money"
)

// Trace is a market over time: the prices and the availability of each offer, in market time since the market opened.
type Trace struct {
	Name     string         `json:"name"`
	Currency money.Currency `json:"currency"`
	Speed    float64        `json:"speed"`               // market seconds per wall second
	Repeat   time.Duration  `json:"repeat_ns,omitempty"` // the trace repeats after this time; 0 keeps its last state
	Lines    []TraceLine    `json:"lines"`
}

// TraceLine is one offer in a trace.
type TraceLine struct {
	Offer Offer   `json:"offer"`
	Price []Price `json:"price"`
	// Available holds the periods in which the offer is available; nil means always, and empty means never. When a spot
	// period ends, its machines are interrupted.
	Available []Span `json:"available,omitzero"`
	// Reserved is the prepaid part. It does not repeat with the trace.
	Reserved Term `json:"reserved,omitzero"`
}

// Price is the hourly price from At on.
type Price struct {
	At   time.Duration `json:"at_ns"`
	Rate money.Rate    `json:"rate"`
}

// Span is a period in which an offer is available, with the notice before its end in wall time; 0 for none.
type Span struct {
	From   time.Duration `json:"from_ns"`
	To     time.Duration `json:"to_ns"`
	Notice time.Duration `json:"notice_ns"`
}

// Line returns the offer's line.
func (t Trace) Line(id OfferID) (TraceLine, bool) {
	i := slices.IndexFunc(t.Lines, func(l TraceLine) bool { return l.Offer.ID == id })
	if i < 0 {
		return TraceLine{}, false
	}
	return t.Lines[i], true
}

// fold returns the time within the trace and the start of the current repetition.
func (t Trace) fold(at time.Duration) (within, turn time.Duration) {
	if t.Repeat <= 0 || at < 0 {
		return max(at, 0), 0
	}
	return at % t.Repeat, at - at%t.Repeat
}

// Quote returns the offer's price and availability at a time since the market opened; the quote's At is relative to
// opened.
func (t Trace) Quote(l TraceLine, at time.Duration, opened time.Time) Quote {
	within, turn := t.fold(at)
	q := Quote{Offer: l.Offer.ID, Priced: true, Available: l.Available == nil, At: opened, Source: "trace " + t.Name}
	since := time.Duration(0)
	for _, p := range l.Price {
		if p.At > within {
			break
		}
		q.Rate, since = p.Rate, p.At
	}
	for _, s := range l.Available {
		if s.From <= within && within < s.To {
			q.Available = true
			since = max(since, s.From)
		}
		if s.To <= within {
			since = max(since, s.To)
		}
	}
	q.At = opened.Add(turn + since)
	if r := l.Reserved; r.Count > 0 {
		q.Available, q.Rate = r.From <= at && at < r.To, r.Rate()
		for _, edge := range []time.Duration{r.From, r.To} {
			if at >= edge {
				q.At = opened.Add(edge)
			}
		}
	}
	return q
}

// Prices returns the price segments between two times.
func (t Trace) Prices(l TraceLine, from, to time.Duration, opened time.Time) []Segment {
	segments := []Segment{{From: opened.Add(from), Rate: t.Quote(l, from, opened).Rate}}
	_, turn := t.fold(from)
	for ; turn < to; turn += cmp.Or(t.Repeat, to-turn+1) {
		for _, p := range l.Price {
			if at := turn + p.At; at > from && at < to && segments[len(segments)-1].Rate != p.Rate {
				segments = append(segments, Segment{From: opened.Add(at), Rate: p.Rate})
			}
		}
		if t.Repeat <= 0 {
			break
		}
	}
	return segments
}

// Loss returns when a machine rented at a time will be interrupted, and with how much notice. It returns false if
// never.
func (t Trace) Loss(l TraceLine, at time.Duration) (lost, notice time.Duration, ok bool) {
	if l.Offer.MaxLifetime > 0 {
		lost, notice, ok = at+l.Offer.MaxLifetime, l.Offer.Notice, true
	}
	if r := l.Reserved; r.Count > 0 && at < r.To && (!ok || r.To < lost) {
		lost, notice, ok = r.To, l.Offer.Notice, true
	}
	within, turn := t.fold(at)
	for _, s := range l.Available {
		if s.From <= within && within < s.To {
			if end := turn + s.To; !ok || end < lost {
				return end, s.Notice, true
			}
		}
	}
	return lost, notice, ok
}
