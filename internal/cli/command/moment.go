package command

import (
	"errors"
	"fmt"
	"time"

	"scrimp/internal/job/spec"
)

// Moment parses a past time: a span before now, or a time. A time without a zone is in the zone of this computer.
func Moment(text string, now time.Time) (time.Time, error) {
	switch span, err := spec.ParseDuration(text); {
	case err == nil:
		return now.Add(-span), nil
	case errors.Is(err, spec.ErrTooLong):
		return time.Time{}, fmt.Errorf("%w: write a shorter span until now, such as 7d", err)
	}
	at, zoneless, ok := spec.ParseTime(text)
	if !ok {
		return at, fmt.Errorf("%.40q is neither a span until now, such as 10m or 7d, nor a time, such as 2026-12-01T18:00Z",
			text)
	}
	if zoneless {
		at = time.Date(at.Year(), at.Month(), at.Day(), at.Hour(), at.Minute(), at.Second(), 0, time.Local)
	}
	return at, nil
}
