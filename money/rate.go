package money

import (
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"time"
)

// Rate is a price: 1e-12 currency units for one hour of use, at most about
// 9.2 million units an hour. It is a type of its own so that a price cannot be
// added to an amount. A rate of zero is a machine that is already paid; an
// unknown price is (0, false) wherever a Rate may be missing.
type Rate int64

// Until returns what r has cost by d after a span began, cut off below 1e-12
// units. A posting is the difference of two such values, so that a span has
// the same sum however it is cut.
//
// It panics if r or d is negative: both are checked where they enter.
func (r Rate) Until(d time.Duration) Amount {
	if r < 0 || d < 0 {
		panic(fmt.Sprintf("money: rate %d for %v", r, d))
	}
	hi, lo := bits.Mul64(uint64(r), uint64(d)) // 128 bits: no overflow
	qhi, rem := hi/uint64(time.Hour), hi%uint64(time.Hour)
	qlo, _ := bits.Div64(rem, lo, uint64(time.Hour))
	return Amount{hi: int64(qhi), lo: qlo}
}

// Buys returns how long a buys at r, cut off below a nanosecond, and false where
// it buys more than a time.Duration can hold. It is zero where a is not positive.
func (r Rate) Buys(a Amount) (d time.Duration, ok bool) {
	if a.Sign() <= 0 {
		return 0, true
	}
	if r <= 0 {
		return 0, false
	}
	n := new(big.Int).Mul(a.Big(), big.NewInt(int64(time.Hour)))
	n.Quo(n, big.NewInt(int64(r)))
	if !n.IsInt64() {
		return 0, false
	}
	return time.Duration(n.Int64()), true
}

// Times returns the rate of n machines at r each, and the highest that there is where that does not fit: some
// 9.2 million units an hour. It panics if r or n is negative.
func (r Rate) Times(n int) Rate {
	if n < 0 || r < 0 {
		panic(fmt.Sprintf("money: %d times rate %d", n, r))
	}
	hi, lo := bits.Mul64(uint64(r), uint64(n))
	if hi != 0 || lo>>63 != 0 {
		return math.MaxInt64
	}
	return Rate(lo)
}

// String returns the exact decimal price of an hour: "0.9731".
func (r Rate) String() string { return decimal(big.NewInt(int64(r))) }

// Float returns the price of an hour in currency units, for statistics only.
func (r Rate) Float() float64 {
	if -1<<53 < r && r < 1<<53 {
		return float64(r) / 1e12 // both are exact, so the quotient is the nearest
	}
	return Picos(int64(r)).Float()
}

// ParseRate reads the price of an hour, such as "0.9731". It is never negative.
func ParseRate(s string) (Rate, error) {
	n, err := parseDecimal(s)
	if err != nil {
		return 0, err
	}
	if n.Sign() < 0 {
		return 0, fmt.Errorf("price %q is negative", s)
	}
	if !n.IsInt64() {
		return 0, fmt.Errorf("price %q is too large", s)
	}
	return Rate(n.Int64()), nil
}

// MarshalText gives the exact decimal price of an hour.
func (r Rate) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (r *Rate) UnmarshalText(b []byte) error {
	v, err := ParseRate(string(b))
	if err != nil {
		return err
	}
	*r = v
	return nil
}
