package ledger

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"scrimp/internal/lib/money"
)

// Unit is what a quantity counts.
type Unit string

// Machine time is counted in seconds, storage and transfer in bytes.
const (
	NoUnit     Unit = ""
	SecondUnit Unit = "s"
	ByteUnit   Unit = "B"
)

// Quantity is how much was used: an exact count of 1e-9 units, zero or more, in two
// parts, since a count in one int64 ends at 9.2 GB. Two equal quantities are equal values.
type Quantity struct {
	Whole int64 // whole units
	Nanos int32 // 1e-9 units, from 0 to 999,999,999
}

// Seconds is a span of machine time.
func Seconds(d time.Duration) Quantity {
	return Quantity{int64(d / time.Second), int32(d % time.Second)}
}

// Bytes is an amount of data.
func Bytes(n int64) Quantity { return Quantity{Whole: n} }

// IsZero reports whether nothing was counted.
func (q Quantity) IsZero() bool { return q == Quantity{} }

// Valid reports whether q is zero or more, and its parts are as they should be.
func (q Quantity) Valid() bool { return q.Whole >= 0 && q.Nanos >= 0 && q.Nanos < 1e9 }

// String gives the exact decimal number: "3600", "0.5".
func (q Quantity) String() string {
	s := strconv.FormatInt(q.Whole, 10)
	if q.Nanos == 0 {
		return s
	}
	return s + "." + strings.TrimRight(fmt.Sprintf("%09d", q.Nanos), "0")
}

// MarshalText gives the exact decimal number.
func (q Quantity) MarshalText() ([]byte, error) { return []byte(q.String()), nil }

// UnmarshalText reads what MarshalText wrote, and no other form of it.
func (q *Quantity) UnmarshalText(b []byte) error {
	whole, part, _ := strings.Cut(string(b), ".")
	v := Quantity{}
	n, err := strconv.ParseInt(whole, 10, 64)
	if err == nil && part != "" && len(part) <= 9 {
		var nanos int64
		nanos, err = strconv.ParseInt(part+strings.Repeat("0", 9-len(part)), 10, 32)
		v.Nanos = int32(nanos)
	}
	v.Whole = n
	if err != nil || !v.Valid() || v.String() != string(b) {
		return fmt.Errorf("%.40q is not a quantity", b)
	}
	*q = v
	return nil
}

// Price is what an hour costs, where that is known. A known price of zero is a
// machine that is paid already; the zero Price is unknown, and JSON leaves it out.
type Price struct {
	Rate  money.Rate
	Known bool
}

// PriceOf is a price that is known, or not.
func PriceOf(r money.Rate, known bool) Price {
	if !known {
		return Price{}
	}
	return Price{r, true}
}

// IsZero reports whether the price is unknown.
func (p Price) IsZero() bool { return !p.Known }

// MarshalText gives the exact decimal price of an hour; an unknown one has no text.
func (p Price) MarshalText() ([]byte, error) {
	if !p.Known {
		return nil, nil
	}
	return p.Rate.MarshalText()
}

// UnmarshalText reads what MarshalText wrote.
func (p *Price) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		*p = Price{}
		return nil
	}
	p.Known = true
	return p.Rate.UnmarshalText(b)
}
