package spec

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// units maps the names of units of time to the one that time.ParseDuration reads, and how many of that one they are.
var units = map[string]struct {
	name string
	n    time.Duration
}{
	"ns": {"ns", 1}, "us": {"us", 1}, "µs": {"µs", 1}, "ms": {"ms", 1},
	"s": {"s", 1}, "sec": {"s", 1}, "secs": {"s", 1}, "second": {"s", 1}, "seconds": {"s", 1},
	"m": {"m", 1}, "min": {"m", 1}, "mins": {"m", 1}, "minute": {"m", 1}, "minutes": {"m", 1},
	"h": {"h", 1}, "hr": {"h", 1}, "hrs": {"h", 1}, "hour": {"h", 1}, "hours": {"h", 1},
	"d": {"h", 24}, "day": {"h", 24}, "days": {"h", 24},
	"w": {"h", 168}, "week": {"h", 168}, "weeks": {"h", 168},
}

// ParseDuration parses a duration with its units, each a letter or a word: 90s, 1h30m, 1.5d, "2 hours", "1 day 12 h".
// A day has 24 hours and a week 7 days; both come before other units. Negative durations are errors.
func ParseDuration(s string) (time.Duration, error) {
	bad := fmt.Errorf("%q is not a span with its unit, such as 90s, 1h30m or 2d", s)
	rest := strings.TrimSpace(s)
	if rest == "" {
		return 0, bad
	}
	var sum time.Duration
	for last := math.MaxInt; rest != ""; {
		number := rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789."))]
		word := strings.TrimLeft(rest[len(number):], " ")
		after := strings.TrimLeftFunc(word, func(c rune) bool { return c >= 'a' && c <= 'z' || c == 'µ' })
		u, ok := units[word[:len(word)-len(after)]]
		one, err := time.ParseDuration(number + u.name)
		n := int(u.n)
		if f, is := strconv.ParseFloat(number, 64); ok && err != nil && n <= last && (is == nil || math.IsInf(f, 1)) {
			return 0, tooLong(s) // the number is one, so only its size is wrong
		}
		if !ok || err != nil || n > last || n == last && n > 1 {
			return 0, bad
		}
		last = n
		if one > math.MaxInt64/u.n || sum > math.MaxInt64-one*u.n {
			return 0, tooLong(s)
		}
		sum += one * u.n
		rest = strings.TrimLeft(after, " ")
	}
	return sum, nil
}

// ErrTooLong is the error for a span that no clock can hold.
var ErrTooLong = errors.New("is longer than 290 years")

func tooLong(s string) error { return fmt.Errorf("%.40q %w", s, ErrTooLong) }
