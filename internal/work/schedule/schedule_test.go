package schedule

import (
	"strings"
	"testing"
	"time"
)

func at(t *testing.T, text string) time.Time {
	t.Helper()
	v, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestAfter(t *testing.T) {
	for _, c := range []struct{ cron, zone, from, want string }{
		{"0 3 * * *", "", "2026-11-26T03:00:00Z", "2026-11-27T03:00:00Z"},
		{"0 3 * * *", "Europe/Berlin", "2026-11-26T00:00:00Z", "2026-11-26T02:00:00Z"},
		{"0 3 * * *", "Europe/Berlin", "2026-07-01T00:00:00Z", "2026-07-01T01:00:00Z"},
		{"*/15 * * * *", "", "2026-11-26T03:14:59Z", "2026-11-26T03:15:00Z"},
		{"0 0 29 2 *", "", "2026-01-01T00:00:00Z", "2028-02-29T00:00:00Z"},
		{"0 0 29 2 *", "", "2096-03-01T00:00:00Z", "2104-02-29T00:00:00Z"},  // 2100 is not a leap year
		{"0 9 1 * MON", "", "2026-11-26T00:00:00Z", "2026-11-30T09:00:00Z"}, // the first, or a Monday
		{"@weekly", "", "2026-11-26T00:00:00Z", "2026-11-29T00:00:00Z"},
		// In Berlin, 2027-03-28 has no 02:30, and 2026-10-25 has it twice.
		{"30 2 * * *", "Europe/Berlin", "2027-03-27T12:00:00Z", "2027-03-28T01:00:00Z"},
		{"30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", "2026-10-25T00:30:00Z"},
		{"30 2 * * *", "Europe/Berlin", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"},
	} {
		if got := (Spec{Cron: c.cron, Zone: c.zone}).After(at(t, c.from)); !got.Equal(at(t, c.want)) {
			t.Errorf("%s in %q after %s is due at %s, want %s", c.cron, c.zone, c.from, got.UTC(), c.want)
		}
	}
}

func TestCheck_RefusesWhatNeverRuns(t *testing.T) {
	now := at(t, "2026-11-26T12:00:00Z")
	for _, c := range []struct {
		spec Spec
		want string
	}{
		{Spec{Cron: "0 3 * * *", Zone: "Europe/Berlin", Runs: 3, Until: now.AddDate(0, 0, 1)}, ""},
		{Spec{Cron: " "}, "line of cron"},
		{Spec{Cron: "0 3 * *"}, "not a line of cron"},
		{Spec{Cron: "61 3 * * *"}, "not a line of cron"},
		{Spec{Cron: "0 0 30 2 *"}, "never due"},
		{Spec{Cron: "@every 1s"}, "not supported"},
		{Spec{Cron: "CRON_TZ=UTC 0 3 * * *"}, "as zone"},
		{Spec{Cron: strings.Repeat("1,", 200) + "1 * * * *"}, "bytes"},
		{Spec{Cron: "0 3 * * *", Zone: "Mars/Base"}, "unknown"},
		{Spec{Cron: "0 3 * * *", Zone: "Local"}, "each machine"},
		{Spec{Cron: "0 3 * * *", Runs: -1}, "-1 runs"},
		{Spec{Cron: "0 3 * * *", Until: now}, "after until"},
	} {
		err := c.spec.Check(now)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.spec, err, c.want)
		}
	}
}

// The number of missed runs equals a simple count.
func TestDue_CountsWhatWasMissed(t *testing.T) {
	first := at(t, "2026-11-26T00:00:00Z")
	s := Spec{Cron: "7 */3 * * *", Zone: "America/New_York"}
	for hours := range 400 {
		next, now := s.After(first), first.Add(24*time.Hour+time.Duration(hours)*17*time.Minute)
		last, missed, then := s.Due(next, now)
		var all []time.Time
		for x := next; !x.After(now); x = s.After(x) {
			all = append(all, x)
		}
		if !last.Equal(all[len(all)-1]) || missed != len(all)-1 || !then.Equal(s.After(last)) {
			t.Fatalf("by %s: %s, %d missed, then %s; want %v", now, last, missed, then, all)
		}
	}
	last, missed, then := Spec{Cron: "* * * * *"}.Due(first, first.AddDate(2, 0, 0))
	if missed != 1000 || !then.After(first.AddDate(2, 0, 0)) || last.Before(first) {
		t.Errorf("after two years: %s, %d missed, then %s", last, missed, then)
	}
}

func TestOdd_NamesTheHourThatDoesNotExist(t *testing.T) {
	now := at(t, "2026-11-26T12:00:00Z")
	for _, c := range []struct{ cron, zone, want string }{
		{"30 2 * * *", "Europe/Berlin", "2027-03-28 02:30 does not exist in Europe/Berlin, where summer time begins: it runs at 03:00"},
		{"0 3 * * *", "Europe/Berlin", ""},
		{"30 2 * * *", "", ""},
		{"30 2 * * MON", "Europe/Berlin", ""},
	} {
		if got := (Spec{Cron: c.cron, Zone: c.zone}).Odd(now); got != c.want {
			t.Errorf("%s in %q: %q, want %q", c.cron, c.zone, got, c.want)
		}
	}
}
