package show_test

import (
	"strings"
	"testing"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/lib/money"
	"scrimp/internal/test/golden"
)

func TestChargeback_IsATableOfTeams(t *testing.T) {
	v := api.Chargeback{Month: "2026-10", Rule: "proportional", Over: true, Whole: true,
		Statements: []api.ChargebackOfTeam{
			{Team: "vision", Currency: money.USD, Own: amount("1200.5"), Uses: map[api.Use]money.Amount{api.Useful: amount("1100"), api.Lost: amount("100.5")},
				Shared: amount("75"), Total: amount("1275.5"), Accrued: amount("1000"), Billed: amount("200.5"), OnDemand: ptr(amount("3000")), Saved: ptr(amount("1799.5")),
				Runs: 12, Succeeded: 10, PerRun: ptr(amount("100.04")), PerSuccess: ptr(amount("120.05")), GPUHours: 400, PerGPUHour: ptr(amount("3")),
				LostToInterrupts: amount("90"), PerEpoch: ptr(amount("4.5"))},
			{Team: "text\x1b[2J", Currency: money.USD, Shared: amount("25"), Total: amount("25")}},
		Pools:  []api.SharedCost{{Name: "(idle machines)", Currency: money.USD, Amount: amount("100"), Divided: amount("100"), Method: "proportional by GPU-hours"}},
		Totals: []api.ChargebackTotal{{Currency: money.USD, Own: amount("1200.5"), Shared: amount("100"), Total: amount("1300.5")}}}
	part := v
	part.Whole, part.Over, part.Pools, part.Totals = false, false, nil, nil
	for name, text := range map[string]string{"chargeback.80": show.Chargeback(v, show.Place{Width: 80, Now: now}), "chargeback.piped": show.Chargeback(v, show.Place{}),
		"chargeback-part.80": show.Chargeback(part, show.Place{Width: 80, Now: now}),
		"fees.80":            show.Fees([]api.Fee{{Name: "tracking", Amount: amount("450"), Currency: money.USD, Since: "2026-10"}}, show.Place{Width: 80, Now: now})} {
		golden.Check(t, name+".txt", text)
		for l := range strings.Lines(text) {
			if strings.HasSuffix(name, ".80") && len([]rune(strings.TrimSuffix(l, "\n"))) > 80 {
				t.Errorf("too wide: %s", l)
			}
		}
	}
}
