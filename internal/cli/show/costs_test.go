package show_test

import (
	"testing"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/cli/show/spending"
	"scrimp/internal/lib/money"
	"scrimp/internal/test/golden"
)

func TestCosts_ShowSum(t *testing.T) {
	v := api.Costs{By: "team", Until: now, Lines: []api.CostLine{
		{Name: "vision", Currency: money.USD, Spent: amount("1234.567"), Jobs: 40, Live: 2,
			Uses:      map[api.Use]money.Amount{api.Useful: amount("1100"), api.Lost: amount("50.5"), api.StartUp: amount("30"), api.Idle: amount("4.067"), api.Open: amount("50")},
			Estimated: ptr(amount("1000")), Actual: ptr(amount("1050")), Foreseen: 30, OnDemand: ptr(amount("3000")), Saved: ptr(amount("1900")), Compared: 38},
		{Name: "text\x1b[2J", Currency: money.USD, Spent: amount("0.000123"), Jobs: 1, Uses: map[api.Use]money.Amount{api.StartUp: amount("0.000123")}},
		{Name: "", Currency: money.USD, Spent: amount("0.5"), Uses: map[api.Use]money.Amount{api.Lost: amount("0.5")}},
	}}
	for name, text := range map[string]string{
		"costs.120": spending.Costs(v, show.Place{Width: 120, Now: now}), "costs.80": spending.Costs(v, show.Place{Width: 80, Now: now}), "costs.piped": spending.Costs(v, show.Place{}),
		"costs-none.80": spending.Costs(api.Costs{By: "team"}, show.Place{Width: 80, Now: now}),
	} {
		golden.Check(t, name+".txt", text)
	}
}
