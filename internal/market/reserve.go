package market

import (
	"math/big"
	"time"

	"scrimp/internal/money"
)

// Reservation is capacity that is paid for whether it is used or not: a block that
// was bought, a contract, a machine of one's own. Its times are market time.
type Reservation struct {
	Count int          `json:"count"` // machines; 0: this is no reservation
	From  time.Time    `json:"from"`
	Until time.Time    `json:"until"`
	Paid  money.Amount `json:"paid"`           // for all of them and the whole time
	Team  string       `json:"team,omitempty"` // whose cost the hours are that nobody uses; "": nobody's
}

// Committed is what the reservation has cost by t: the share of what was paid that
// the time since its beginning is of the whole, so any cut of it has the same sum.
func (r Reservation) Committed(t time.Time) money.Amount {
	switch {
	case r.Count <= 0 || !t.After(r.From):
		return money.Amount{}
	case !t.Before(r.Until):
		return r.Paid
	}
	n := new(big.Int).Mul(r.Paid.Big(), big.NewInt(int64(t.Sub(r.From))))
	a, _ := money.FromBig(n.Quo(n, big.NewInt(int64(r.Until.Sub(r.From))))) // no more than was paid
	return a
}

// Term is a reservation in a trace: its times are counted from the market's opening.
type Term struct {
	Count int           `json:"count"`
	From  time.Duration `json:"from_ns"`
	To    time.Duration `json:"to_ns"`
	Paid  money.Amount  `json:"paid"`
	Team  string        `json:"team,omitempty"`
}

// Rate is what an hour of one of its machines costs, cut off.
func (r Term) Rate() money.Rate {
	n := new(big.Int).Mul(r.Paid.Big(), big.NewInt(int64(time.Hour)))
	hours := new(big.Int).Mul(big.NewInt(int64(r.Count)), big.NewInt(int64(r.To-r.From)))
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
