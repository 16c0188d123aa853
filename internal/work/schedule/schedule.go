// Package schedule defines when a pipeline runs: a cron line in a time zone, a number of runs, and an end.
package schedule

import (
	"errors"
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // zones are known on machines that have none

	cron "github.com/netresearch/go-cron"

	"scrimp/internal/work/retrain"
)

// Spec defines when something runs.
type Spec struct {
	// Cron is minute, hour, day of month, month and day of week, as in POSIX. If both day fields are restricted, a day
	// must match one of them. An hour that does not exist when summer time begins counts as the first minute after it;
	// an hour that repeats when summer time ends counts once.
	Cron  string    `json:"cron"`
	Zone  string    `json:"zone,omitempty"` // an IANA name such as Europe/Berlin; empty for UTC
	Runs  int       `json:"runs,omitempty"` // maximum number; 0 for unlimited
	Until time.Time `json:"until,omitzero"` // no run is due later; zero for unlimited
	// NoCatchUp skips what was due while the server was down. Otherwise one run makes up for all of it.
	NoCatchUp bool `json:"no_catch_up,omitempty"`
	// When has the conditions under which a due run begins.
	When retrain.Conditions `json:"when,omitzero"`
	// Notify is the webhook that gets the comparison of each week; empty: nobody does.
	Notify string `json:"notify,omitempty"`
}

// Bounds of a schedule.
const (
	MaxRuns   = 1_000_000
	maxText   = 200 // bytes of a cron line
	years     = 9   // within which it must be due: 29 February recurs after at most eight years
	mostPast  = 1000
	Late      = time.Minute // how late a run may start without counting as missed
	shortForm = cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor | cron.DowOrDom
)

// times computes the due times of a schedule.
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
		return t, fmt.Errorf("%.60q is not a line of cron: write minute, hour, day of month, month and day of week, such as "+
			"0 3 * * 1 for Mondays at 03:00: %w", s.Cron, err)
	}
	return t, nil
}

// Check returns an error for an invalid schedule. The first run must be after now.
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

// after returns the first due time after at, or zero. The library computes without summer time; after converts its
// results to the zone.
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

// real returns the first time at which a clock in the zone shows wall or, if it never does, the time at which it
// continues after the gap; skipped distinguishes the two.
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

// After returns the first due time after at, or zero.
func (s Spec) After(at time.Time) time.Time {
	t, err := s.times()
	if err != nil {
		return time.Time{}
	}
	return t.after(at)
}

// Due returns what is due by now, if the first is due at next: the last due time, the number of missed ones before it
// (at most a thousand), and the next due time.
func (s Spec) Due(next, now time.Time) (last time.Time, missed int, then time.Time) {
	t, err := s.times()
	if err != nil {
		return next, 0, time.Time{}
	}
	last = next
	for then = t.after(last); !then.IsZero() && !then.After(now); then = t.after(last) {
		if missed++; missed == mostPast { // counting stops here
			then = t.after(now)
			break
		}
		last = then
	}
	return last, missed, then
}

// Odd names the day within a year after now on which a scheduled time does not exist in its zone, and when it is due
// instead; it returns "" if there is none.
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
