// Package hours holds hours of the day, such as 22:00 to 06:00.
package hours

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

var (
	form       = regexp.MustCompile(`^([^-–\s]+)\s*[-–]\s*([^-–+Zz\s]+)\s*(\S*)$`)
	clockForm  = regexp.MustCompile(`^([01]?[0-9]|2[0-4]):([0-5][0-9])$`)
	offsetForm = regexp.MustCompile(`^[+-](0?[0-9]|1[0-4])(?::?([0-5][0-9]))?$`)
)

// Errors of Parse.
var (
	ErrForm  = errors.New("write hours such as 22:00-06:00, with an offset such as +02:00 unless they are in UTC")
	ErrEmpty = errors.New("its end equals its start")
)

// Parse parses a window such as 22:00-06:00 +02:00. 24:00 is the end of a day, and Z and UTC are an offset of zero. The
// error names the invalid part.
func Parse(text string) (Window, error) {
	parts := form.FindStringSubmatch(strings.TrimSpace(text))
	if parts == nil {
		return Window{}, wrong(text, "not two times of the day with a dash between them")
	}
	var w Window
	for i, at := range []*time.Duration{&w.From, &w.Until} {
		d, ok := span(clockForm, parts[1+i])
		if *at = d % day; !ok || d > day {
			return Window{}, wrong(parts[1+i], "not a time of the day")
		}
		if i == 0 && d == day {
			return Window{}, wrong(parts[1], "the end of a day, and a window begins at 00:00")
		}
	}
	if zone := parts[3]; !slices.Contains([]string{"", "UTC", "Z", "z"}, zone) {
		d, ok := span(offsetForm, zone)
		if !ok {
			return Window{}, wrong(zone, "not an offset from UTC")
		}
		if w.Offset = d; zone[0] == '-' {
			w.Offset = -d
		}
	}
	if parts[2] == "24:00" && w.Always() {
		return Window{}, nil // the whole day
	}
	if w.Always() {
		return Window{}, ErrEmpty
	}
	return w, nil
}

// span returns the hours and minutes of a text that has the form.
func span(form *regexp.Regexp, text string) (time.Duration, bool) {
	parts := form.FindStringSubmatch(text)
	if parts == nil {
		return 0, false
	}
	hour, _ := strconv.Atoi(parts[1])   // the form guarantees it
	minute, _ := strconv.Atoi(parts[2]) // "" is zero
	return time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute, true
}

// wrong returns an error about a part of a window.
func wrong(part, why string) error { return fmt.Errorf("%.40q is %s: %w", part, why, ErrForm) }

// Window is hours of the day. The zero window is always open.
type Window struct {
	From   time.Duration `json:"from_ns"`             // after midnight
	Until  time.Duration `json:"until_ns"`            // after midnight; before From: on the next day
	Offset time.Duration `json:"offset_ns,omitempty"` // of its clock from UTC
}

const day = 24 * time.Hour

// Always reports whether the window never closes.
func (w Window) Always() bool { return w.From == w.Until }

// Length is how long the window is open each day.
func (w Window) Length() time.Duration {
	if w.Always() {
		return day
	}
	return (w.Until - w.From + day) % day
}

// opened returns the last opening at or before t.
func (w Window) opened(t time.Time) time.Time {
	since := t.Add(w.Offset - w.From)
	return since.UTC().Truncate(day).Add(w.From - w.Offset).In(t.Location())
}

// Closes returns when the window closes that is open at t. It returns false if the window is closed or never closes.
func (w Window) Closes(t time.Time) (time.Time, bool) {
	if w.Always() {
		return time.Time{}, false
	}
	at := w.opened(t).Add(w.Length())
	return at, t.Before(at)
}

// Opens returns the first opening after t.
func (w Window) Opens(t time.Time) time.Time { return w.opened(t).Add(day) }

// Between returns how long the window is open between from and to, and how often it closes between them.
func (w Window) Between(from, to time.Time) (open time.Duration, closings int) {
	if w.Always() || !to.After(from) {
		return max(0, to.Sub(from)), 0
	}
	days := int(to.Sub(from) / day)
	open, closings = time.Duration(days)*w.Length(), days
	from = from.Add(time.Duration(days) * day)
	for at := w.opened(from); at.Before(to); at = at.Add(day) {
		until := at.Add(w.Length())
		first, last := at, until
		if first.Before(from) {
			first = from
		}
		if last.After(to) {
			last = to
		}
		open += max(0, last.Sub(first))
		if until.After(from) && until.Before(to) {
			closings++
		}
	}
	return open, closings
}

// Deadline returns from now on a deadline as if the window stayed open: now plus the hours that it is open before the
// deadline, less a restart for each closing. A zero deadline stays zero.
func (w Window) Deadline(now, deadline time.Time, restart time.Duration) time.Time {
	if w.Always() || deadline.IsZero() || !deadline.After(now) {
		return deadline
	}
	open, closings := w.Between(now, deadline)
	return now.Add(open - time.Duration(closings)*restart)
}
