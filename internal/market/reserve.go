package market

import (
	"math/big"
	"time"

	"scrimp/internal/lib/money"
)

// Reservation is capacity that is paid regardless of use: a purchased block, a contract, an own machine. Its times are
// market time.
type Reservation struct {
	Count int          `json:"count"` // machines; 0 means no reservation
	From  time.Time    `json:"from"`
	Until time.Time    `json:"until"`
	Paid  money.Amount `json:"paid"`           // for all machines and the whole time
	Team  string       `json:"team,omitempty"` // pays for unused hours; empty for nobody
	// Before is the cost accrued by From under earlier terms.
	Before money.Amount `json:"before,omitzero"`
	// Marginal is the hourly cost of one machine in use beyond what is paid: power. It is part of the quoted price, and
	// the cost that decisions use.
	Marginal money.Rate `json:"marginal,omitempty"`
}

// Committed returns the reservation's cost by t: the elapsed share of the total payment, so every division of the time
// has the same sum.
func (r Reservation) Committed(t time.Time) money.Amount {
	switch {
	case r.Count <= 0 || !t.After(r.From):
		return r.Before
	case !t.Before(r.Until):
		return r.Before.Add(r.Paid)
	}
	n := new(big.Int).Mul(r.Paid.Big(), big.NewInt(int64(t.Sub(r.From))))
	a, _ := money.FromBig(n.Quo(n, big.NewInt(int64(r.Until.Sub(r.From))))) // not more than was paid
	return a.Add(r.Before)
}

// Term is a reservation in a trace; its times are relative to the market's opening.
type Term struct {
	Count int           `json:"count"`
	From  time.Duration `json:"from_ns"`
	To    time.Duration `json:"to_ns"`
	Paid  money.Amount  `json:"paid"`
	Team  string        `json:"team,omitempty"`
}

// Owned returns the prepaid part of the cost of using one of its machines: all but the marginal rate's share,
// truncated.
func (r Reservation) Owned(cost money.Amount) money.Amount {
	paid := rate(r.Paid, r.Count, r.Until.Sub(r.From))
	if r.Marginal <= 0 || paid+r.Marginal <= 0 {
		return cost
	}
	n := new(big.Int).Mul(cost.Big(), big.NewInt(int64(paid)))
	a, _ := money.FromBig(n.Quo(n, big.NewInt(int64(paid+r.Marginal)))) // not more than cost
	return a
}

// Rate returns the hourly price of one of its machines, truncated.
func (r Term) Rate() money.Rate { return rate(r.Paid, r.Count, r.To-r.From) }

func rate(paid money.Amount, count int, span time.Duration) money.Rate {
	n := new(big.Int).Mul(paid.Big(), big.NewInt(int64(time.Hour)))
	hours := new(big.Int).Mul(big.NewInt(int64(count)), big.NewInt(int64(span)))
	if hours.Sign() <= 0 || !n.Quo(n, hours).IsInt64() {
		return 0
	}
	return money.Rate(n.Int64())
}

// Sold returns the line's offer in a market that opened at the given time.
func (l TraceLine) Sold(opened time.Time) Offer {
	o := l.Offer
	if r := l.Reserved; r.Count > 0 {
		o.Reserved = Reservation{Count: r.Count, From: opened.Add(r.From), Until: opened.Add(r.To), Paid: r.Paid,
			Team: r.Team}
	}
	return o
}
