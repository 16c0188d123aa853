// Package group formats groups of jobs as text: arrays, studies, pipelines and schedules, with their pages, plans and
// receipts.
package group

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/cli/show/search"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
)

// Groups formats the table of groups.
func Groups(list []api.Group, p show.Place) string {
	if len(list) == 0 {
		return draw.Wrap("", "No groups. scrimp run job.yaml --array 0-9 submits a job as an array of ten.", p.Columns())
	}
	var rows [][]string
	for _, g := range list {
		budget := "-"
		if g.Budget != nil {
			budget = money.Short(*g.Budget, g.Currency)
		}
		rows = append(rows, []string{show.Clean(g.ID), show.Words(g.Kind), show.Words(g.State), draw.Short(int64(g.Members)),
			draw.Short(int64(g.Succeeded + reused(g))), draw.Short(int64(g.Failed)),
			draw.Short(int64(g.Stopped + g.Cancelled)), draw.Short(int64(g.Open)),
			money.Format(g.Spent, g.Currency, 4), budget, p.When(g.Submitted), show.Words(g.Why)})
	}
	return draw.Grid([]draw.Column{
		{Name: "ID", Key: true}, {Name: "KIND", Leaves: 5}, {Name: "STATE"}, {Name: "MEMBERS", Right: true},
		{Name: "SUCCEEDED", Right: true}, {Name: "FAILED", Right: true}, {Name: "STOPPED", Right: true},
		{Name: "OPEN", Right: true, Leaves: 3}, {Name: "SPENT", Right: true},
		{Name: "BUDGET", Right: true, Leaves: 1}, {Name: "SUBMITTED", Leaves: 4}, {Name: "WHY", Least: 6, Leaves: 2},
	}, rows, p.Columns())
}

// bad returns the number of members that ended without success.
func bad(g api.Group) int { return g.Failed + g.Stopped + g.Cancelled }

// reused returns the number of a pipeline's stages whose outputs an earlier run had made.
func reused(g api.Group) (n int) {
	for i := 0; g.Pipeline != nil && i < len(g.Pipeline.Stages); i++ {
		if g.Pipeline.Stages[i].State == "reused" {
			n++
		}
	}
	return n
}

// outcome says in a sentence how the members of a group ended.
func outcome(r api.GroupReceipt) string {
	g, again := r.Group, reused(r.Group)
	if again > 0 && again == g.Members {
		return fmt.Sprintf("all %s were reused: nothing was run", draw.Count(again, "stage"))
	}
	pruned, left := 0, 0
	for _, m := range r.Members {
		switch m.Why {
		case "pruned":
			pruned++
		case "search_over":
			left++
		}
	}
	text := fmt.Sprintf("%d of %d members have begun, %d succeeded", g.Began, g.Members, g.Succeeded)
	for i, n := range []int{again, pruned, left, bad(g) - pruned - left} {
		if n > 0 {
			text += fmt.Sprintf(", %d %s", n, [...]string{"reused", "pruned", "left early", "did not succeed"}[i])
		}
	}
	return text
}

// Progress formats a group as one line.
func Progress(g api.Group, p show.Place) string {
	is := cmp.Or(map[string]string{"awaits_approval": "waits for approval"}[g.State], "is "+show.Words(g.State))
	items := []string{show.Clean(g.ID) + " " + is}
	switch {
	case g.Schedule != nil:
		items = append(items, scheduleProgress(g)...)
	case g.Pipeline != nil:
		items = append(items, pipelineProgress(g.Pipeline)...)
	case g.Study != nil:
		items = append(items, studyProgress(g)...)
	default:
		items = append(items, fmt.Sprintf("%d of %d succeeded", g.Succeeded, g.Members))
		if n := bad(g); n > 0 {
			items = append(items, fmt.Sprintf("%d did not", n))
		}
	}
	if n := g.Members - g.Began; n > 0 && g.Finished != nil && g.Pipeline == nil {
		items = append(items, fmt.Sprintf("%d never began", n))
	}
	if n := g.Open - pausedIn(g); n > 0 && g.Pipeline == nil && g.Schedule == nil {
		items = append(items, fmt.Sprintf("%d wait or run", n))
	}
	if len(g.Waits) > 0 {
		items = append(items, "waits for "+show.Clean(strings.Join(g.Waits, ", ")))
	}
	if cost := spent(g); g.Study != nil { // a narrow terminal cuts the end: the best value and the spend come first
		items = slices.Insert(items, min(2, len(items)), cost)
	} else {
		items = append(items, cost)
	}
	line := strings.Join(items, ", ")
	if p.Width > 0 {
		line = draw.Cut(line, p.Width)
	}
	return line
}

// Group formats the page of a group.
func Group(g api.Group, p show.Place) string { return page(g, "", p) }

// Search formats the page of a search, with its course before the commands that show more.
func Search(r api.GroupReceipt, p show.Place) string { return page(r.Group, search.Course(r, p), p) }

// page formats the page of a group. The commands that show more come last, after course.
func page(g api.Group, course string, p show.Place) string {
	switch {
	case g.Pipeline != nil:
		return Pipeline(g, p)
	case g.Schedule != nil:
		return Schedule(g, p)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", Progress(g, p))
	if g.Array != nil {
		text := fmt.Sprintf("%d to %d", g.Array.From, g.Array.From+(g.Members-1)*g.Array.Step)
		if g.Array.Step > 1 {
			text += fmt.Sprintf(", every %d", g.Array.Step)
		}
		p.Fact(&b, "indexes", "%s; at most %d wait or run at once", text, g.AtOnce)
	}
	if g.Study != nil {
		studyFacts(&b, g, p)
	}
	if g.Deadline != nil {
		text := p.Moment(*g.Deadline)
		if left := g.Deadline.Sub(p.Now); g.Finished == nil && !p.Now.IsZero() && left > 0 {
			text += ", " + draw.Span(left.Round(time.Second)) + " left"
		}
		p.Fact(&b, "deadline", "%s", text)
	}
	clock(&b, g, "times here are real time", p)
	p.Fact(&b, "submitted", "%s by %s", p.When(g.Submitted), g.User)
	if g.Finished != nil {
		p.Fact(&b, "finished", "%s", p.When(*g.Finished))
	}
	if g.Rate != nil {
		p.Fact(&b, "burns", "%s", show.PerHour(*g.Rate, g.Currency))
	}
	review(&b, g, p)
	b.WriteString(course)
	id, lines := show.Clean(g.ID), [][2]string{{"jobs --group ", "its members"}, {"receipt ", "what they cost"}}
	if g.Study != nil {
		lines[0] = [2]string{"tune trials ", "its trials"}
	}
	if g.Finished == nil {
		lines = append(lines, [2]string{"stop ", "saves a checkpoint of each and ends it"})
	}
	for _, line := range lines {
		fmt.Fprintf(&b, "  scrimp %-*s  %s\n", len("jobs --group ")+len(id), line[0]+id, line[1])
	}
	return b.String()
}

// spent formats what a group has cost, of its budget.
func spent(g api.Group) string {
	text := money.Format(g.Spent, g.Currency, 4)
	if g.Budget != nil {
		text += " of " + money.Short(*g.Budget, g.Currency)
	}
	if g.Finished != nil && !g.Closed && g.Schedule == nil { // a machine of it may still cost something, or less
		text += " (estimated)"
	}
	return text
}

// review adds to a page why a group waits or ended, and how to approve it.
func review(b *strings.Builder, g api.Group, p show.Place) {
	if g.Why != "" {
		why := show.Words(g.Why)
		if g.Why == "all_over" {
			why = map[bool]string{true: "all stages have ended", false: "all members have ended"}[g.Pipeline != nil]
		}
		p.Fact(b, "why", "%s", strings.TrimSuffix(why+": "+g.Detail, ": "))
	}
	if v := g.Approval; v != nil && v.At == nil {
		p.Fact(b, "approval", "scrimp approve %s, until %s", g.ID, p.Until(v.Until))
	}
}

// clock adds the speed of a simulated clock to a page, and which time the page shows.
func clock(b *strings.Builder, g api.Group, times string, p show.Place) {
	if g.Speed > 0 && g.Speed != 1 {
		p.Fact(b, "clock", "%s; %s", draw.SimulatedClock(g.Speed), times)
	}
}

// Receipt formats a group's costs, with a line for each member, and their sum.
func Receipt(r api.GroupReceipt, p show.Place) string {
	b, g := strings.Builder{}, r.Group
	var rows [][]string
	for _, m := range r.Members {
		took := "-"
		if m.Started != nil && m.Finished != nil {
			took = draw.Span(m.Finished.Sub(*m.Started).Round(time.Second))
		}
		rows = append(rows, []string{show.Clean(m.ID), show.Words(m.State), took, fmt.Sprint(m.Attempts),
			fmt.Sprint(m.Interruptions), money.Format(m.Cost, g.Currency, 6), amountOrDash(m.OnDemand, g.Currency),
			show.Words(m.Why)})
	}
	if len(rows) > 0 {
		b.WriteString(draw.Grid([]draw.Column{
			{Name: "MEMBER", Key: true}, {Name: "STATE"}, {Name: "TOOK", Right: true, Leaves: 2},
			{Name: "ATTEMPTS", Right: true, Leaves: 4}, {Name: "INTERRUPTIONS", Right: true, Leaves: 3},
			{Name: "COST", Right: true}, {Name: "ON-DEMAND", Right: true, Leaves: 5}, {Name: "WHY", Least: 6, Leaves: 1},
		}, rows, p.Columns()) + "\n")
	}
	fmt.Fprintf(&b, "%s: %s\n", show.Clean(g.ID), outcome(r))
	usd := func(a money.Amount) string { return money.Format(a, g.Currency, 6) }
	cost := usd(r.Cost)
	if g.Budget != nil {
		cost += " of a budget of " + money.Short(*g.Budget, g.Currency)
	}
	p.Fact(&b, "cost", "%s", cost)
	if g.Pipeline != nil && CostOf(r).Sample != nil {
		p.Fact(&b, "of it", "%s for the sample", usd(*CostOf(r).Sample))
	}
	if reused(g) > 0 {
		p.Fact(&b, "saved", "%s by stages that were not run again", usd(g.Pipeline.Saved))
	}
	if len(r.Members) == 0 && r.Study == nil {
		return b.String()
	}
	p.Fact(&b, "spent on", "useful %s, start-up %s, lost %s, idle %s", usd(r.Useful), usd(r.StartUp), usd(r.Lost),
		usd(r.Idle))
	if r.OnDemand != nil {
		p.Fact(&b, "on-demand", "%s for the same work", usd(*r.OnDemand))
	}
	p.Fact(&b, "interruptions", "%d", r.Interruptions)
	if r.Study != nil {
		studyReceipt(&b, r, p)
	}
	return b.String()
}

func amountOrDash(a *money.Amount, c money.Currency) string {
	if a == nil {
		return "-"
	}
	return money.Format(*a, c, 6)
}
