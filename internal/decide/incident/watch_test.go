package incident

import (
	"slices"
	"strings"
	"testing"
	"time"

	"scrimp/internal/lib/money"
)

// An alert keeps its jobs in a list of its own: the rule that raises it goes on with its list, in the order of time.
func TestSay_LeavesTheListOfTheRule(t *testing.T) {
	w := newWatch(money.USD)
	w.now = time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC)
	jobs := []string{"c", "a", "c", "b"}
	w.say(said{kind: FallBack, team: "t", about: "t", small: true, jobs: jobs})
	if got := w.alerts()[0].Jobs; !slices.Equal(got, []string{"a", "b", "c"}) || !slices.Equal(jobs, []string{"c", "a", "c", "b"}) {
		t.Errorf("the alert has %v, and the rule %v", got, jobs)
	}
}

// The text of a fall-back names the newest job that began on on-demand, and says that spot was usual.
func TestFallBacks_NameTheNewestJob(t *testing.T) {
	w := newWatch(money.USD)
	w.now = time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC)
	r, is := newPrices().(*prices)
	if !is {
		t.Fatal("the rule of prices has another type")
	}
	r.falls["t"] = &fall{sure: fallSure, jobs: []string{"z", "a", "m"}, begun: 20, onDemand: 2}
	for range 2 { // the second slot finds the list as it was
		r.fallBacks(w)
	}
	if why := w.alerts()[0].Why; !strings.Contains(why, "the last 3 attempts that count began on on-demand instead of spot; before them it was 10 %") ||
		!strings.HasSuffix(why, "scrimp explain m") {
		t.Error(why)
	}
	if got := r.falls["t"].jobs; !slices.Equal(got, []string{"z", "a", "m"}) {
		t.Errorf("the rule has %v", got)
	}
}
