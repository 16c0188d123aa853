package reader

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"scrimp/internal/lib/decimal"
	"scrimp/internal/work/bill"
)

// numbers is the number format of a file.
type numbers int

// Number formats. Unsure is a number that has two readings: "1.234", "15".
const (
	unsure numbers = iota
	point          // 1,234.56
	comma          // 1.234,56
)

// Errors of cells.
var (
	errNoNumber  = errors.New("is not a number")
	errAmbiguous = errors.New("may be read in two ways")
)

// mantissa returns a number without its exponent.
func mantissa(s string) string {
	if at := strings.IndexAny(s, "eE"); at >= 0 {
		return s[:at]
	}
	return s
}

// styleOf returns the format of a number, as far as it shows.
func styleOf(s string) numbers {
	s = strings.TrimLeft(mantissa(s), "+-")
	points, commas := strings.Count(s, "."), strings.Count(s, ",")
	switch {
	case points > 0 && commas > 0:
		if strings.LastIndex(s, ".") > strings.LastIndex(s, ",") {
			return point
		}
		return comma
	case points > 1:
		return comma
	case commas > 1:
		return point
	case points+commas == 0:
		return unsure
	}
	whole, part, _ := strings.Cut(strings.ReplaceAll(s, ",", "."), ".")
	if len(part) == 3 && whole != "" && len(whole) < 4 && whole[0] != '0' {
		return unsure
	}
	if points == 1 {
		return point
	}
	return comma
}

// spaced is a number whose thousands are parted by spaces or apostrophes: 1 234,56 and 1'234.56. Unlike "." and ",",
// these have one reading.
var spaced = regexp.MustCompile(`^[+-]?\d{1,3}(?:[ \x{a0}\x{2009}\x{202f}'’]\d{3})+(?:[.,]\d*)?$`)

// plainly returns a number with "-" as its sign, and without spaces or apostrophes between thousands.
func plainly(s string) string {
	s = strings.Replace(strings.TrimSpace(s), "\u2212", "-", 1)
	if !spaced.MatchString(s) {
		return s
	}
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("+-.,0123456789", r) {
			return r
		}
		return -1
	}, s)
}

// read parses a number in the file's format. An error may come with a value: the number is unambiguous, but in another
// format than the others.
func (n numbers) read(s string) (bill.Number, error) {
	if s = plainly(s); s == "" {
		return bill.Number{}, nil
	}
	style := styleOf(s)
	m := mantissa(s)
	if style == unsure {
		single := strings.Count(m, ",")+strings.Count(m, ".") == 1
		if single && strings.Contains(m, ",") != (n == comma) {
			return bill.Number{}, fmt.Errorf("%.40q %w: write it as the file writes other numbers", s, errAmbiguous)
		}
		style = n
	}
	group, mark := ",", "."
	if style == comma {
		group, mark = ".", ","
	}
	whole, part, has := strings.Cut(m, mark)
	if strings.Contains(part, mark) || strings.Contains(part, group) || !grouped(strings.TrimLeft(whole, "+-"), group) {
		return bill.Number{}, fmt.Errorf("%.40q %w", s, errNoNumber)
	}
	plain := strings.ReplaceAll(whole, group, "")
	if has {
		plain += "." + part
	}
	d, err := decimal.Parse(plain + s[len(m):])
	if err != nil {
		return bill.Number{}, fmt.Errorf("%.40q %w", s, errNoNumber)
	}
	if style != n {
		return bill.Number{Value: d, Known: true},
			fmt.Errorf("%.40q is not written as the other numbers of the file are (decimal %s)", s,
				map[numbers]string{point: "point", comma: "comma"}[n])
	}
	return bill.Number{Value: d, Known: true}, nil
}

// grouped reports whether the thousands groups have three digits each.
func grouped(whole, group string) bool {
	for i, part := range strings.Split(whole, group) {
		if i > 0 && len(part) != 3 || i == 0 && len(part) > 3 && strings.Contains(whole, group) {
			return false
		}
	}
	return true
}

// dates is the format of a file's days with slashes.
type dates int

// Day formats. Azure writes 11/30/2026 in English, and 30/11/2026 in most other languages.
const (
	monthFirst dates = iota
	dayFirst
)

var layouts = []string{time.RFC3339Nano, "2006-01-02", "2006-01-02 15:04:05", "2006-01-02 15:04:05 UTC",
	"2006-01-02 15:04:05.999999999 UTC", "2006-01-02T15:04:05", "2006-01-02T15:04Z", "2006-01-02 15:04:05Z07:00",
	"2006-01-02T15:04:05Z0700", "2006-01-02 15:04:05Z0700", "2006-01-02 15:04:05Z07", "2006-01-02 15:04:05 -0700 MST",
	"2006-01-02 15:04", "2006-01-02T15:04", "20060102", "2.1.2006", "2006/1/2", "2.1.2006 15:04:05", "2.1.2006 15:04",
	"2-Jan-2006"}

var slashed = map[dates][]string{
	monthFirst: {"1/2/2006", "1/2/2006 15:04:05", "1/2/2006 3:04:05 PM", "1/2/2006 15:04"},
	dayFirst:   {"2/1/2006", "2/1/2006 15:04:05", "2/1/2006 15:04"},
}

// read parses a time; day means that the text has no time of day.
func (d dates) read(s string) (t time.Time, day bool, err error) {
	s = strings.TrimSpace(s)
	if len(s) <= 40 {
		for _, list := range [][]string{layouts, slashed[d]} {
			for _, layout := range list {
				if t, err := time.Parse(layout, s); err == nil && t.Year() >= 2000 && t.Year() < 2200 {
					return t.UTC(), !strings.Contains(layout, ":"), nil
				}
			}
		}
	}
	return time.Time{}, false, fmt.Errorf("%.40q is not a time such as 2026-11-30T00:00:00Z", s)
}

// datesOf returns the format of a day, if it shows.
func datesOf(s string) (d dates, sure bool) {
	first, rest, ok := strings.Cut(s, "/")
	second, _, _ := strings.Cut(rest, "/")
	switch {
	case !ok || len(first) > 2 || len(second) > 2:
		return monthFirst, false
	case first > "12" && len(first) == 2:
		return dayFirst, true
	}
	return monthFirst, second > "12" && len(second) == 2
}
