// Package money holds amounts, prices, and the only rounding in the program.
//
// An Amount is exact: a signed 128-bit count of 1e-12 currency units. A Rate is
// a price per hour and a type of its own, so that a price cannot be added to an
// amount. The currency stands beside both, in the value that owns them.
package money

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"strings"
)

// Currency is an ISO 4217 code, such as "USD".
type Currency string

// Valid reports whether it has the form of such a code: three capital letters.
func (c Currency) Valid() bool {
	if len(c) != 3 {
		return false
	}
	for _, letter := range c {
		if letter < 'A' || letter > 'Z' {
			return false
		}
	}
	return true
}

// USD is the currency of a market that does not say otherwise.
const USD Currency = "USD"

// pico is how many counts make one currency unit.
const pico = 1_000_000_000_000

// Amount is money: a signed count of 1e-12 currency units in 128 bits, so $1.50
// is 1_500_000_000_000. The zero value is no money. Amounts compare with Cmp,
// and with == where equality is all that is asked.
type Amount struct {
	hi int64
	lo uint64
}

// Picos returns the Amount of n times 1e-12 currency units.
func Picos(n int64) Amount { return Amount{hi: n >> 63, lo: uint64(n)} }

// The ends of 128 bits, some 1.7e26 currency units from zero.
var (
	largest  = Amount{hi: math.MaxInt64, lo: math.MaxUint64}
	smallest = Amount{hi: math.MinInt64}
)

// end is the end of 128 bits on one side.
func end(negative bool) Amount {
	if negative {
		return smallest
	}
	return largest
}

// Add returns a + b, and the nearer end of 128 bits where that does not fit: no sum of amounts that are
// let in (at most 1e12 units each) comes near.
func (a Amount) Add(b Amount) Amount {
	lo, carry := bits.Add64(a.lo, b.lo, 0)
	hi := a.hi + b.hi + int64(carry)
	if (a.hi < 0) == (b.hi < 0) && (hi < 0) != (a.hi < 0) {
		return end(a.hi < 0)
	}
	return Amount{hi: hi, lo: lo}
}

// Sub returns a - b, and the nearer end of 128 bits where that does not fit.
func (a Amount) Sub(b Amount) Amount {
	lo, borrow := bits.Sub64(a.lo, b.lo, 0)
	hi := a.hi - b.hi - int64(borrow)
	if (a.hi < 0) != (b.hi < 0) && (hi < 0) != (a.hi < 0) {
		return end(a.hi < 0)
	}
	return Amount{hi: hi, lo: lo}
}

// Neg returns -a.
func (a Amount) Neg() Amount { return Amount{}.Sub(a) }

// Cmp returns -1, 0 or 1 as a is less than, equal to or greater than b.
func (a Amount) Cmp(b Amount) int {
	switch {
	case a.hi < b.hi, a.hi == b.hi && a.lo < b.lo:
		return -1
	case a == b:
		return 0
	}
	return 1
}

// Sign returns -1, 0 or 1.
func (a Amount) Sign() int { return a.Cmp(Amount{}) }

// IsZero reports whether a is no money at all.
func (a Amount) IsZero() bool { return a == Amount{} }

// Times is n times a, which is 0 or more; the largest amount where it is larger.
func (a Amount) Times(n int) Amount {
	b, ok := FromBig(new(big.Int).Mul(a.Big(), big.NewInt(int64(n))))
	if !ok {
		return end(a.Sign() < 0)
	}
	return b
}

// Over is an n-th of a, rounded towards zero. It panics where n is below 1.
func (a Amount) Over(n int) Amount {
	if n < 1 {
		panic("money: a part of an amount needs a whole")
	}
	b, _ := FromBig(new(big.Int).Quo(a.Big(), big.NewInt(int64(n)))) // nearer to zero than a, so that it fits
	return b
}

// Min returns the smaller of a and b.
func Min(a, b Amount) Amount {
	if b.Cmp(a) < 0 {
		return b
	}
	return a
}

// Big returns a as a count of 1e-12 units.
func (a Amount) Big() *big.Int {
	b := new(big.Int).Lsh(big.NewInt(a.hi), 64)
	return b.Add(b, new(big.Int).SetUint64(a.lo))
}

// FromBig returns the Amount of b times 1e-12 units, and false where that does not fit.
func FromBig(b *big.Int) (Amount, bool) {
	lo := new(big.Int).And(b, new(big.Int).SetUint64(^uint64(0)))
	hi := new(big.Int).Rsh(b, 64)
	if !hi.IsInt64() {
		return Amount{}, false
	}
	return Amount{hi: hi.Int64(), lo: lo.Uint64()}, true
}

// Micros returns a as whole 1e-6 units and the 1e-12 units besides, which have
// the sign of a: two columns that a database can add up exactly. It returns
// false beyond about 9.2e12 units.
func (a Amount) Micros() (micros, picos int64, ok bool) {
	if n := int64(a.lo); a.hi == n>>63 {
		return n / 1_000_000, n % 1_000_000, true
	}
	whole, rest := new(big.Int).QuoRem(a.Big(), big.NewInt(1_000_000), new(big.Int))
	return whole.Int64(), rest.Int64(), whole.IsInt64()
}

// FromMicros returns micros times 1e-6 units and picos times 1e-12 units. The
// two may be sums of columns: picos need not be below 1e6, nor of micros' sign.
func FromMicros(micros, picos int64) Amount {
	hi, lo := bits.Mul64(uint64(micros), 1_000_000)
	if micros < 0 {
		hi -= 1_000_000 // the product of the two's complement is 1e6 times 2^64 too large
	}
	return Amount{hi: int64(hi), lo: lo}.Add(Picos(picos))
}

// AppendBinary appends the 16 bytes of a, most significant first. It never fails.
func (a Amount) AppendBinary(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(a.hi))
	return binary.BigEndian.AppendUint64(b, a.lo)
}

// String returns a as an exact decimal without trailing zeros: "1.5", "-0.000000000001".
func (a Amount) String() string { return decimal(a.Big()) }

func decimal(n *big.Int) string {
	sign := ""
	if n.Sign() < 0 {
		sign, n = "-", new(big.Int).Neg(n)
	}
	whole, frac := new(big.Int).QuoRem(n, big.NewInt(pico), new(big.Int))
	if frac.Sign() == 0 {
		return sign + whole.String()
	}
	return sign + whole.String() + "." + strings.TrimRight(fmt.Sprintf("%012d", frac.Int64()), "0")
}

// Parse reads a decimal such as "12.34", with at most 12 decimals and no exponent.
func Parse(s string) (Amount, error) {
	n, err := parseDecimal(s)
	if err != nil {
		return Amount{}, err
	}
	a, ok := FromBig(n)
	if !ok {
		return Amount{}, fmt.Errorf("amount %q is too large", s)
	}
	return a, nil
}

// parseDecimal returns the count of 1e-12 units that s says.
func parseDecimal(s string) (*big.Int, error) {
	bad := func() error { return fmt.Errorf("%.80q is not a decimal amount such as 12.34", s) }
	digits, negative := strings.CutPrefix(s, "-")
	whole, frac, point := strings.Cut(digits, ".")
	if whole == "" || point && frac == "" || len(s) > 60 {
		return nil, bad()
	}
	for _, r := range whole + frac {
		if r < '0' || r > '9' {
			return nil, bad()
		}
	}
	if len(frac) > 12 {
		return nil, fmt.Errorf("%q has more than 12 decimals", s)
	}
	all := whole + frac + strings.Repeat("0", 12-len(frac))
	n, _ := new(big.Int).SetString(all, 10)
	if negative {
		n.Neg(n)
	}
	return n, nil
}

// MarshalText gives the exact decimal, so that JSON carries amounts as strings.
func (a Amount) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (a *Amount) UnmarshalText(b []byte) error {
	v, err := Parse(string(b))
	if err != nil {
		return err
	}
	*a = v
	return nil
}

// Format returns a for people, rounded to places decimals, half away from zero,
// with the currency's sign: "$12.34", "-$0.05", "12.34 EUR". It is the only place where money is rounded.
func Format(a Amount, c Currency, places int) string {
	n := a.Big()
	sign := ""
	if n.Sign() < 0 {
		sign, n = "-", n.Neg(n)
	}
	places = max(0, min(places, 12))
	unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(12-places)), nil)
	half := new(big.Int).Rsh(unit, 1)
	n.Add(n, half).Quo(n, unit)
	if n.Sign() == 0 {
		sign = ""
	}
	digits := n.String()
	if len(digits) <= places {
		digits = strings.Repeat("0", places-len(digits)+1) + digits
	}
	text := digits[:len(digits)-places]
	if places > 0 {
		text += "." + digits[len(digits)-places:]
	}
	if c == USD {
		return sign + "$" + text
	}
	return sign + text + " " + string(c)
}

// Short returns a for people who read one figure: to the cent from a tenth of a unit on, and with three
// digits that count below, so that what costs little is not shown as nothing.
func Short(a Amount, c Currency) string { return trimmed(Format(a, c, places(a.Float())), c) }

// ShortFloat is Short for an estimate in currency units; what is not a number is "unknown".
func ShortFloat(v float64, c Currency) string {
	a, ok := Estimated(math.Abs(v))
	if !ok {
		return "unknown"
	}
	if v < 0 {
		a = a.Neg()
	}
	return Short(a, c)
}

// places is how many decimals Short writes, before it drops zeros.
func places(v float64) int {
	if v = math.Abs(v); v == 0 || v >= 0.1 {
		return 2
	}
	return min(12, 2-int(math.Floor(math.Log10(v))))
}

// trimmed drops zeros at the end of an amount that has more than two decimals.
func trimmed(text string, c Currency) string {
	unit := ""
	if c != USD {
		text, unit, _ = strings.Cut(text, " ")
		unit = " " + unit
	}
	least := strings.IndexByte(text, '.') + 3
	for len(text) > least && text[len(text)-1] == '0' {
		text = text[:len(text)-1]
	}
	return text + unit
}

// Float returns a in currency units, rounded to the nearest float64. It is for
// statistics, drawings and estimates; nothing that it returns becomes money again.
func (a Amount) Float() float64 {
	if n := int64(a.lo); a.hi == n>>63 && n < 1<<53 && n > -1<<53 {
		return float64(n) / pico // both are exact, so the quotient is the nearest
	}
	f, _ := new(big.Rat).SetFrac(a.Big(), big.NewInt(pico)).Float64()
	return f
}

// Estimated turns an estimate in currency units into an Amount. It is the one
// door from float64 to money: for estimates and holds, never for what was billed.
// It returns false where f is not a number or does not fit.
func Estimated(f float64) (Amount, bool) {
	if f != f || f > 1e20 || f < -1e20 {
		return Amount{}, false
	}
	n, _ := new(big.Float).Mul(big.NewFloat(f), big.NewFloat(pico)).Int(nil)
	return FromBig(n)
}
