package spending_test

import (
	"strings"
	"testing"
	"time"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/cli/show/spending"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
)

func TestAnomalies_FitsTheTerminal(t *testing.T) {
	at := time.Date(2026, 10, 15, 8, 0, 0, 0, time.UTC)
	v := api.Anomalies{Since: at, Anomalies: []api.Anomaly{{Kind: "fall-back to on-demand", Team: "research-vision", About: "research-vision",
		Since: at, Found: at, AtStake: money.Picos(1_234_560_000_000_000), Currency: "USD", Why: "five attempts\x1b[31m began on on-demand"},
		{Kind: "price jump", Team: "nlp", About: "aws us-east-1 g5.12xlarge spot", Since: at, Found: at, Until: &at, Currency: "USD",
			Why: "an hour costs 5.700, 60 % above the median of the week before: see scrimp explain JOB, and scrimp offers for others"}}}
	text := spending.Anomalies(v, show.Place{Width: 80, Now: at})
	for _, line := range strings.Split(text, "\n") {
		if draw.Width(line) > 80 || strings.Contains(line, "\x1b") {
			t.Errorf("%d columns: %s", draw.Width(line), line)
		}
	}
	if !strings.Contains(text, "$1234.56") || !strings.Contains(text, "goes on") && !strings.Contains(text, "fall-back") {
		t.Errorf("%s", text)
	}
	if text := spending.Anomalies(api.Anomalies{Since: at}, show.Place{Width: 80}); text != "No incidents since 2026-10-15 08:00 UTC.\n" {
		t.Errorf("%q", text)
	}
}

// The list names each incident with the threshold that it met, counts what is left out, and says why a threshold
// differs from the standard.
func TestAnomalies_SaysThresholdsAndWhatIsLeftOut(t *testing.T) {
	at := time.Date(2026, 10, 15, 8, 0, 0, 0, time.UTC)
	why := api.AnomalyAnswer{Why: "kept\x1b[31m warm", By: "ann", At: at}
	v := api.Anomalies{Since: at, Hidden: map[string]int{"planned": 2, "snoozed": 1}, Thresholds: []api.AnomalyThreshold{{Team: "vision",
		Kind: "idle machine", Factor: 1.25, Threshold: "no task for 56.2 min", Standard: "no task for 45 min", Dismissed: 1, Last: why}}}
	text := spending.Anomalies(v, show.Place{Width: 80, Now: at})
	want := "No incidents since 2026-10-15 08:00 UTC.\n\nLeft out: 2 planned, 1 snoozed. See --all.\n\n" +
		"Threshold of idle machine in vision: no task for 56.2 min. It is 1.25 times the\nstandard (no task for 45 min), after 1 dismissed " +
		"and 0 confirmed. The last was\ndismissed by ann, 2026-10-15: kept�[31m warm.\n"
	if text != want {
		t.Errorf("%q, want %q", text, want)
	}
	a := api.Anomaly{Name: "a-0123456789", Kind: "idle machine", Team: "vision", Since: at, Found: at, Currency: "USD", Factor: 0.8,
		Threshold: "no task for 36 min", Why: "w", State: "snoozed", SnoozedUntil: &at, Answer: &api.AnomalyAnswer{Confirmed: true, By: "bob", At: at}}
	text = spending.Anomalies(api.Anomalies{Since: at, Anomalies: []api.Anomaly{a}}, show.Place{Now: at})
	if want := "   a-0123456789, threshold: no task for 36 min (0.8 times the standard); snoozed until 2026-10-15 08:00 UTC; confirmed by bob, " +
		"2026-10-15.\n"; !strings.HasSuffix(text, want) {
		t.Errorf("%q, want %q", text, want)
	}
	for state, want := range map[string]string{"snoozed": "a-0123456789 is snoozed until 2026-10-15 08:00 UTC.\n", "": "a-0123456789 is no longer snoozed.\n",
		"dismissed": "a-0123456789 is dismissed. The answer counts in the threshold of idle machine in vision, which scrimp anomalies shows.\n"} {
		a.State, a.Answer = state, nil
		if state == "dismissed" {
			a.Answer = &why
		}
		if got := spending.Decided(a, show.Place{}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	list := []api.PlannedAnomalies{{Name: "p-1", Since: at, Until: at.Add(time.Hour), Team: "vision", Job: "fit", Why: "a test\x1b", By: "ann"}, {Name: "p-2"}}
	text = spending.Planned(list, show.Place{Width: 120})
	if !strings.Contains(text, "2026-10-15 09:00") || !strings.Contains(text, "team vision, job fit") || !strings.Contains(text, "all teams") ||
		strings.Contains(text, "\x1b") || !strings.HasPrefix(spending.Planned(nil, show.Place{}), "Nothing is planned.") {
		t.Errorf("%s", text)
	}
}
