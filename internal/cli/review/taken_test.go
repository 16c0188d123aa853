package review

import (
	"strings"
	"testing"
	"time"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/lib/money"
)

// The review has the recommendations whose measurement touches its month, and says what each has saved.
func TestReview_ShowsWhatRecommendationsHaveSaved(t *testing.T) {
	begin := time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC)
	r := &Review{Month: "2026-10", Since: begin, Until: begin.AddDate(0, 1, 0), Over: true}
	at := func(days int) api.TakenRecommendation {
		return api.TakenRecommendation{Name: "idle stop", Team: "vision", Currency: "USD", At: begin.AddDate(0, 0, days), Days: 30,
			Expected: new(money.Picos(12e12)), Saved: new(money.Picos(9e12))}
	}
	unknown := at(2)
	unknown.Team, unknown.Saved, unknown.Expected = "", nil, nil
	r.taken([]api.TakenRecommendation{at(31), at(30), unknown, at(-29), at(-30), at(-60)})
	if len(r.Taken) != 3 {
		t.Errorf("%+v", r.Taken)
	}
	text := r.text(show.Place{})
	for _, want := range []string{"3 recommendations", "idle stop of vision: $9.00 saved, $12.00 expected, in the 30.0 days since 2026-10-31",
		"idle stop: - saved, - expected, in the 30.0 days since 2026-10-03"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s lacks %q", text, want)
		}
	}
	if r.taken(nil); strings.Contains(r.text(show.Place{}), "taken") {
		t.Error("a line about nothing")
	}
}
