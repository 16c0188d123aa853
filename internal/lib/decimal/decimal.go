// Package decimal holds exact decimals of any size: amounts on providers' bills may have more digits than an amount of
// the ledger.
package decimal

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"scrimp/internal/lib/money"
)

// MaxDigits limits the digits of a number and the size of its exponent, so that a number in a file takes little memory.
const MaxDigits = 400

// Decimal is digits × 10^-places. The zero value is 0. A Decimal is never changed.
type Decimal struct {
	digits *big.Int // nil: 0
	places int      // 0 or more
}

// Parse reads a decimal such as "-12.34", "+.5" or "1.2e-05".
func Parse(s string) (Decimal, error) {
	bad := func() (Decimal, error) { return Decimal{}, fmt.Errorf("%.40q is no decimal number", s) }
	if len(s) > 2*MaxDigits {
		return bad()
	}
	number, exponent := s, 0
	if at := strings.IndexAny(s, "eE"); at >= 0 {
		n, err := strconv.Atoi(s[at+1:])
		if err != nil || n < -MaxDigits || n > MaxDigits {
			return bad()
		}
		number, exponent = s[:at], n
	}
	sign := ""
	if number != "" && (number[0] == '-' || number[0] == '+') {
		sign, number = number[:1], number[1:]
	}
	whole, part, _ := strings.Cut(number, ".")
	digits := whole + part
	if digits == "" || len(digits) > MaxDigits || strings.Trim(digits, "0123456789") != "" {
		return bad()
	}
	n, _ := new(big.Int).SetString(sign+digits, 10)
	places := len(part) - exponent
	if places < 0 {
		n.Mul(n, tenTo(-places))
		places = 0
	}
	return Decimal{n, places}, nil
}

// OfAmount converts an amount of the ledger.
func OfAmount(a money.Amount) Decimal { return Decimal{a.Big(), 12} }

// powers holds the powers of ten that most sums need. They are never changed.
var powers = func() (list [64]*big.Int) {
	for i := range list {
		list[i] = new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(i)), nil)
	}
	return list
}()

// tenTo returns a power of ten, which the caller must not change.
func tenTo(n int) *big.Int {
	if n < len(powers) {
		return powers[n]
	}
	return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil)
}

// scaled returns the digits of d with more places.
func (d Decimal) scaled(places int) *big.Int {
	switch {
	case d.digits == nil:
		return new(big.Int)
	case places == d.places:
		return d.digits
	}
	return new(big.Int).Mul(d.digits, tenTo(places-d.places))
}

// Add returns d + e, exactly.
func (d Decimal) Add(e Decimal) Decimal {
	places := max(d.places, e.places)
	return Decimal{new(big.Int).Add(d.scaled(places), e.scaled(places)), places}
}

// Neg returns -d.
func (d Decimal) Neg() Decimal { return Decimal{new(big.Int).Neg(d.scaled(d.places)), d.places} }

// Sub returns d - e, exactly.
func (d Decimal) Sub(e Decimal) Decimal { return d.Add(e.Neg()) }

// Cmp returns -1, 0 or 1 if d is less than, equal to or greater than e.
func (d Decimal) Cmp(e Decimal) int {
	places := max(d.places, e.places)
	return d.scaled(places).Cmp(e.scaled(places))
}

// Sign returns -1, 0 or 1.
func (d Decimal) Sign() int { return d.scaled(d.places).Sign() }

// String writes all digits, without an exponent and without trailing zeros: "-0.0000125", "1500".
func (d Decimal) String() string {
	n := d.scaled(d.places)
	text := new(big.Int).Abs(n).String()
	if d.places > 0 {
		if len(text) <= d.places {
			text = strings.Repeat("0", d.places+1-len(text)) + text
		}
		at := len(text) - d.places
		text = strings.TrimSuffix(text[:at]+"."+strings.TrimRight(text[at:], "0"), ".")
	}
	if n.Sign() < 0 {
		return "-" + text
	}
	return text
}

// Amount returns d as an amount, cut off after 12 decimals, and false if d does not fit. It is for tables; totals are
// written with String.
func (d Decimal) Amount() (money.Amount, bool) {
	if d.places <= 12 {
		return money.FromBig(d.scaled(12))
	}
	return money.FromBig(new(big.Int).Quo(d.digits, tenTo(d.places-12)))
}

// MarshalText returns the exact decimal, so JSON holds it as a string.
func (d Decimal) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads the text that MarshalText wrote.
func (d *Decimal) UnmarshalText(b []byte) (err error) {
	*d, err = Parse(string(b))
	return err
}
