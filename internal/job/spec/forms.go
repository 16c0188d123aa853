package spec

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"scrimp/internal/lib/money"
	"scrimp/internal/lib/quantity"
	"scrimp/internal/lib/size"
)

// Duration is a duration such as 1h30m or 2d.
type Duration time.Duration

// MarshalText formats the duration.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText parses a duration.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := ParseDuration(string(b))
	*d = Duration(v)
	return err
}

// errReversed reports a range whose end is below its beginning.
var errReversed = errors.New("the upper limit is below the lower")

// Range is a count from Min to Max; Max 0 means no upper limit.
type Range struct{ Min, Max int }

// UnmarshalText parses 4, 4+ or 4..16.
func (r *Range) UnmarshalText(b []byte) error {
	low, high, err := bounds(string(b), func(s string) (int64, error) { return strconv.ParseInt(s, 10, 31) })
	if errors.Is(err, errReversed) {
		return fmt.Errorf("%q: %w", b, err)
	}
	if err != nil {
		return fmt.Errorf("%q is not a count such as 4 or 4..16, or 4+ without an upper limit", b)
	}
	*r = Range{int(low), int(high)}
	return nil
}

// UnmarshalJSON parses the text form or a number.
func (r *Range) UnmarshalJSON(b []byte) error {
	var text string
	if len(b) == 0 || b[0] != '"' {
		return r.UnmarshalText(b)
	}
	if err := json.Unmarshal(b, &text); err != nil {
		return err
	}
	return r.UnmarshalText([]byte(text))
}

// MarshalText writes the form that UnmarshalText parses.
func (r Range) MarshalText() ([]byte, error) {
	switch r.Max {
	case 0:
		return fmt.Appendf(nil, "%d+", r.Min), nil
	case r.Min:
		return fmt.Appendf(nil, "%d", r.Min), nil
	}
	return fmt.Appendf(nil, "%d..%d", r.Min, r.Max), nil
}

// Sizes is a size from Min to Max; Max 0 means no upper limit.
type Sizes struct{ Min, Max size.Bytes }

// UnmarshalText parses 8GiB, 8GiB+, 8GiB..64GiB or 8..64GiB.
func (r *Sizes) UnmarshalText(b []byte) error {
	text := string(b)
	if low, high, ok := strings.Cut(text, ".."); ok && strings.Trim(low, " 0123456789.") == "" {
		text = low + strings.TrimLeft(high, " 0123456789.") + ".." + high // the unit is given once
	}
	low, high, err := bounds(text, func(s string) (int64, error) { v, err := size.Parse(s); return int64(v), err })
	if errors.Is(err, errReversed) {
		return fmt.Errorf("%q: %w", b, err)
	}
	if err != nil {
		return fmt.Errorf("%q is not a size with its unit, such as 8GiB, 8GiB+ or 8..64GiB", b)
	}
	*r = Sizes{size.Bytes(low), size.Bytes(high)}
	return nil
}

// MarshalText writes the form that UnmarshalText parses, in bytes to be exact.
func (r Sizes) MarshalText() ([]byte, error) {
	switch r.Max {
	case 0:
		return fmt.Appendf(nil, "%dB+", r.Min), nil
	case r.Min:
		return fmt.Appendf(nil, "%dB", r.Min), nil
	}
	return fmt.Appendf(nil, "%dB..%dB", r.Min, r.Max), nil
}

// bounds parses LOW, LOW+ and LOW..HIGH; the upper limit of LOW+ is 0. Limits must be at least 1.
func bounds(s string, parse func(string) (int64, error)) (low, high int64, err error) {
	a, b, isRange := strings.Cut(s, "..")
	a, isOpen := strings.CutSuffix(strings.TrimSpace(a), "+")
	if isOpen && isRange {
		return 0, 0, errors.New("a range has one upper limit")
	}
	if low, err = parse(strings.TrimSpace(a)); err != nil {
		return 0, 0, err
	}
	switch {
	case isRange:
		if high, err = parse(strings.TrimSpace(b)); err != nil {
			return 0, 0, err
		}
	case !isOpen:
		high = low
	}
	if low == 0 && high == 0 {
		return 0, 0, nil
	}
	if low < 1 {
		return 0, 0, errors.New("the lower limit is below 1")
	}
	if !isOpen && high < low {
		return 0, 0, errReversed
	}
	return low, high, nil
}

// ParseAmount parses an amount of money: 4, 4.00 or $4.00.
func ParseAmount(s string) (money.Amount, error) {
	a, err := money.Parse(plainMoney(s))
	if err != nil {
		return a, fmt.Errorf("%q is not an amount such as $4.00", s)
	}
	return a, nil
}

// ParseBudget parses an amount of money above zero and within the bounds of amounts.
func ParseBudget(s string) (money.Amount, error) {
	a, err := ParseAmount(s)
	if err != nil || a.Sign() <= 0 || !quantity.Dollars.Allows(a.Float()) {
		return a, fmt.Errorf("%.40q is not an amount above zero and up to $%.0f, such as $4.00", s, quantity.Dollars.Most)
	}
	return a, nil
}

// ParsePrice parses an hourly price: 2.50, $2.50 or $2.50/h.
func ParsePrice(s string) (money.Rate, error) {
	r, err := money.ParseRate(plainMoney(strings.TrimSuffix(strings.TrimSpace(s), "/h")))
	if err != nil {
		return r, fmt.Errorf("%q is not the price of an hour such as $2.50", s)
	}
	return r, nil
}

// plainMoney removes the currency sign, which may follow a minus.
func plainMoney(s string) string {
	s = strings.TrimSpace(s)
	if rest, ok := strings.CutPrefix(s, "-$"); ok {
		return "-" + rest
	}
	return strings.TrimPrefix(s, "$")
}

// parseCount parses a whole number with optional _ between digits and an optional suffix K, M, B or T: 6000, 1_000,
// 1.2M, 7B.
func parseCount(s string) (int64, error) {
	bad := fmt.Errorf("%q is not a whole number such as 6000 or 1.2M", s)
	digits := strings.ReplaceAll(s, "_", "")
	zeros := 0
	if digits != "" {
		if at := strings.IndexByte("KMBT", digits[len(digits)-1]); at >= 0 {
			zeros, digits = 3*(at+1), digits[:len(digits)-1]
		}
	}
	whole, frac, point := strings.Cut(digits, ".")
	if point && (frac == "" || len(strings.TrimRight(frac, "0")) > zeros) || whole == "" {
		return 0, bad
	}
	frac = strings.TrimRight(frac, "0")
	n, err := strconv.ParseInt(whole+frac+strings.Repeat("0", zeros-len(frac)), 10, 64)
	if err != nil || frac != "" && strings.Trim(frac, "0123456789") != "" {
		return 0, bad
	}
	return n, nil
}

// parseNumber parses a finite number, also in the forms 1.6x, 99% and 7B.
func parseNumber(s string) (float64, error) {
	text, parts := strings.ReplaceAll(s, "_", ""), 1.0
	if text != "" {
		switch text[len(text)-1] {
		case 'x':
			text = text[:len(text)-1]
		case '%':
			text, parts = text[:len(text)-1], 100
		case 'K', 'M', 'B', 'T':
			n, err := parseCount(text)
			return float64(n), err
		}
	}
	f, err := strconv.ParseFloat(text, 64)
	if f /= parts; err != nil || f-f != 0 || strings.ContainsAny(text, "xXpP") {
		return 0, fmt.Errorf("%q is not a finite number", s)
	}
	return f + 0, nil // + 0 turns a negative zero into zero
}
