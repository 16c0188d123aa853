package ledger

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"scrimp/internal/lib/money"
)

// Unit is the unit of a quantity.
type Unit string

// Machine time is counted in seconds, storage and transfer in bytes.
const (
	NoUnit     Unit = ""
	SecondUnit Unit = "s"
	ByteUnit   Unit = "B"
)

// Quantity is an exact, non-negative count of 1e-9 units, in two parts because one int64 would end at 9.2 GB. Equal
// quantities are equal values.
type Quantity struct {
	Whole int64 // whole units
	Nanos int32 // 1e-9 units, from 0 to 999,999,999
}

// Seconds returns the quantity of a span of machine time.
func Seconds(d time.Duration) Quantity {
	return Quantity{int64(d / time.Second), int32(d % time.Second)}
}

// DataRule marks the cost of reading a job's inputs from where they lie. Its price is that of 1e9 bytes.
const DataRule = "data"

// Bytes returns the quantity of an amount of data.
func Bytes(n int64) Quantity { return Quantity{Whole: n} }

// IsZero reports whether the quantity is zero.
func (q Quantity) IsZero() bool { return q == Quantity{} }

// Valid reports whether q is non-negative and its parts are in range.
func (q Quantity) Valid() bool { return q.Whole >= 0 && q.Nanos >= 0 && q.Nanos < 1e9 }

// String returns the exact decimal number: "3600", "0.5".
func (q Quantity) String() string {
	s := strconv.FormatInt(q.Whole, 10)
	if q.Nanos == 0 {
		return s
	}
	return s + "." + strings.TrimRight(fmt.Sprintf("%09d", q.Nanos), "0")
}

// MarshalText returns the exact decimal number.
func (q Quantity) MarshalText() ([]byte, error) { return []byte(q.String()), nil }

// UnmarshalText parses the output of MarshalText, and accepts no other form.
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

// Price is an hourly price, if known. A known price of zero means a machine that is already paid for. The zero
// Price is unknown, and JSON omits it.
type Price struct {
	Rate  money.Rate
	Known bool
}

// PriceOf returns a known or unknown price.
func PriceOf(r money.Rate, known bool) Price {
	if !known {
		return Price{}
	}
	return Price{r, true}
}

// IsZero reports whether the price is unknown.
func (p Price) IsZero() bool { return !p.Known }

// MarshalText returns the exact decimal hourly price, or no text if unknown.
func (p Price) MarshalText() ([]byte, error) {
	if !p.Known {
		return nil, nil
	}
	return p.Rate.MarshalText()
}

// UnmarshalText parses the output of MarshalText.
func (p *Price) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		*p = Price{}
		return nil
	}
	p.Known = true
	return p.Rate.UnmarshalText(b)
}
