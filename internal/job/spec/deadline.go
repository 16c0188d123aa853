package spec

import (
	"fmt"
	"strings"
	"time"
)

// Deadline is a time, or a duration after the submission. Resolve converts both to a time.
type Deadline struct {
	At time.Time
	In time.Duration
	// Zoneless reports that At was written without a time zone: At then holds the clock's figures as UTC, until In.
	Zoneless bool
}

// wallForm is the form in which a time without a zone is written.
const wallForm = "2006-01-02T15:04:05"

// timeForms lists the forms of a time, without its zone. Seconds may be missing.
var timeForms = []string{wallForm, "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04"}

// ParseTime parses a time such as 2026-12-01T18:00Z or 2026-12-01 18:00:30 +01:00. zoneless reports that it names no
// zone: at then holds the clock's figures as UTC.
func ParseTime(text string) (at time.Time, zoneless, ok bool) {
	text = strings.TrimSpace(text)
	if bare, utc := strings.CutSuffix(text, " UTC"); utc {
		text = bare + "Z"
	}
	for _, form := range timeForms {
		for _, zone := range []string{"Z07:00", " Z07:00", ""} {
			t, err := time.Parse(form+zone, text)
			if t = t.UTC(); err == nil && !t.IsZero() && t.Year() >= 1 && t.Year() <= 9999 {
				return t, zone == "", true
			}
		}
	}
	return at, false, false
}

// IsZero reports whether there is no deadline.
func (d Deadline) IsZero() bool { return d.At.IsZero() && d.In == 0 }

// Resolve returns the time for a submission at now, in market time.
func (d Deadline) Resolve(now time.Time) time.Time {
	if d.In > 0 {
		return now.Add(d.In)
	}
	return d.At
}

// Local returns the deadline with a time without a zone read as a time of that zone. time.UTC is the zone of servers,
// which do not know the user's zone: there the time stays without one.
func (d Deadline) Local(zone *time.Location) Deadline {
	if t := d.At; d.Zoneless && zone != time.UTC {
		d.At = time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, zone).UTC()
		d.Zoneless = false
	}
	return d
}

// UnmarshalText parses a span with or without "in" before it, an RFC 3339 time, or a time without a zone.
func (d *Deadline) UnmarshalText(b []byte) error {
	text := strings.TrimSpace(string(b))
	span, isSpan := strings.CutPrefix(text, "in ")
	v, err := ParseDuration(span)
	if isSpan || err == nil {
		if err == nil && v <= 0 {
			err = fmt.Errorf("%q has passed already", b)
		}
		*d = Deadline{In: v}
		return err
	}
	t, zoneless, ok := ParseTime(text)
	if !ok {
		return fmt.Errorf("%q is neither a time with its zone such as 2026-12-01T18:00Z or 2026-12-01 18:00 +01:00 nor "+
			"a span such as in 6h", b)
	}
	*d = Deadline{At: t, Zoneless: zoneless}
	return nil
}

// MarshalText writes the form that UnmarshalText parses.
func (d Deadline) MarshalText() ([]byte, error) {
	switch {
	case d.In > 0:
		return fmt.Appendf(nil, "in %v", d.In), nil
	case d.Zoneless:
		return []byte(d.At.Format(wallForm)), nil
	}
	return []byte(d.At.Format(time.RFC3339Nano)), nil
}

// LocalDeadline rewrites a deadline that was typed at a terminal in the zone: a time without a zone gets it. Other
// texts, also wrong ones, stay as they are for the server to judge.
func LocalDeadline(text string, zone *time.Location) string {
	var d Deadline
	if d.UnmarshalText([]byte(text)) != nil || !d.Zoneless {
		return text
	}
	out, err := d.Local(zone).MarshalText()
	if err != nil {
		return text
	}
	return string(out)
}
