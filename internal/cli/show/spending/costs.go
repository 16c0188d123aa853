// Package spending formats what was spent: costs by team or tag, budgets, the causes of higher costs, and incidents.
package spending

import (
	"fmt"
	"slices"
	"strings"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
)

// Costs formats the table of costs.
func Costs(v api.Costs, p show.Place) string {
	if len(v.Lines) == 0 {
		return draw.Wrap("", "No costs.", p.Columns())
	}
	whole := func(a *money.Amount, c money.Currency) string {
		if a == nil {
			return "-"
		}
		return money.Short(*a, c)
	}
	totals := map[money.Currency]api.CostLine{}
	var rows [][]string
	row := func(name string, l api.CostLine) {
		use := func(u api.Use) string {
			if l.Uses[u].IsZero() {
				return "-"
			}
			return money.Short(l.Uses[u], l.Currency)
		}
		jobs := fmt.Sprint(l.Jobs)
		if slices.Contains([]string{"provider", "region", "sku", "category"}, v.By) {
			jobs = "-" // a job may have several items
		}
		rows = append(rows, []string{name, jobs, money.Short(l.Spent, l.Currency), use(api.Useful), use(api.Lost),
			use(api.StartUp), use(api.Idle), use(api.Open),
			whole(l.Estimated, l.Currency), whole(l.Actual, l.Currency), whole(l.Saved, l.Currency)})
	}
	var order []money.Currency
	for _, l := range v.Lines {
		name := show.Clean(l.Name)
		if name == "" {
			name = "(none)"
		}
		row(name, l)
		t, known := totals[l.Currency]
		if !known {
			t.Currency, t.Uses = l.Currency, map[api.Use]money.Amount{}
			order = append(order, l.Currency)
		}
		t.Spent, t.Jobs = t.Spent.Add(l.Spent), t.Jobs+l.Jobs
		for u, a := range l.Uses {
			t.Uses[u] = t.Uses[u].Add(a)
		}
		t.Billed, t.Accrued, t.Unbooked = plus(t.Billed, l.Billed), plus(t.Accrued, l.Accrued), t.Unbooked.Add(l.Unbooked)
		t.Estimated, t.Actual, t.Saved = plus(t.Estimated, l.Estimated), plus(t.Actual, l.Actual), plus(t.Saved, l.Saved)
		totals[l.Currency] = t
	}
	for _, c := range order {
		row("total", totals[c])
	}
	table := draw.Grid([]draw.Column{
		{Name: strings.ToUpper(strings.ReplaceAll(v.By, ":", " ")), Key: true}, {Name: "JOBS", Right: true, Leaves: 5},
		{Name: "SPENT", Right: true}, {Name: "USEFUL", Right: true}, {Name: "LOST", Right: true},
		{Name: "START-UP", Right: true, Leaves: 4}, {Name: "IDLE", Right: true, Leaves: 3},
		{Name: "OPEN", Right: true, Leaves: 6},
		{Name: "ESTIMATED", Right: true, Leaves: 8}, {Name: "ACTUAL", Right: true, Leaves: 7},
		{Name: "SAVED", Right: true, Leaves: 2},
	}, rows, p.Columns())
	for _, c := range order {
		if t := totals[c]; t.Billed != nil {
			table += draw.Wrap("", fmt.Sprintf("Of %s: billed %s, accrued %s, estimated for running machines %s.",
				money.Short(t.Spent, c), money.Short(*t.Billed, c), money.Short(*t.Accrued, c), money.Short(t.Unbooked, c)),
				p.Columns())
		}
	}
	return table
}

// plus adds the known amounts.
func plus(a, b *money.Amount) *money.Amount {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	s := a.Add(*b)
	return &s
}
