package show_test

import (
	"testing"
	"time"

	"scrimp/internal/api"
	"scrimp/internal/budget"
	"scrimp/internal/cli/show"
	"scrimp/internal/golden"
	"scrimp/internal/money"
)

func TestBudgetsArePrintedWithWhatIsLeft(t *testing.T) {
	v := api.Budgets{Currency: money.USD, Tags: budget.Tags{"env": {"dev", "prod"}, "ticket": nil}, Limits: []api.BudgetLine{
		{Limit: budget.Limit{Scope: "team:vision", Window: budget.Month, Dollars: ptr(amount("500")), GPUHours: ptr(200.0), Warn: []float64{0.8}},
			Use: budget.Use{Spent: amount("410.5"), Held: amount("60"), GPUSpent: 120.25, GPUHeld: 8, Jobs: 3}, Burn: 3e12, Breach: ptr(now.Add(30 * time.Hour)), AtRate: ptr(now.Add(20 * time.Hour)),
			Outlook: &budget.Outlook{By: ptr(now.AddDate(0, 0, 20)), Spent: amount("530"), Least: amount("490"), Chance: 0.97, Breach: ptr(now.Add(30 * time.Hour)), Earliest: ptr(now.Add(25 * time.Hour)), Latest: ptr(now.Add(41 * time.Hour)),
				Jobs: []budget.Spender{{Job: "mlm-7", Cost: amount("61.2")}, {Job: "ft-2", Cost: amount("12")}}, More: 4}},
		{Limit: budget.Limit{Scope: "project:ocr", Window: budget.Week, Dollars: ptr(amount("80"))}, Use: budget.Use{Spent: amount("10"), Jobs: 2},
			Outlook: &budget.Outlook{Spent: amount("70"), Chance: 0.1, Earliest: ptr(now.Add(70 * time.Hour)), Unknown: []string{"bert", "gpt"}, UnknownJobs: 5, Open: ptr(now.Add(40 * time.Hour)), Beyond: true}},
		{Limit: budget.Limit{Scope: "all", Window: budget.Total, Dollars: ptr(amount("900"))}, Use: budget.Use{Spent: amount("10"), Jobs: 2}, Outlook: &budget.Outlook{Spent: amount("70"), Most: ptr(amount("75"))}},
		{Limit: budget.Limit{Scope: "user:ann", Window: budget.Day, Jobs: ptr(4), Approve: ptr(amount("100"))}, Use: budget.Use{Jobs: 1, Unbounded: "bert"}},
	}}
	for name, text := range map[string]string{
		"budgets.120": show.Budgets(v, show.Place{Width: 120, Now: now}), "budgets.80": show.Budgets(v, show.Place{Width: 80, Now: now}), "budgets.piped": show.Budgets(v, show.Place{}),
		"budgets-none.80": show.Budgets(api.Budgets{}, show.Place{Width: 80, Now: now}),
	} {
		golden.Check(t, name+".txt", text)
	}
}
