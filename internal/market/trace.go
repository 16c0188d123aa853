package market

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"scrimp/internal/money"
)

// Trace is a market over time: for each offer its prices and when it can be
// had, in market time since the market opened.
type Trace struct {
	Name     string         `json:"name"`
	Currency money.Currency `json:"currency"`
	Speed    float64        `json:"speed"`               // market seconds a wall second
	Repeat   time.Duration  `json:"repeat_ns,omitempty"` // the trace begins again after this long; 0: its last state stays
	Lines    []TraceLine    `json:"lines"`
}

// TraceLine is one offer in a trace.
type TraceLine struct {
	Offer Offer   `json:"offer"`
	Price []Price `json:"price"`
	// Available are the spans in which it can be had; nil is always. When a span
	// of spot ends, its machines are taken.
	Available []Span `json:"available,omitempty"`
}

// Price is what an hour costs from At on.
type Price struct {
	At   time.Duration `json:"at_ns"`
	Rate money.Rate    `json:"rate"`
}

// Span is a time in which an offer can be had, with the notice given before it
// ends, in wall time; 0 is none.
type Span struct {
	From   time.Duration `json:"from_ns"`
	To     time.Duration `json:"to_ns"`
	Notice time.Duration `json:"notice_ns"`
}

// Validate returns the first thing that is wrong, by offer and field, with its mend.
func (t Trace) Validate() error {
	switch {
	case t.Speed <= 0 || t.Speed > 1e6:
		return fmt.Errorf("speed: %v is not between 0 and 1,000,000: write 1 for real time", t.Speed)
	case t.Repeat < 0:
		return fmt.Errorf("repeat: %v is negative: leave it out for a market that does not repeat", t.Repeat)
	case len(t.Lines) == 0:
		return fmt.Errorf("offers: none: a market sells something")
	}
	seen := map[OfferID]bool{}
	for _, l := range t.Lines {
		if seen[l.Offer.ID] {
			return fmt.Errorf("offers: %s stands twice: put its prices and spans into one", l.Offer.ID)
		}
		seen[l.Offer.ID] = true
		if err := l.validate(t.Repeat); err != nil {
			return fmt.Errorf("offer %s: %w", l.Offer.ID, err)
		}
	}
	return nil
}

func (l TraceLine) validate(repeat time.Duration) error {
	o := l.Offer
	switch {
	case o.Zone == "":
		return fmt.Errorf("zone: missing: name the zone it is in")
	case o.Machine == "":
		return fmt.Errorf("machine: missing: name the machine type")
	case o.Capacity != Spot && o.Capacity != OnDemand && o.Capacity != Reserved:
		return fmt.Errorf("capacity: %q is none of spot, on-demand, reserved", o.Capacity)
	case o.CPUs <= 0:
		return fmt.Errorf("cpus: %d is not positive", o.CPUs)
	case o.Memory <= 0:
		return fmt.Errorf("memory: missing: give it with its unit, such as 8GiB")
	case o.Notice < 0, o.Boot < 0, o.MaxLifetime < 0, o.Billing.Minimum < 0, o.Billing.FreeIfInterruptedWithin < 0:
		return fmt.Errorf("a span is negative")
	case len(l.Price) == 0:
		return fmt.Errorf("price: missing: an unknown price is not zero")
	case l.Price[0].At != 0:
		return fmt.Errorf("price: the first is at %v: begin at 0s", l.Price[0].At)
	case o.Capacity != Spot && len(l.Available) > 0:
		return fmt.Errorf("available: only spot comes and goes: leave it out")
	}
	for i, p := range l.Price {
		if p.Rate <= 0 {
			return fmt.Errorf("price: %v at %v is not above zero", p.Rate, p.At)
		}
		if i > 0 && p.At <= l.Price[i-1].At {
			return fmt.Errorf("price: %v does not come after %v", p.At, l.Price[i-1].At)
		}
	}
	for i, s := range l.Available {
		switch {
		case s.From < 0 || s.To <= s.From:
			return fmt.Errorf("available: the span from %v to %v ends before it begins", s.From, s.To)
		case s.Notice < 0:
			return fmt.Errorf("available: the notice of %v is negative", s.Notice)
		case i > 0 && s.From < l.Available[i-1].To:
			return fmt.Errorf("available: the span from %v overlaps the one before it", s.From)
		case repeat > 0 && s.To > repeat:
			return fmt.Errorf("available: the span to %v goes past the repetition after %v", s.To, repeat)
		}
	}
	return nil
}

// Line returns the offer's line.
func (t Trace) Line(id OfferID) (TraceLine, bool) {
	i := slices.IndexFunc(t.Lines, func(l TraceLine) bool { return l.Offer.ID == id })
	if i < 0 {
		return TraceLine{}, false
	}
	return t.Lines[i], true
}

// fold returns the time within the trace and when its present turn began.
func (t Trace) fold(at time.Duration) (within, turn time.Duration) {
	if t.Repeat <= 0 || at < 0 {
		return max(at, 0), 0
	}
	return at % t.Repeat, at - at%t.Repeat
}

// Quote is the offer's price and availability at a time since the market opened;
// At of the quote is counted from opened.
func (t Trace) Quote(l TraceLine, at time.Duration, opened time.Time) Quote {
	within, turn := t.fold(at)
	q := Quote{Offer: l.Offer.ID, Priced: true, Available: len(l.Available) == 0, At: opened, Source: "trace " + t.Name}
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
	return q
}

// Prices returns the price segments from a time on until another.
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

// Loss returns when a machine that is rented at a time will be taken, and with
// how much notice; false where it never is.
func (t Trace) Loss(l TraceLine, at time.Duration) (lost, notice time.Duration, ok bool) {
	if l.Offer.MaxLifetime > 0 {
		lost, notice, ok = at+l.Offer.MaxLifetime, l.Offer.Notice, true
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
