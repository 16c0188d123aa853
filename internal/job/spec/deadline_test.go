package spec

import (
	"strings"
	"testing"
	"time"
)

// A user writes a deadline as a span, with or without "in", or as a time; a time without a zone is in the user's zone.
func TestDeadline_ReadsSpansAndLocalTimes(t *testing.T) {
	zone := time.FixedZone("X", 2*3600)
	now := time.Date(2026, 11, 26, 9, 0, 0, 0, zone)
	for text, want := range map[string]string{
		"6h": "2026-11-26T13:00:00Z", "in 6h": "2026-11-26T13:00:00Z", "20d": "2026-12-16T07:00:00Z",
		"in 2 hours": "2026-11-26T09:00:00Z", "90 min": "2026-11-26T08:30:00Z", "1 day 12 h": "2026-11-27T19:00:00Z",
		"1 week": "2026-12-03T07:00:00Z", "2026-11-26 18:00": "2026-11-26T16:00:00Z",
		"2026-11-26T18:00:30": "2026-11-26T16:00:30Z", "2026-11-26T18:00:00Z": "2026-11-26T18:00:00Z",
		"2026-11-26T18:00:00-05:00": "2026-11-26T23:00:00Z", "2026-11-26T18:00Z": "2026-11-26T18:00:00Z",
		"2026-11-26T18:00+01:00": "2026-11-26T17:00:00Z", "2026-11-26 18:00 +01:00": "2026-11-26T17:00:00Z",
		"2026-11-26 18:00Z": "2026-11-26T18:00:00Z", "2026-11-26 18:00:30 UTC": "2026-11-26T18:00:30Z",
	} {
		j, _, err := Parse(Run, "job.yaml", []byte("command: a\ndeadline: "+text), "", now)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if at := j.Deadline.Resolve(now).UTC().Format(time.RFC3339); at != want {
			t.Errorf("%s is %s, want %s", text, at, want)
		}
		set, err := FromCommand([]string{"a"}).Set(Run, now, Setting{Flag: "--deadline", Field: "deadline", Text: text})
		if err != nil || set.Deadline != j.Deadline {
			t.Errorf("--deadline %s: %v, %v, want %v", text, set.Deadline, err, j.Deadline)
		}
		sent := LocalDeadline(text, zone)
		again, _, err := Parse(Run, "job.yaml", []byte("command: a\ndeadline: "+sent), "", now.UTC())
		if err != nil || again.Deadline.Resolve(now).UTC() != j.Deadline.Resolve(now).UTC() {
			t.Errorf("%s is sent as %s, which a server reads as %v: %v", text, sent, again.Deadline, err)
		}
	}
}

// A server does not know the user's zone, so it refuses a time without one.
func TestDeadline_WithoutZoneIsRefusedInUTC(t *testing.T) {
	now := time.Date(2026, 11, 26, 9, 0, 0, 0, time.UTC)
	for _, text := range []string{"2026-11-26 18:00", "2026-11-26T18:00", "2026-11-26 18:00:00"} {
		_, _, err := ParseJSON(Run, []byte(`{"command": "a", "deadline": "`+text+`"}`), "", now)
		if err == nil || !strings.Contains(err.Error(), "names no time zone") {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{"6", "tomorrow", "18:00", "2026-11-26", "in h", "6 parsecs", "2h 1d", "1d1d", "-6h", "in 0h",
		"1e3h", "9999999d"} {
		if _, _, err := Parse(Run, "job.yaml", []byte("command: a\ndeadline: "+text), "", now); err == nil {
			t.Errorf("%q is read", text)
		}
	}
}
