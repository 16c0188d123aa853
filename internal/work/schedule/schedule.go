// Package schedule says when a pipeline runs by the clock: a line of cron in a time zone, how many runs, and until
// when.
package schedule

import (
	"errors"
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // zones are known on machines that have none

	cron "github.com/netresearch/go-cron"
)

// Spec is when something runs.
type Spec struct {
	// Cron is minute, hour, day of month, month and day of week, as POSIX has them. A day has to fit one of the two where
	// both are restricted. An hour that does not exist, as summer time begins, is taken as the first minute after it;
	// what comes twice, as summer time ends, counts once.
	Cron  string    `json:"cron"`
	Zone  string    `json:"zone,omitempty"` // a name of the IANA database, such as Europe/Berlin; "": UTC
	Runs  int       `json:"runs,omitempty"` // at most so many; 0: without end
	Until time.Time `json:"until,omitzero"` // no run is due later; zero: without end
	// NoCatchUp skips what was due while the server was down. Else one run makes up for all of it.
	NoCatchUp bool `json:"no_catch_up,omitempty"`
}

// The bounds of a schedule.
const (
	MaxRuns   = 1_000_000
	maxText   = 200 // bytes of a line of cron
	years     = 9   // within which it must be due: 29 February comes after eight years at the latest
	mostPast  = 1000
	Late      = time.Minute // by which a run may begin after it was due without having been missed
	shortForm = cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor | cron.DowOrDom
)

// times are those at which a schedule is due.
type times struct {
	cron.Schedule
	zone *time.Location
}

func (s Spec) times() (t times, err error) {
	switch {
	case strings.TrimSpace(s.Cron) == "":
		return t, errors.New("write when it runs as a line of cron, such as 0 3 * * *: each day at 03:00")
	case len(s.Cron) > maxText:
		return t, fmt.Errorf("the line of cron has %d bytes: write at most %d", len(s.Cron), maxText)
	case strings.Contains(s.Cron, "TZ="):
		return t, errors.New("write the time zone as zone, not into the line of cron")
	case strings.HasPrefix(s.Cron, "@every"):
		return t, errors.New("@every is not supported: write a line of cron, such as */30 * * * * for each half hour")
	case s.Zone == "Local":
		return t, errors.New("zone Local is another on each machine: write its name, such as Europe/Berlin")
	}
	if t.zone, err = time.LoadLocation(s.Zone); err != nil {
		return t, fmt.Errorf("zone %.60q is unknown: write a name of the IANA database, such as Europe/Berlin", s.Zone)
	}
	p, err := cron.TryNewParser(shortForm)
	if err != nil {
		return t, err
	}
	t.Schedule, err = p.WithMaxSearchYears(years).Parse("TZ=UTC " + s.Cron)
	if err != nil {
		return t, fmt.Errorf("%.60q is no line of cron: write minute, hour, day of month, month and day of week, such as "+
			"0 3 * * 1 for Mondays at 03:00: %w", s.Cron, err)
	}
	return t, nil
}

// Check says what is wrong with it. The first run must come after now.
func (s Spec) Check(now time.Time) error {
	t, err := s.times()
	if err != nil {
		return err
	}
	if s.Runs < 0 || s.Runs > MaxRuns {
		return fmt.Errorf("%d runs: write 1 to %d, or leave runs out", s.Runs, MaxRuns)
	}
	next := t.after(now)
	switch {
	case next.IsZero():
		return fmt.Errorf("%s is never due: no month has that day", s.Cron)
	case !s.Until.IsZero() && next.After(s.Until):
		return fmt.Errorf("it is due at %s first, which is after until: write a later one",
			next.Format("2006-01-02 15:04 MST"))
	}
	return nil
}

// after is the first time after one at which it is due; zero: there is none. The library counts on a clock without
// summer time, and here it gets its zone.
func (t times) after(at time.Time) time.Time {
	there := at.In(t.zone)
	wall := time.Date(there.Year(), there.Month(), there.Day(), there.Hour(), there.Minute(), there.Second(), 0, time.UTC)
	for wall = t.Next(wall); !wall.IsZero(); wall = t.Next(wall) {
		if next, _ := t.real(wall); next.After(at) {
			return next
		}
	}
	return time.Time{}
}

// real is when a clock of the zone shows a time first, or, where it never does, when it goes on after that; skipped
// tells the two apart.
func (t times) real(wall time.Time) (at time.Time, skipped bool) {
	at = time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), 0, 0, t.zone)
	since, until := at.ZoneBounds()
	if at.Hour() != wall.Hour() || at.Minute() != wall.Minute() {
		if !until.IsZero() && until.Sub(at) < at.Sub(since) {
			return until.In(t.zone), true
		}
		return since.In(t.zone), true
	}
	if since.IsZero() {
		return at, false
	}
	_, before := since.Add(-1).In(t.zone).Zone()
	_, now := at.Zone()
	if first := at.Add(-time.Duration(before-now) * time.Second); before > now && first.Before(since) {
		return first, false
	}
	return at, false
}

// After is the first time after one at which it is due; zero: there is none.
func (s Spec) After(at time.Time) time.Time {
	t, err := s.times()
	if err != nil {
		return time.Time{}
	}
	return t.after(at)
}

// Due says what is due by now, where the first is due at next: the last time at which it was, how many came before
// that unseen, at most a thousand, and when it is due again.
func (s Spec) Due(next, now time.Time) (last time.Time, missed int, then time.Time) {
	t, err := s.times()
	if err != nil {
		return next, 0, time.Time{}
	}
	last = next
	for then = t.after(last); !then.IsZero() && !then.After(now); then = t.after(last) {
		if missed++; missed == mostPast { // from here on nobody counts
			then = t.after(now)
			break
		}
		last = then
	}
	return last, missed, then
}

// Odd says on which day of the year after now a time of the schedule does not exist in its zone, and when it is due
// instead; "": on none.
func (s Spec) Odd(now time.Time) string {
	t, err := s.times()
	if err != nil {
		return ""
	}
	const most = 10_000
	at := now.In(t.zone)
	wall := time.Date(at.Year(), at.Month(), at.Day(), at.Hour(), at.Minute(), 0, 0, time.UTC)
	for range most {
		if wall = t.Next(wall); wall.IsZero() || wall.Sub(now) > 366*24*time.Hour {
			return ""
		}
		if next, skipped := t.real(wall); skipped {
			return fmt.Sprintf("%s does not exist in %s, where summer time begins: it runs at %s",
				wall.Format("2006-01-02 15:04"), t.zone, next.Format("15:04"))
		}
	}
	return ""
}
