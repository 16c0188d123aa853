package trueup

import (
	"maps"
	"slices"

	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/work/reconcile"
)

// Booking is the correction of the ledger in one currency.
type Booking struct {
	Currency money.Currency `json:"currency"`
	Count    int            `json:"count"` // parts to book, or booked by this request
	Amount   money.Amount   `json:"amount"`
	Before   money.Amount   `json:"booked_before"`
}

// BillName identifies a bill.
type BillName struct {
	Provider string `json:"provider"`
	Account  string `json:"account"`
	Month    string `json:"month"`
}

// Comparison compares the kept bills of a month with the ledger without earlier corrections.
type Comparison struct {
	reconcile.Answer
	Bills   []BillName `json:"bills"`
	Closed  bool       `json:"closed"` // nothing can be booked for the month
	Booked  bool       `json:"booked"` // the request has booked the differences
	Booking []Booking  `json:"booking"`
	Waits   []Wait     `json:"waits"`
}

// bookings sums the missing lines and the earlier corrections by currency.
func (m *Month) bookings(lines []state.ReconciledLine) []Booking {
	by := map[money.Currency]Booking{}
	for _, l := range lines {
		b := by[l.Currency]
		b.Count, b.Amount = b.Count+1, b.Amount.Add(l.Amount)
		by[l.Currency] = b
	}
	for k, a := range m.of {
		for _, amount := range a.booked {
			b := by[k.currency]
			b.Before = b.Before.Add(amount)
			by[k.currency] = b
		}
	}
	list := []Booking{}
	for _, c := range slices.Sorted(maps.Keys(by)) {
		b := by[c]
		b.Currency = c
		list = append(list, b)
	}
	return list
}

// Finish compares both sides, and returns the postings that are missing.
func (m *Month) Finish() (c Comparison, lines []state.ReconciledLine) {
	c.Answer = m.Bills.Finish()
	lines, c.Waits = m.Lines(c.Gaps)
	if c.Waits == nil {
		c.Waits = []Wait{}
	}
	c.Bills, c.Booking = []BillName{}, m.bookings(lines)
	return c, lines
}
