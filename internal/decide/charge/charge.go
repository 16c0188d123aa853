// Package charge turns the ledger's postings into charges: what was bought, in which period, for how much, and what
// became of it. The ledger books a cost as open and moves it once its use is known; a charge says only what is left.
package charge

import (
	"time"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// Charge is a cost of one period, price and use. Charges of a span of time add up to its postings exactly, by owner,
// currency, category and use.
type Charge struct {
	Begin, End time.Time // in UTC, within one month
	Amount     money.Amount
	Currency   money.Currency
	Category   ledger.Category
	Use        ledger.Use
	Phase      ledger.Phase
	Rule       string

	Provider, Region, Zone, SKU string

	Time      time.Duration // of machine time; means nothing unless Timed
	Timed     bool
	Price     ledger.Price // of an hour of Time
	ListPrice ledger.Price
	// Corrects says that the amount belongs to charges of before: a price that came late, or a credit.
	Corrects bool

	Owner ledger.Owner
	Source
}

// Source is what is known of a posting beyond the posting itself.
type Source struct {
	User         string
	Kind         string          // of the job
	Name         string          // of the job, which its other runs may share
	Planned      bool            // somebody approved the job, or gave it the tag planned
	Capacity     market.Capacity // "": nobody knows
	Accelerators int             // of the machine
	Work         float64         // hours of work, on a machine of speed 1, that a useful hour does; 0: unknown
	Billed       bool            // the provider's bill of this machine time has come
	Shared       bool            // the machine had several tasks, and this is one's part
	// Part of Whole is the share of the machine's cost; 0 of 0: unknown, or all of it.
	Part, Whole int64
}

// Span is a part of time. The zero Until is no end.
type Span struct{ Since, Until time.Time }

// Has reports whether the moment is in the span.
func (s Span) Has(t time.Time) bool {
	return !t.Before(s.Since) && (s.Until.IsZero() || t.Before(s.Until))
}

// Month is the first moment of the month of t, by UTC.
func Month(t time.Time) time.Time {
	t = t.UTC()
	return time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC)
}

// NextMonth is the first moment of the month after that of t.
func NextMonth(t time.Time) time.Time { return Month(t).AddDate(0, 1, 0) }

// part is a posting's time and money between two cuts.
type part struct {
	begin, end time.Time
	amount     money.Amount
}

// cut cuts a posting at the ends of months and of the span, and keeps what is in the span. A posting without a period
// is in the hour of its booking.
func (s Span) cut(p *ledger.Posting) (list []part, timed bool) {
	if !p.End.After(p.Begin) {
		at := p.At
		if !p.Begin.IsZero() {
			at = p.Begin
		}
		if !s.Has(at) {
			return nil, false
		}
		hour := at.UTC().Truncate(time.Hour)
		return []part{{hour, hour.Add(time.Hour), p.Amount}}, false
	}
	whole := p.End.Sub(p.Begin)
	done := money.Amount{}
	for begin := p.Begin.UTC(); begin.Before(p.End); {
		end := p.End.UTC()
		for _, at := range []time.Time{NextMonth(begin), s.Since, s.Until} {
			if at.After(begin) && at.Before(end) {
				end = at.UTC()
			}
		}
		upTo := share(p.Amount, end.Sub(p.Begin), whole)
		if s.Has(begin) {
			list = append(list, part{begin, end, upTo.Sub(done)})
		}
		begin, done = end, upTo
	}
	return list, true
}
