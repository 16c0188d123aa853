// Package money holds the amounts and prices of the public package of that name: what the
// Go client reads and what the program computes with are the same types.
package money

import (
	"math/big"

	"scrimp/money"
)

// The types, as scrimp/money describes them.
type (
	Amount   = money.Amount
	Rate     = money.Rate
	Currency = money.Currency
)

// USD is the currency of a market that does not say otherwise.
const USD = money.USD

// Picos returns the Amount of n times 1e-12 currency units.
func Picos(n int64) Amount { return money.Picos(n) }

// Min returns the smaller of a and b.
func Min(a, b Amount) Amount { return money.Min(a, b) }

// FromBig returns the Amount of b times 1e-12 units, and false where that does not fit.
func FromBig(b *big.Int) (Amount, bool) { return money.FromBig(b) }

// FromMicros returns micros times 1e-6 units and picos times 1e-12 units.
func FromMicros(micros, picos int64) Amount { return money.FromMicros(micros, picos) }

// Parse reads a decimal such as "12.34", with at most 12 decimals and no exponent.
func Parse(s string) (Amount, error) { return money.Parse(s) }

// ParseRate reads the price of an hour, such as "0.9731". It is never negative.
func ParseRate(s string) (Rate, error) { return money.ParseRate(s) }

// Format returns a for people, rounded to places decimals, half away from zero.
func Format(a Amount, c Currency, places int) string { return money.Format(a, c, places) }

// Short returns a for people who read one figure: small amounts with three digits that count.
func Short(a Amount, c Currency) string { return money.Short(a, c) }

// ShortFloat is Short for an estimate in currency units.
func ShortFloat(v float64, c Currency) string { return money.ShortFloat(v, c) }

// Estimated turns an estimate in currency units into an Amount, and returns false where it does not fit.
func Estimated(f float64) (Amount, bool) { return money.Estimated(f) }

// Portion returns a · part / whole, cut off towards zero. part is at most whole.
func Portion(a, part, whole Amount) Amount {
	n := new(big.Int).Mul(a.Big(), part.Big())
	sum, _ := money.FromBig(n.Quo(n, whole.Big())) // no larger than a
	return sum
}
