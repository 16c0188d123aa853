package spending_test

import (
	"strings"
	"testing"
	"time"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/cli/show/spending"
	"scrimp/internal/lib/money"
)

// A team that takes no part wants nothing rather than 0 %, one that waits under its guarantee says so, and whoever sees
// some teams only reads that the parts are of all.
func TestShares_ExplainTheirRows(t *testing.T) {
	t.Parallel()
	text := api.QueueShare{Team: "text", Weight: 1, Set: true, Wanted: 1, Waits: true, Guarantee: 5e12}
	idle := api.QueueShare{Team: "idle", Weight: 1}
	out := func(list ...api.QueueShare) string {
		return spending.Shares(api.QueueShares{Shared: true, Teams: list, Currency: money.USD}, show.Place{Width: 120})
	}
	all := out(text, idle)
	_, row, _ := strings.Cut(all, "\nidle")
	if cells := strings.Fields(row); len(cells) < 2 || cells[1] != "-" ||
		!strings.Contains(all, "waits: under its guarantee") || strings.Contains(all, "you see some") {
		t.Errorf("all teams:\n%s", all)
	}
	text.Wanted = 0.5
	if one := out(text); !strings.Contains(one, "you see some of them") {
		t.Errorf("one team:\n%s", one)
	}
	if strings.Contains(all, "%, ") {
		t.Errorf("a team without a deadline has a share of missed ones:\n%s", all)
	}
	part := 0.25
	text.Met, text.Missed, text.MissShare = 3, 1, &part
	if one := out(text, idle); !strings.Contains(one, "25.0%, 1 of 4") {
		t.Errorf("one of four missed its deadline:\n%s", one)
	}
	v := api.QueueShares{Shared: true, HalfLife: 168 * time.Hour, Teams: []api.QueueShare{text, idle}}
	if line := show.Missed(v, show.Place{Width: 120}); line != "Deadlines missed in 7d 00h: text 25.0%, 1 of 4.\n" {
		t.Errorf("under the queue: %q", line)
	}
	if v.Teams = v.Teams[1:]; show.Missed(v, show.Place{}) != "" {
		t.Error("no team had a deadline, and a line says something")
	}
	text.Burn = 5e12
	if one := out(text); strings.Contains(one, "guarantee\n") {
		t.Errorf("at its guarantee:\n%s", one)
	}
}
