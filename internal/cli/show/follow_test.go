package show_test

import (
	"strings"
	"testing"
	"time"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/cli/show/planning"
	"scrimp/internal/lib/money"
)

// A job's cost never decreases on the screen without an explanation.
func TestFollow_ExplainsDecreasingCost(t *testing.T) {
	var f show.Follow
	j := api.Job{ID: "j", State: "running", Currency: money.USD}
	for _, c := range []struct{ spent, want string }{{"0.008771", "$0.008771"},
		{"0.008755", "$0.008755 (corrected from $0.008771: its machine ended earlier than was known, or is billed lower)"},
		{"0.008760", "$0.008760"}, {"0.9541", "$0.954"}, {"0.9539", "$0.954"}, {"0.9504", "$0.950 (corrected from $0.954:"}} {
		j.Spent = amount(c.spent)
		if line := f.Progress(j, show.Place{}); !strings.Contains(line, c.want) || strings.Contains(line, "(") != strings.Contains(c.want, "(") {
			t.Errorf("at %s: %s, want %s", c.spent, line, c.want)
		}
	}
}

// The page of a job on a simulated clock says so and has only real times: the deadline is in a minute of real time, two
// hours of market time. People get their own zone, programs RFC 3339.
func TestJob_HasOneClock(t *testing.T) {
	zone := time.FixedZone("CET", 3600)
	at := now.In(zone)
	left := 7200.0
	deadline, onMarket := now.Add(time.Minute), now.Add(2*time.Hour)
	j := api.Job{ID: "j", State: "running", Speed: 120, Submitted: now.Add(-time.Hour), Deadline: &deadline, DeadlineMarket: &onMarket,
		TimeLeft: &left, Currency: money.USD}
	for _, c := range []struct {
		place show.Place
		want  string
	}{{show.Place{Width: 200, Now: at}, "deadline 2026-03-01 13:01:00 CET, 1m 00s left"}, {show.Place{}, "deadline 2026-03-01T12:01:00Z, 1m 00s left"}} {
		text := strings.Join(strings.Fields(show.Job(j, c.place)), " ")
		for _, want := range []string{c.want, "clock simulated clock, 120 × real time; times here are real time"} {
			if !strings.Contains(text, want) {
				t.Errorf("%q is not in %s", want, text)
			}
		}
	}
	if line := show.Progress(api.Job{ID: "j", State: "queued", TimeLeft: new(-32.0), Currency: money.USD}, show.Place{}); !strings.Contains(line, "32s late") {
		t.Error(line)
	}
	if text := planning.Clock(j.Speed); !strings.HasPrefix(text, "Market time, simulated clock, 120 × real time") {
		t.Errorf("explain says %q of its times", text)
	}
	j.Speed = 1
	if text := planning.Clock(j.Speed); text != "" {
		t.Errorf("explain says %q of a real clock", text)
	}
	if text := show.Job(j, show.Place{}); strings.Contains(text, "clock") {
		t.Errorf("a real clock is called simulated: %s", text)
	}
}
