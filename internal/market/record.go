package market

import (
	"slices"
	"time"

	"scrimp/internal/lib/money"
)

// Recorder turns what was seen of a market into a trace. What is not quoted
// again stays as it was; a look that did not say whether an offer could be had
// tells its price only.
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
	spans []struct{ from, to time.Time } // to is zero for the one that is open
}

// Offer takes in what is for sale, or a newer description of it.
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

// Quote takes in a quote of an offer that was described before.
func (r *Recorder) Quote(q Quote) {
	l := r.lines[q.Offer]
	if l == nil || q.At.IsZero() {
		return
	}
	if r.first.IsZero() || q.At.Before(r.first) {
		r.first = q.At
	}
	r.Until(q.At)
	if n := len(l.prices); q.Priced && (n == 0 || l.prices[n-1].rate != q.Rate && !q.At.Before(l.prices[n-1].at)) {
		l.prices = append(l.prices, struct {
			at   time.Time
			rate money.Rate
		}{q.At, q.Rate})
	}
	if q.Untried {
		return
	}
	n := len(l.spans)
	open := n > 0 && l.spans[n-1].to.IsZero()
	switch {
	case q.Available && !open:
		l.spans = append(l.spans, struct{ from, to time.Time }{from: q.At})
	case !q.Available && open:
		l.spans[n-1].to = q.At
	}
}

// Until says that the market was watched until then.
func (r *Recorder) Until(t time.Time) {
	if t.After(r.last) {
		r.last = t
	}
}

// Trace is what was seen, from the first quote on, and when that was. Offers that
// never had a price are left out. The last state stays.
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
				at = 0 // before, it stood at what it was first seen at
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
