package show

import (
	"fmt"
	"strings"

	api "scrimp/client"
	"scrimp/internal/decide/core"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
)

// JobTotals writes sums of jobs, and the total of each currency.
func JobTotals(v api.JobTotals, p Place) string {
	key, isTag := strings.CutPrefix(v.By, "tag:")
	head := strings.ToUpper(v.By)
	if isTag {
		head = Clean(key)
	}
	var rows [][]string
	row := func(name string, t api.JobTotal) {
		var states []string
		for _, s := range core.States {
			if n := t.States[string(s)]; n > 0 {
				states = append(states, fmt.Sprint(n, " ", s))
			}
		}
		now := "-"
		if t.Rate > 0 {
			now = money.Short(money.Picos(int64(t.Rate)), t.Currency) + "/h"
		}
		rows = append(rows, []string{Clean(name), fmt.Sprint(t.Jobs), strings.Join(states, ", "),
			money.Short(t.Spent, t.Currency), now, willCost(t)})
	}
	for _, t := range v.Lines {
		row(t.Name, t)
	}
	if len(v.Lines) > 1 {
		for _, t := range v.Total {
			row("total", t)
		}
	}
	return draw.Grid([]draw.Column{{Name: head, Key: true}, {Name: "JOBS", Right: true},
		{Name: "STATES", Least: 12, Leaves: 1}, {Name: "SPENT", Right: true}, {Name: "NOW", Right: true, Leaves: 3},
		{Name: "WILL COST", Right: true, Leaves: 2}}, rows, p.Columns())
}

// willCost formats what the jobs of a line still cost.
func willCost(t api.JobTotal) string {
	if t.Live() == 0 {
		return "-"
	}
	var parts []string
	if t.WillCost != nil {
		text := money.ShortFloat(t.WillCost[0], t.Currency)
		if high := money.ShortFloat(t.WillCost[1], t.Currency); high != text {
			text += " to " + high
		}
		parts = append(parts, text)
	}
	if t.AtMost != nil {
		parts = append(parts, "up to "+money.Short(*t.AtMost, t.Currency))
	}
	switch n := t.Unknown - t.Bounded; {
	case n > 0 && len(parts) > 0:
		parts = append(parts, fmt.Sprint(n, " unknown"))
	case n > 0:
		return "unknown"
	}
	return strings.Join(parts, " + ")
}
