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

// Expected and measured savings stand side by side; what is unknown is "-".
func TestTaken_ShowsExpectedBesideSaved(t *testing.T) {
	at := time.Date(2026, 10, 15, 8, 0, 0, 0, time.UTC)
	one, two := money.Picos(12_340_000_000_000), money.Picos(-2e12)
	list := []api.TakenRecommendation{{Name: "spot share", Team: "vision\x1b", Currency: "USD", At: at, Days: 30, Over: true, Monthly: &one, Expected: &one,
		Saved: &two, Unit: "a run"}, {Name: "spot share", Currency: "USD", At: at, Days: 2.25, Unit: "a run"}}
	text := spending.Taken(list, show.Place{Width: 80, Now: at})
	for _, want := range []string{"$12.34", "-$2.00", "(all)", "2.2", "2026-10-15", "spot share: costs are compared by a run.\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q lacks %q", text, want)
		}
	}
	for line := range strings.SplitSeq(text, "\n") {
		if draw.Width(line) > 80 || strings.Contains(line, "\x1b") {
			t.Errorf("%d columns: %s", draw.Width(line), line)
		}
	}
	if spending.Taken(nil, show.Place{}) != "" {
		t.Error("a table of nothing")
	}
	if text := spending.Took(list[0], show.Place{}); !strings.HasPrefix(text, "spot share is taken: $12.34 a month is expected by it alone.") {
		t.Errorf("%q", text)
	}
	if text := spending.Took(list[1], show.Place{}); !strings.HasPrefix(text, "spot share is taken: its saving is unknown.") {
		t.Errorf("%q", text)
	}
}
