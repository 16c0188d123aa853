package receipt

import (
	"math"

	"scrimp/internal/lib/money"
)

// money formats an amount in the receipt's currency.
func (r Receipt) money(a money.Amount) string { return sum(a, r.Currency) }

// sum formats an amount of a receipt with four decimals. An amount below one cent has three significant digits, as
// everywhere else, so that the loss of a few seconds is not $0.0000.
func sum(a money.Amount, c money.Currency) string {
	if f := math.Abs(a.Float()); f > 0 && f < 0.01 {
		return money.Short(a, c)
	}
	return money.Format(a, c, 4)
}
