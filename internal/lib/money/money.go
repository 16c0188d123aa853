// Package money holds the amounts and prices of the public package of that name, so the Go client and the program use
// the same types.
package money

import (
	"math/big"

	"scrimp/money"
)

// The types, as described by scrimp/money.
type (
	Amount   = money.Amount
	Rate     = money.Rate
	Currency = money.Currency
)

// USD is the currency of a market that names no other.
const USD = money.USD

// Picos returns the Amount of n times 1e-12 currency units.
func Picos(n int64) Amount { return money.Picos(n) }

// Min returns the smaller of a and b.
func Min(a, b Amount) Amount { return money.Min(a, b) }

// FromBig returns the Amount of b times 1e-12 units, and false if that does not fit.
func FromBig(b *big.Int) (Amount, bool) { return money.FromBig(b) }

// FromMicros returns micros times 1e-6 units and picos times 1e-12 units.
func FromMicros(micros, picos int64) Amount { return money.FromMicros(micros, picos) }

// Parse reads a decimal such as "12.34", with at most 12 decimals and no exponent.
func Parse(s string) (Amount, error) { return money.Parse(s) }

// ParseRate reads the price of an hour, such as "0.9731". It is never negative.
func ParseRate(s string) (Rate, error) { return money.ParseRate(s) }

// Format formats a for people, rounded to places decimals, half away from zero.
func Format(a Amount, c Currency, places int) string { return money.Format(a, c, places) }

// Short formats a for people who need one figure: small amounts have three significant digits.
func Short(a Amount, c Currency) string { return money.Short(a, c) }

// ShortFloat is like Short, for an estimate in currency units.
func ShortFloat(v float64, c Currency) string { return money.ShortFloat(v, c) }

// Estimated converts an estimate in currency units to an Amount, and returns false if it does not fit.
func Estimated(f float64) (Amount, bool) { return money.Estimated(f) }

// Portion returns a · part / whole, rounded towards zero. part must be at most whole.
func Portion(a, part, whole Amount) Amount {
	n := new(big.Int).Mul(a.Big(), part.Big())
	sum, _ := money.FromBig(n.Quo(n, whole.Big())) // at most a
	return sum
}
