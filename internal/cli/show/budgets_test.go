package show_test

import (
	"testing"
	"time"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/cli/show/spending"
	"scrimp/internal/lib/money"
	"scrimp/internal/test/golden"
)

func TestBudgets_ShowRemainder(t *testing.T) {
	v := api.Budgets{Currency: money.USD, Tags: map[string][]string{"env": {"dev", "prod"}, "ticket": nil}, Limits: []api.BudgetLine{
		{Limit: api.Limit{Scope: "team:vision", Window: "month", Dollars: ptr(amount("500")), GPUHours: ptr(200.0), Warn: []float64{0.8}},
			Use: api.LimitUse{Spent: amount("410.5"), Held: amount("60"), GPUSpent: 120.25, GPUHeld: 8, Jobs: 3}, Burn: 3e12, Breach: ptr(now.Add(30 * time.Hour)), AtRate: ptr(now.Add(20 * time.Hour)),
			Outlook: &api.Outlook{By: ptr(now.AddDate(0, 0, 20)), Spent: amount("530"), Least: amount("490"), Chance: 0.97, Breach: ptr(now.Add(30 * time.Hour)), Earliest: ptr(now.Add(25 * time.Hour)), Latest: ptr(now.Add(41 * time.Hour)),
				Jobs: []api.Spender{{Job: "mlm-7", Cost: amount("61.2")}, {Job: "ft-2", Cost: amount("12")}}, More: 4}},
		{Limit: api.Limit{Scope: "project:ocr", Window: "week", Dollars: ptr(amount("80"))}, Use: api.LimitUse{Spent: amount("10"), Jobs: 2},
			Outlook: &api.Outlook{Spent: amount("70"), Chance: 0.1, Earliest: ptr(now.Add(70 * time.Hour)), Unknown: []string{"bert", "gpt"}, UnknownJobs: 5, Open: ptr(now.Add(40 * time.Hour)), Beyond: true}},
		{Limit: api.Limit{Scope: "all", Window: "total", Dollars: ptr(amount("900"))}, Use: api.LimitUse{Spent: amount("10"), Jobs: 2}, Outlook: &api.Outlook{Spent: amount("70"), Most: ptr(amount("75"))}},
		{Limit: api.Limit{Scope: "user:ann", Window: "day", Jobs: ptr(4), Approve: ptr(amount("100"))}, Use: api.LimitUse{Jobs: 1, Unbounded: "bert"}},
	}}
	for name, text := range map[string]string{
		"budgets.120": spending.Budgets(v, show.Place{Width: 120, Now: now}), "budgets.80": spending.Budgets(v, show.Place{Width: 80, Now: now}), "budgets.piped": spending.Budgets(v, show.Place{}),
		"budgets-none.80": spending.Budgets(api.Budgets{}, show.Place{Width: 80, Now: now}),
	} {
		golden.Check(t, name+".txt", text)
	}
}
