package groups

import (
	"fmt"
	"testing"
	"time"

	"scrimp/internal/decide/state"
	"scrimp/internal/wire/api"
)

// A week is reported once it is over and its costs are final, or a day after its end at the latest. A week that nobody
// could report in time is reported later, unless the schedule no longer keeps all its runs or a month has passed.
func TestEnded_HasEachWeekThatIsOver(t *testing.T) {
	t.Parallel()
	first := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	day := 24 * time.Hour
	for _, c := range []struct {
		open, cut bool // the costs of the first week are, and it lacks runs
		at        time.Duration
		want      string // the weeks, by their numbers
	}{
		{false, false, 7*day - time.Second, ""}, {false, false, 7 * day, "0"}, {true, false, 7 * day, ""},
		{true, false, 8*day - time.Second, ""}, {true, false, 8 * day, "0"}, {false, false, 13 * day, "0"},
		{true, false, 14 * day, "01"}, {false, true, 8 * day, "0"}, {false, true, 14 * day, "1"},
		{false, false, 37 * day, "012"}, {false, false, 38 * day, "12"}, {false, false, 99 * day, "2"},
	} {
		weeks := []api.ScheduleWeek{{Begin: first, CostOpen: c.open}, {Begin: first.Add(7 * day)}, {Begin: first.Add(14 * day)}}
		got := ""
		for _, w := range ended(weeks, c.cut, first.Add(c.at)) {
			got += fmt.Sprint(int(w.Begin.Sub(first) / (7 * day)))
		}
		if got != c.want {
			t.Errorf("after %v, open %v, cut %v: %s, want %s", c.at, c.open, c.cut, got, c.want)
		}
	}
}

// A schedule lacks runs if it has begun and skipped more than it keeps; a kept skip may stand for several.
func TestCut_CountsWhatTheKeptRunsStandFor(t *testing.T) {
	t.Parallel()
	runs := []state.Run{{Group: "a"}, {Same: 3}, {Group: "b"}}
	for skipped, want := range map[int]bool{4: false, 5: true} {
		if got := cut(&state.Schedule{Begun: 2, Skipped: skipped, Runs: runs}); got != want {
			t.Errorf("%d skipped: %v", skipped, got)
		}
	}
}
