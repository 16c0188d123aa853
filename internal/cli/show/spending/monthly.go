package spending

import (
	"fmt"
	"strings"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
)

// Monthly formats what a month of each kind of workload costs.
func Monthly(v api.MonthlyCosts, p show.Place) string {
	if len(v.Workloads) == 0 {
		return draw.Wrap("", "No costs since "+v.Since.Format("2006-01-02")+".", p.Columns())
	}
	whole := 0
	for _, m := range v.Months {
		if m.Whole {
			whole++
		}
	}
	var rows [][]string
	for _, w := range v.Workloads {
		short := func(a *money.Amount) string {
			if a == nil {
				return "-"
			}
			return money.Short(*a, w.Currency)
		}
		runs, ended := fmt.Sprint(w.Runs), fmt.Sprintf("%d/%d", w.Succeeded, w.Ended)
		if w.Runs == 0 {
			runs, ended = "-", "-"
		}
		rows = append(rows, []string{show.Clean(w.Workload), short(&w.Spent), short(w.AMonth), runs, ended,
			short(w.Median), short(w.P90), short(w.PerSuccess), hoursOf(w.GPUHours), short(w.PerGPUHour),
			short(w.ListPerGPUHour)})
	}
	var b strings.Builder
	b.WriteString(draw.Grid([]draw.Column{{Name: "WORKLOAD", Key: true}, {Name: "SPENT", Right: true},
		{Name: "A MONTH", Right: true}, {Name: "RUNS", Right: true, Leaves: 1}, {Name: "SUCCEEDED", Right: true, Leaves: 5},
		{Name: "MEDIAN RUN", Right: true}, {Name: "P90 RUN", Right: true}, {Name: "PER SUCCESS", Right: true},
		{Name: "GPU-HOURS", Right: true, Leaves: 3}, {Name: "PER GPU-HOUR", Right: true, Leaves: 2},
		{Name: "ON-DEMAND", Right: true, Leaves: 4}}, rows, p.Columns()))
	b.WriteString("\n" + months(v, p) + "\n")
	says := "A MONTH is unknown: no month since " + v.Since.Format("2006-01") + " is whole yet."
	if whole > 0 {
		says = "A MONTH is the mean of " + draw.Count(whole, "whole month") + "; * marks the others."
	}
	b.WriteString(draw.Wrap("", says+" MEDIAN RUN, P90 RUN and PER SUCCESS are of the runs that began and ended "+
		"since "+v.Since.Format("2006-01")+" (SUCCEEDED: how many of them). ON-DEMAND is a GPU-hour of the same machines "+
		"at on-demand prices. --json has all columns.", p.Columns()))
	return b.String()
}

func hoursOf(h float64) string {
	if h == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f", h)
}

// months has a line for each month and a column for each workload.
func months(v api.MonthlyCosts, p show.Place) string {
	columns := []draw.Column{{Name: "MONTH", Key: true}}
	for _, w := range v.Workloads {
		columns = append(columns, draw.Column{Name: strings.ToUpper(show.Clean(w.Workload)), Right: true})
	}
	var rows [][]string
	for m, month := range v.Months {
		row := []string{month.Month}
		if !month.Whole {
			row[0] += "*"
		}
		for _, w := range v.Workloads {
			row = append(row, money.Short(w.Months[m], w.Currency))
		}
		rows = append(rows, row)
	}
	return draw.Blocks(columns, rows, p.Columns())
}
