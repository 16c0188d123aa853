package show

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"scrimp/internal/api"
	"scrimp/internal/draw"
)

// Budgets is the table of limits, and the tags that jobs must have.
func Budgets(v api.Budgets, p Place) string {
	var b strings.Builder
	if len(v.Limits) == 0 {
		b.WriteString(draw.Wrap("", "No budgets. scrimp budgets set --team NAME --month --dollars 500 makes one.", p.width()))
	} else {
		var rows [][]string
		for _, l := range v.Limits {
			dollars, gpus, jobs, running, approve, breach := "-", "-", fmt.Sprint(l.Use.Jobs), fmt.Sprint(l.Use.Running), "-", "-"
			if l.Limit.Dollars != nil {
				dollars = sum(*l.Limit.Dollars, v.Currency)
			}
			if l.Limit.GPUHours != nil {
				gpus = fmt.Sprintf("%.4g/%g", l.Use.GPUSpent+l.Use.GPUHeld, *l.Limit.GPUHours)
			}
			if l.Limit.Jobs != nil {
				jobs += fmt.Sprintf("/%d", *l.Limit.Jobs)
			}
			if l.Limit.Running != nil {
				running += fmt.Sprintf("/%d", *l.Limit.Running)
			}
			if l.Limit.GPUs != nil {
				running += fmt.Sprintf(" on %d/%d GPUs", l.Use.GPUs, *l.Limit.GPUs)
			}
			if l.Limit.Approve != nil {
				approve = sum(*l.Limit.Approve, v.Currency)
				if l.Use.Asking > 0 {
					approve += fmt.Sprintf(", %d wait", l.Use.Asking)
				}
			}
			if l.Breach != nil {
				breach = p.market(*l.Breach)
			}
			held := sum(l.Use.Held, v.Currency)
			if l.Use.Unbounded != "" {
				held = "unknown"
			}
			rows = append(rows, []string{clean(l.Limit.Name()), dollars, sum(l.Use.Spent, v.Currency), held, jobs, running, gpus, approve, breach})
		}
		b.WriteString(draw.Grid([]draw.Column{
			{Name: "BUDGET", Least: 14}, {Name: "LIMIT", Right: true}, {Name: "SPENT", Right: true}, {Name: "HELD", Right: true}, {Name: "JOBS", Right: true},
			{Name: "RUNNING", Right: true, Leaves: 4}, {Name: "GPU-HOURS", Right: true, Leaves: 2}, {Name: "APPROVAL ABOVE", Right: true, Leaves: 3}, {Name: "REACHED", Leaves: 1},
		}, rows, p.width()))
	}
	for _, tag := range slices.Sorted(maps.Keys(v.Tags)) {
		values := "any value"
		if len(v.Tags[tag]) > 0 {
			values = strings.Join(v.Tags[tag], ", ")
		}
		b.WriteString(draw.Wrap("", clean("Jobs must have the tag "+tag+": "+values+"."), p.width()))
	}
	return b.String()
}
