package market

import (
	"math/big"
	"time"

	"scrimp/internal/lib/money"
)

// Reservation is capacity that is paid for whether it is used or not: a block that
// was bought, a contract, a machine of one's own. Its times are market time.
type Reservation struct {
	Count int          `json:"count"` // machines; 0: this is no reservation
	From  time.Time    `json:"from"`
	Until time.Time    `json:"until"`
	Paid  money.Amount `json:"paid"`           // for all of them and the whole time
	Team  string       `json:"team,omitempty"` // whose cost the hours are that nobody uses; "": nobody's
	// Before is what it had cost by From: under other terms, where these changed.
	Before money.Amount `json:"before,omitzero"`
	// Marginal is what an hour of one machine costs beyond what is paid, when it is used: power. It is
	// part of the price in its quote, and what a use of it is weighed with.
	Marginal money.Rate `json:"marginal,omitempty"`
}

// Committed is what the reservation has cost by t: the share of what was paid that
// the time since its beginning is of the whole, so any cut of it has the same sum.
func (r Reservation) Committed(t time.Time) money.Amount {
	switch {
	case r.Count <= 0 || !t.After(r.From):
		return r.Before
	case !t.Before(r.Until):
		return r.Before.Add(r.Paid)
	}
	n := new(big.Int).Mul(r.Paid.Big(), big.NewInt(int64(t.Sub(r.From))))
	a, _ := money.FromBig(n.Quo(n, big.NewInt(int64(r.Until.Sub(r.From))))) // no more than was paid
	return a.Add(r.Before)
}

// Term is a reservation in a trace: its times are counted from the market's opening.
type Term struct {
	Count int           `json:"count"`
	From  time.Duration `json:"from_ns"`
	To    time.Duration `json:"to_ns"`
	Paid  money.Amount  `json:"paid"`
	Team  string        `json:"team,omitempty"`
}

// Owned is the part that is paid for already of what a use of one of its machines costs: all but the
// marginal rate's share, cut off.
func (r Reservation) Owned(cost money.Amount) money.Amount {
	paid := rate(r.Paid, r.Count, r.Until.Sub(r.From))
	if r.Marginal <= 0 || paid+r.Marginal <= 0 {
		return cost
	}
	n := new(big.Int).Mul(cost.Big(), big.NewInt(int64(paid)))
	a, _ := money.FromBig(n.Quo(n, big.NewInt(int64(paid+r.Marginal)))) // no more than cost
	return a
}

// Rate is what an hour of one of its machines costs, cut off.
func (r Term) Rate() money.Rate { return rate(r.Paid, r.Count, r.To-r.From) }

func rate(paid money.Amount, count int, span time.Duration) money.Rate {
	n := new(big.Int).Mul(paid.Big(), big.NewInt(int64(time.Hour)))
	hours := new(big.Int).Mul(big.NewInt(int64(count)), big.NewInt(int64(span)))
	if hours.Sign() <= 0 || !n.Quo(n, hours).IsInt64() {
		return 0
	}
	return money.Rate(n.Int64())
}

// Sold is the line's offer in a market that opened then.
func (l TraceLine) Sold(opened time.Time) Offer {
	o := l.Offer
	if r := l.Reserved; r.Count > 0 {
		o.Reserved = Reservation{Count: r.Count, From: opened.Add(r.From), Until: opened.Add(r.To), Paid: r.Paid,
			Team: r.Team}
	}
	return o
}
