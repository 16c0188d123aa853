package market

import (
	"slices"
	"time"

	"scrimp/internal/lib/money"
)

// Recorder builds a trace from observations of a market. An offer stays unchanged until its next quote; a quote without
// known availability updates only the price.
type Recorder struct {
	lines map[OfferID]*recorded
	order []OfferID
	first time.Time
	last  time.Time
}

type recorded struct {
	offer  Offer
	prices []struct {
		at   time.Time
		rate money.Rate
	}
	spans []struct{ from, to time.Time } // to is zero for the open span
}

// Offer adds an offer, or updates its description.
func (r *Recorder) Offer(o Offer) {
	if r.lines == nil {
		r.lines = map[OfferID]*recorded{}
	}
	if l := r.lines[o.ID]; l != nil {
		l.offer = o
		return
	}
	r.lines[o.ID] = &recorded{offer: o}
	r.order = append(r.order, o.ID)
}

// Quote adds a quote of a known offer. It returns what the quote has changed: the price, the availability or neither.
// The same offers with the changes alone give the same trace, over the same span.
func (r *Recorder) Quote(q Quote) (changed Quote) {
	changed = Quote{Offer: q.Offer, At: q.At, Untried: true}
	l := r.lines[q.Offer]
	if l == nil || q.At.IsZero() {
		return changed
	}
	r.Since(q.At)
	r.Until(q.At)
	if n := len(l.prices); q.Priced && (n == 0 || l.prices[n-1].rate != q.Rate && !q.At.Before(l.prices[n-1].at)) {
		l.prices = append(l.prices, struct {
			at   time.Time
			rate money.Rate
		}{q.At, q.Rate})
		changed.Priced, changed.Rate = true, q.Rate
	}
	if q.Untried {
		return changed
	}
	n := len(l.spans)
	open := n > 0 && l.spans[n-1].to.IsZero()
	switch {
	case q.Available && !open:
		l.spans = append(l.spans, struct{ from, to time.Time }{from: q.At})
		changed.Untried, changed.Available = false, true
	case !q.Available && open:
		l.spans[n-1].to = q.At
		changed.Untried = false
	}
	return changed
}

// Since records that the market was observed from t on.
func (r *Recorder) Since(t time.Time) {
	if r.first.IsZero() || t.Before(r.first) {
		r.first = t
	}
}

// Span returns the first and the last moment of the observations; zero: none.
func (r *Recorder) Span() (first, last time.Time) { return r.first, r.last }

// Until records that the market was observed until t.
func (r *Recorder) Until(t time.Time) {
	if t.After(r.last) {
		r.last = t
	}
}

// Trace returns the recorded trace from the first quote on, and the time of that quote. It omits offers that never had
// a price. The last state stays.
func (r *Recorder) Trace(name string) (Trace, time.Time) {
	t := Trace{Name: name, Speed: 1}
	slices.Sort(r.order)
	for _, id := range r.order {
		l := r.lines[id]
		if len(l.prices) == 0 {
			continue
		}
		line := TraceLine{Offer: l.offer}
		t.Currency = l.offer.Currency
		for i, p := range l.prices {
			at := p.at.Sub(r.first)
			if i == 0 {
				at = 0 // before, it had its first observed price
			}
			if n := len(line.Price); n > 0 && line.Price[n-1].At == at {
				line.Price[n-1].Rate = p.rate
				continue
			}
			line.Price = append(line.Price, Price{At: at, Rate: p.rate})
		}
		if l.offer.Capacity == Spot {
			line.Available = []Span{}
			for _, s := range l.spans {
				to := s.to
				if to.IsZero() {
					to = r.last.Add(time.Second)
				}
				if to.After(s.from) {
					line.Available = append(line.Available, Span{From: s.from.Sub(r.first), To: to.Sub(r.first),
						Notice: l.offer.Notice})
				}
			}
		}
		t.Lines = append(t.Lines, line)
	}
	return t, r.first
}
