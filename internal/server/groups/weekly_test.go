package groups

import (
	"testing"
	"time"

	"scrimp/internal/wire/api"
)

// A week is reported once it is over and its costs are final, or a day after its end at the latest.
func TestEnded_WaitsForTheCostsOfAWeek(t *testing.T) {
	t.Parallel()
	first := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	second := first.AddDate(0, 0, 7)
	day := 24 * time.Hour
	for _, c := range []struct {
		open  bool // the costs of the first week are
		at    time.Duration
		begin time.Time // zero: none is reported
	}{
		{false, 7*day - time.Second, time.Time{}}, {false, 7 * day, first}, {true, 7 * day, time.Time{}},
		{true, 8*day - time.Second, time.Time{}}, {true, 8 * day, first}, {false, 13 * day, first}, {true, 14 * day, second},
	} {
		weeks := []api.ScheduleWeek{{Begin: first, CostOpen: c.open}, {Begin: second}}
		w, ok := ended(weeks, first.Add(c.at))
		if ok != !c.begin.IsZero() || ok && !w.Begin.Equal(c.begin) {
			t.Errorf("after %v, open %v: %v, %v, want %v", c.at, c.open, w.Begin, ok, c.begin)
		}
	}
}
