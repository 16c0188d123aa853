// Package charge turns the ledger's postings into charges: what was bought, in which period, for how much, and for
// which use. The ledger books a cost as open and moves it once its use is known; a charge holds only the result.
package charge

import (
	"math/big"
	"time"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// Charge is a cost with one period, price and use. The charges of a span add up to its postings exactly, by owner,
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

	Time      time.Duration // of machine time; valid only if Timed
	Timed     bool
	Price     ledger.Price // per hour of Time
	ListPrice ledger.Price
	// Corrects is set if the amount corrects earlier charges: a late price, or a credit.
	Corrects bool
	// Booked is the time of the posting, or the last one of several; zero: unknown.
	Booked time.Time

	Owner ledger.Owner
	Source
}

// Source holds facts about a posting that the ledger does not store.
type Source struct {
	User         string
	Kind         string          // of the job
	Name         string          // of the job; its other runs may share it
	Planned      bool            // the job was approved, or has the tag planned
	Capacity     market.Capacity // empty: unknown
	Accelerators int             // of the machine
	Work         float64         // hours of work at speed 1 per useful hour; 0: unknown
	Billed       bool            // the provider has billed this machine time
	Shared       bool            // the machine had several tasks, and this is the part of one
	// Part/Whole is the task's share of the machine's cost; 0/0 if unknown or undivided.
	Part, Whole int64
}

// MachineTime returns the owner's part of the machine time in nanoseconds, below zero if the charge reverses time that
// was charged before; false if the charge is not for machine time.
func (c *Charge) MachineTime() (*big.Int, bool) {
	if c.Category != ledger.Compute || !c.Timed {
		return nil, false
	}
	long := big.NewInt(int64(c.Time))
	if c.Amount.Sign() < 0 {
		long.Neg(long)
	}
	if c.Whole > 0 { // the machine had several tasks
		long.Quo(long.Mul(long, big.NewInt(c.Part)), big.NewInt(c.Whole))
	}
	return long, true
}

// ListAmount returns what the charge costs at the on-demand price; false if that is unknown.
func (c *Charge) ListAmount() (money.Amount, bool) {
	list := c.ListPrice.Rate.Until(c.Time)
	if c.Amount.Sign() < 0 {
		list = list.Neg()
	}
	return list, c.Timed && c.ListPrice.Known
}

// Span is a span of time. A zero Until means no end.
type Span struct{ Since, Until time.Time }

// Has reports whether t is in the span.
func (s Span) Has(t time.Time) bool {
	return !t.Before(s.Since) && (s.Until.IsZero() || t.Before(s.Until))
}

// Month returns the start of the month of t, in UTC.
func Month(t time.Time) time.Time {
	t = t.UTC()
	return time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC)
}

// NextMonth returns the start of the month after that of t.
func NextMonth(t time.Time) time.Time { return Month(t).AddDate(0, 1, 0) }

// part is the time and money of a posting between two cuts.
type part struct {
	begin, end time.Time
	amount     money.Amount
}

// cut splits a posting at the ends of months and of the span, and keeps the parts in the span. A posting without a
// period counts in the hour of its booking.
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
