package share

import (
	"strings"
	"testing"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/cli/show/spending"
	"scrimp/internal/lib/money"
)

// An error about a scope names the flag that gave it.
func TestWindow_NamesTheFlagOfItsScope(t *testing.T) {
	for w, want := range map[window]string{{scope: "team:text", team: "text"}: "--team", {scope: "team:text"}: "--scope",
		{scope: "all"}: "--scope", {scope: "tag:a=b", tag: "a=b"}: "--tag"} {
		if got := w.flag(); got != want {
			t.Errorf("%+v: %s, want %s", w, got, want)
		}
	}
}

// The table shows the dollars an hour beside what the machines cost now.
func TestBudgets_ShowARate(t *testing.T) {
	rate := money.Rate(125e11)
	l := api.BudgetLine{Limit: api.Limit{Scope: "team:vision", Window: "hour", Rate: &rate}, Burn: 12e12}
	l.Use.Running, l.Use.Jobs = 3, 7
	text := spending.Budgets(api.Budgets{Limits: []api.BudgetLine{l}, Currency: money.USD}, show.Place{})
	for _, words := range []string{"team:vision/hour", "$12.50/h", "3 at $12.00/h"} {
		if !strings.Contains(text, words) {
			t.Errorf("%q lacks %q", text, words)
		}
	}
}
