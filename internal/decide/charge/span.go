package charge

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// A SpanError names the wrong parameter of a selection and the fix.
type SpanError struct {
	Field string // since, until, booked, except or rented
	Err   error
	Fix   string
}

func (e *SpanError) Error() string { return e.Field + ": " + e.Err.Error() }
func (e *SpanError) Unwrap() error { return e.Err }

// forms lists the accepted layouts of a moment.
var forms = []string{"2006-01", time.DateOnly, time.RFC3339}

const fix = "write a month, a day or an hour in UTC, as in 2026-10, 2026-10-15 or 2026-10-15T08:00:00Z"

// ParseSpan reads a span of time that includes since and excludes until. An empty since means the beginning of the
// ledger, an empty until no end. Both are whole hours, so that adjacent spans add up.
func ParseSpan(since, until string) (s Span, err error) {
	if s.Since, err = parseTime("since", since); err != nil {
		return Span{}, err
	}
	if s.Until, err = parseTime("until", until); err != nil {
		return Span{}, err
	}
	if !s.Until.IsZero() && !s.Since.Before(s.Until) {
		return Span{}, &SpanError{"until", fmt.Errorf("%s is not after %s", until, since),
			"write a later end, or leave it out"}
	}
	return s, nil
}

func parseTime(field, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, form := range forms {
		t, err := time.Parse(form, text)
		switch {
		case err != nil:
		case !t.Truncate(time.Hour).Equal(t):
			return t, &SpanError{field, errors.New(text + " is not a whole hour"), fix}
		case t.Year() < 1970 || t.Year() > 9998:
			return t, &SpanError{field, errors.New(text + " is outside the years 1970 to 9998"), fix}
		default:
			return t.UTC(), nil
		}
	}
	return time.Time{}, &SpanError{field, fmt.Errorf("%.40q is not a time", text), fix}
}

// ParsePeriod reads a period with two ends: a month, a day, or two times joined by two dots, as in
// 2026-10-01..2026-10-15.
func ParsePeriod(field, text string) (s Span, err error) {
	const how = "write a month, a day or a span, as in 2026-10, 2026-10-15 or 2026-10-01..2026-10-15"
	if since, until, ok := strings.Cut(text, ".."); ok && since != "" && until != "" {
		if s, err = ParseSpan(since, until); err != nil {
			return Span{}, &SpanError{field, err, how}
		}
		return s, nil
	}
	if s.Since, err = parseTime(field, text); err != nil || text == "" || len(text) > len(time.DateOnly) {
		return Span{}, &SpanError{field, fmt.Errorf("%.60q is not a period", text), how}
	}
	s.Until = s.Since.AddDate(0, 0, 1)
	if len(text) < len(time.DateOnly) {
		s.Until = NextMonth(s.Since)
	}
	return s, nil
}

// ParseBooked reads the time from which costs are listed by their booking; an empty one is the beginning.
func ParseBooked(text string) (t time.Time, err error) {
	if text == "" {
		return t, nil
	}
	if t, err = time.Parse(time.RFC3339Nano, text); err == nil && (t.Year() < 1970 || t.Year() > 9998) {
		err = errors.New(text + " is outside the years 1970 to 9998")
	}
	if err != nil {
		return t, &SpanError{"booked", fmt.Errorf("%.40q is not a time of booking: %w", text, err),
			"write it in UTC, as in 2026-10-15T08:00:00Z"}
	}
	return t.UTC(), nil
}
