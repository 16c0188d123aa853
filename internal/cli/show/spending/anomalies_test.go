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
