package show_test

import (
	"strings"
	"testing"
	"time"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/cli/show/group"
	"scrimp/internal/lib/money"
)

// The page of an array shows its deadline and that the market's clock is simulated; once the array is over, it no
// longer offers to stop it.
func TestGroup_ShowsDeadlineAndClock(t *testing.T) {
	now := time.Date(2026, 11, 27, 9, 0, 0, 0, time.UTC)
	by, done := now.Add(90*time.Minute), now
	g := api.Group{ID: "a", Kind: "array", State: "open", Array: &api.Indexes{Step: 1}, Members: 4, AtOnce: 4, User: "ann",
		Submitted: now, Currency: money.USD, Deadline: &by, Speed: 60}
	text := group.Group(g, show.Place{Width: 80, Now: now})
	for _, want := range []string{"2026-11-27 10:30:00 UTC, 1h 30m left", "60 × real time", "scrimp stop a"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	g.Finished, g.State, g.Speed, g.Deadline = &done, "over", 1, nil
	text = group.Group(g, show.Place{Now: now})
	for _, no := range []string{"deadline", "clock", "scrimp stop"} {
		if strings.Contains(text, no) {
			t.Errorf("%q is in\n%s", no, text)
		}
	}
}
