package show_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/cli/show/spending"
	"scrimp/internal/lib/money"
	"scrimp/internal/test/golden"
)

func TestMonthly_MatchesGolden(t *testing.T) {
	v := api.MonthlyCosts{Since: time.Date(2026, 9, 1, 0, 0, 0, 0, time.UTC), Until: now,
		Months: []api.CostMonth{{Month: "2026-09"}, {Month: "2026-10", Whole: true}, {Month: "2026-11"}},
		Workloads: []api.WorkloadCost{
			{Workload: "training", Currency: money.USD, Spent: amount("1234.5"), Months: []money.Amount{amount("200"), amount("1000"), amount("34.5")},
				AMonth: ptr(amount("1000")), Runs: 40, Ended: 38, Succeeded: 30, Median: ptr(amount("12.25")), P90: ptr(amount("90")),
				PerSuccess: ptr(amount("40.5")), GPUHours: 1500.25, PerGPUHour: ptr(amount("0.82")), ListPerGPUHour: ptr(amount("2.45"))},
			{Workload: "session", Currency: money.USD, Spent: amount("3"), Months: []money.Amount{amount("0"), amount("0"), amount("3")},
				AMonth: ptr(amount("0")), Runs: 1},
			{Workload: "(idle machines)", Currency: money.USD, Spent: amount("0.5"), Months: []money.Amount{amount("0.5"), amount("0"), amount("0")},
				AMonth: ptr(amount("0"))},
		}}
	none := api.MonthlyCosts{Since: v.Since}
	fresh := v
	fresh.Months = []api.CostMonth{{Month: "2026-09"}, {Month: "2026-10"}, {Month: "2026-11"}}
	for name, text := range map[string]string{
		"monthly.120": spending.Monthly(v, show.Place{Width: 120, Now: now}), "monthly.80": spending.Monthly(v, show.Place{Width: 80, Now: now}),
		"monthly.piped": spending.Monthly(v, show.Place{}), "monthly-none.80": spending.Monthly(none, show.Place{Width: 80, Now: now}),
		"monthly-fresh.80": spending.Monthly(fresh, show.Place{Width: 80, Now: now}),
	} {
		golden.Check(t, name+".txt", text)
		for line := range strings.Lines(text) {
			if strings.HasSuffix(name, "80") && utf8.RuneCountInString(strings.TrimRight(line, "\n")) > 80 {
				t.Errorf("%s: %s", name, line)
			}
		}
	}
}
