package spending

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
)

// Budgets formats the table of limits, and the tags that jobs must have.
func Budgets(v api.Budgets, p show.Place) string {
	var b strings.Builder
	if len(v.Limits) == 0 {
		b.WriteString(draw.Wrap("", "No budgets. scrimp budgets set --team NAME --month --dollars 500 makes one.",
			p.Columns()))
	} else {
		var rows [][]string
		for _, l := range v.Limits {
			rows = append(rows, budgetRow(l, v.Currency, p))
		}
		b.WriteString(draw.Grid([]draw.Column{
			{Name: "BUDGET", Key: true}, {Name: "LIMIT", Right: true}, {Name: "SPENT", Right: true}, {Name: "HELD", Right: true},
			{Name: "EXPECTED", Right: true, Leaves: 5}, {Name: "JOBS", Right: true},
			{Name: "RUNNING", Right: true, Leaves: 4}, {Name: "GPU-HOURS", Right: true, Leaves: 2},
			{Name: "APPROVAL ABOVE", Right: true, Leaves: 3}, {Name: "REACHED", Leaves: 1},
		}, rows, p.Columns()))
	}
	for _, l := range v.Limits {
		for _, text := range outlook(l, v.Currency, p) {
			b.WriteString(draw.Wrap("", show.Clean(text), p.Columns()))
		}
	}
	for _, tag := range slices.Sorted(maps.Keys(v.Tags)) {
		values := "any value"
		if len(v.Tags[tag]) > 0 {
			values = strings.Join(v.Tags[tag], ", ")
		}
		b.WriteString(draw.Wrap("", show.Clean("Jobs must have the tag "+tag+": "+values+"."), p.Columns()))
	}
	for _, team := range v.Shares {
		b.WriteString(draw.Wrap("", show.Clean("The members of team "+team+" may use each other's machines."), p.Columns()))
	}
	return b.String()
}

// budgetRow returns a limit and its use.
func budgetRow(l api.BudgetLine, c money.Currency, p show.Place) []string {
	dollars, gpus, approve, jobs, running := "-", "-", "-", fmt.Sprint(l.Use.Jobs), fmt.Sprint(l.Use.Running)
	if l.Limit.Dollars != nil {
		dollars = money.Short(*l.Limit.Dollars, c)
	}
	if l.Limit.Rate != nil {
		dollars = money.Short(l.Limit.Rate.Until(time.Hour), c) + "/h"
		running += " at " + money.Short(l.Burn.Until(time.Hour), c) + "/h"
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
		approve = money.Short(*l.Limit.Approve, c)
		if l.Use.AwaitingApproval > 0 {
			approve += fmt.Sprintf(", %d wait", l.Use.AwaitingApproval)
		}
	}
	expected, breach := expectation(l.Outlook, c, p)
	held := money.Short(l.Use.Held, c)
	if l.Use.Unbounded != "" {
		held = "unknown"
	}
	return []string{show.Clean(l.Limit.Name()), dollars, money.Short(l.Use.Spent, c), held, expected, jobs, running, gpus,
		approve,
		breach}
}

// expectation returns the window's expected cost, and when its limit will be reached.
func expectation(o *api.Outlook, c money.Currency, p show.Place) (expected, breach string) {
	if o == nil {
		return "-", "-"
	}
	if expected = money.Short(o.Spent, c); o.UnknownJobs > 0 || o.Beyond {
		expected = "≥ " + expected
	}
	switch {
	case o.Breach != nil:
		return expected, p.MarketTime(*o.Breach)
	case o.Earliest != nil:
		return expected, fmt.Sprintf("%.0f %% likely", 100*o.Chance)
	case o.Open != nil, o.Beyond:
		return expected, "unknown"
	}
	return expected, "-"
}

// outlook describes when the limit will be reached and by which jobs, or what is unknown about it.
func outlook(l api.BudgetLine, c money.Currency, p show.Place) (list []string) {
	o, name := l.Outlook, l.Limit.Name()
	if o == nil || l.Limit.Dollars != nil && l.Use.Spent.Cmp(*l.Limit.Dollars) >= 0 {
		return nil
	}
	say := func(format string, values ...any) { list = append(list, fmt.Sprintf(format, values...)) }
	switch {
	case o.Breach != nil:
		span := p.MarketTime(*o.Earliest) + " at the earliest"
		if o.Latest != nil {
			span = p.MarketTime(*o.Earliest) + " to " + p.MarketTime(*o.Latest)
		}
		say("%s is reached %s (%s, %.0f %% likely) by %s.", name, p.MarketTime(*o.Breach), span, 100*o.Chance, reachedBy(o,
			c))
	case o.Earliest != nil:
		say("%s may be reached (%.0f %% likely), %s at the earliest.", name, 100*o.Chance, p.MarketTime(*o.Earliest))
	}
	if o.UnknownJobs > 0 {
		jobs, on := unknownJobs(o)
		if o.Open != nil {
			say("Nobody knows how long %s will run: if %s, %s is reached %s.", jobs, on, name, p.MarketTime(*o.Open))
		} else {
			say("Nobody knows how long %s will run: if %s, %s is not reached in this window.", jobs, on, name)
		}
	}
	if o.Beyond {
		say("More jobs wait than were weighed for %s: what they will cost is not in it.", name)
	}
	if at := l.AtRate; at != nil && (o.Breach == nil || !at.Equal(*o.Breach)) {
		say("At the present rate, %s an hour, %s would be reached %s.", money.Short(l.Burn.Until(time.Hour), c), name,
			p.MarketTime(*at))
	}
	return list
}

// reachedBy lists the jobs that reach a limit.
func reachedBy(o *api.Outlook, c money.Currency) string {
	by := make([]string, 0, len(o.Jobs)+1)
	for _, j := range o.Jobs {
		by = append(by, fmt.Sprintf("%s (%s)", j.Job, money.Short(j.Cost, c)))
	}
	if o.More > 0 {
		by = append(by, draw.Count(o.More, "other"))
	}
	return strings.Join(by, ", ")
}

// unknownJobs lists the jobs of unknown duration.
func unknownJobs(o *api.Outlook) (jobs, on string) {
	jobs = strings.Join(o.Unknown, ", ")
	if more := o.UnknownJobs - len(o.Unknown); more > 0 {
		jobs += fmt.Sprintf(" and %s", draw.Count(more, "other"))
	}
	if o.UnknownJobs == 1 {
		return jobs, "it goes on"
	}
	return jobs, "they go on"
}
