package group

import (
	"fmt"
	"strings"
	"time"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
	"scrimp/internal/work/retrain"
)

// SchedulePlan describes when a pipeline will run, before it is scheduled.
func SchedulePlan(y api.Schedule, p show.Place) string {
	var b strings.Builder
	p.Fact(&b, "schedule", "%s; all runs together cost at most %s", When(y.Cron, y.Zone), money.Short(y.Budget, money.USD))
	for _, line := range conditions(y.ScheduleConditions, money.USD) {
		p.Fact(&b, "only if", "%s", line)
	}
	return b.String()
}

// conditions describes the conditions of a schedule.
func conditions(c api.ScheduleConditions, currency money.Currency) (list []string) {
	if d := c.OnData; d != nil {
		list = append(list, fmt.Sprintf("%s has %s at least", show.Clean(d.Path), draw.Count(d.AtLeast, "new object")))
	}
	if x := c.WhenItPays; x != nil {
		text := fmt.Sprintf("the expected gain of %s is worth the cost of a run, %s a point", show.Clean(x.Metric),
			money.Short(x.Value, currency))
		if x.Latest > 0 {
			text += fmt.Sprintf(", or the last run is %s old", draw.Count(x.Latest, "day"))
		}
		list = append(list, text)
	}
	if x := c.NotBefore; x != nil {
		list = append(list, fmt.Sprintf("an hour costs at most %s, or the run has waited %s",
			money.Short(x.Most.Until(time.Hour), currency), draw.Span(x.By)))
	}
	return list
}

// week summarizes the runs of a week in a sentence.
func week(w api.ScheduleWeek, g api.Group) string {
	one := retrain.Week{Begin: w.Begin, Runs: w.Runs, Skipped: w.Skipped, Cost: w.Cost, Open: w.CostOpen,
		OnDemand: w.OnDemand, Gain: show.Clean(w.Gain)}
	metric := ""
	if x := g.Schedule.WhenItPays; x != nil {
		metric = show.Clean(x.Metric)
	}
	return one.Text(metric, g.Currency)
}

// weeksShown is the number of weeks that the page of a schedule compares.
const weeksShown = 4

// When formats a cron line with its zone.
func When(cron, zone string) string {
	if zone == "" {
		zone = "UTC"
	}
	return cron + " in " + zone
}

// scheduleProgress summarizes a schedule in a few words.
func scheduleProgress(g api.Group) []string {
	y := g.Schedule
	list := []string{draw.Count(y.Begun, "run")}
	if y.Limit > 0 {
		list[0] = fmt.Sprintf("%d of %s", y.Begun, draw.Count(y.Limit, "run"))
	}
	if n := bad(g); n > 0 {
		list = append(list, fmt.Sprintf("%d not done", n))
	}
	if y.Skipped > 0 {
		list = append(list, fmt.Sprintf("%d skipped", y.Skipped))
	}
	return list
}

// waiting reports whether a run is due that waits for a price.
func waiting(y *api.ScheduleState) bool { return y.WaitsSince != nil && len(y.Waits) > 0 }

// nextRun adds to a page when the schedule is due next.
func nextRun(b *strings.Builder, g api.Group, p show.Place) {
	y, next := g.Schedule, map[bool]string{true: "next look", false: "next run"}[waiting(g.Schedule)]
	switch {
	case y.Due != nil && p.Now.IsZero():
		p.Fact(b, next, "%s", p.MarketTime(*y.DueMarket))
	case y.Due != nil:
		p.Fact(b, next, "%s, at %s", p.Until(*y.Due), p.MarketTime(*y.DueMarket))
	case g.Finished == nil && g.State == "open":
		p.Fact(b, "next run", "none is to come")
	}
}

// Schedule formats the page of a schedule.
func Schedule(g api.Group, p show.Place) string {
	var b strings.Builder
	y := g.Schedule
	fmt.Fprintf(&b, "%s\n", Progress(g, p))
	p.Fact(&b, "schedule", "%s; a run costs at most %s", When(show.Clean(y.Cron), show.Clean(y.Zone)),
		money.Short(y.Each, g.Currency))
	for _, line := range conditions(y.ScheduleConditions, g.Currency) {
		p.Fact(&b, "only if", "%s", line)
	}
	if waiting(y) {
		p.Fact(&b, "waits", "since %s: %s", p.MarketTime(*y.WaitsSince), show.Clean(y.Waits[len(y.Waits)-1].Why))
	}
	if y.Until != nil {
		p.Fact(&b, "until", "%s", p.MarketTime(*y.Until))
	}
	nextRun(&b, g, p)
	if n := len(y.Runs); n > 0 && y.Runs[n-1].Why != "" {
		p.Fact(&b, "last run", "%s: %s", y.Runs[n-1].State, show.Clean(y.Runs[n-1].Why))
	}
	clock(&b, g, "due times are market time, others real time", p)
	p.Fact(&b, "submitted", "%s by %s", p.When(g.Submitted), g.User)
	if g.Finished != nil {
		p.Fact(&b, "finished", "%s", p.When(*g.Finished))
	}
	if !y.Saved.IsZero() {
		p.Fact(&b, "saved", "%s by stages that were not run again", money.Format(y.Saved, g.Currency, 4))
	}
	for _, r := range y.Reports[max(0, len(y.Reports)-1):] {
		p.Fact(&b, "report", "the last week's to %s: %s", r.To, strings.TrimSuffix(r.State+": "+r.Error, ": "))
	}
	review(&b, g, p)
	b.WriteString("\n")
	if len(y.Runs) == 0 && !waiting(y) {
		b.WriteString(draw.Wrap("  ", "No run was due yet.", p.Columns()))
	} else {
		b.WriteString(scheduleRuns(g, p))
	}
	if len(y.Weeks) > 0 {
		b.WriteString("\n")
	}
	for _, w := range y.Weeks[max(0, len(y.Weeks)-weeksShown):] {
		b.WriteString(draw.Wrap("  ", week(w, g), p.Columns()))
	}
	id := show.Clean(g.ID)
	b.WriteString("\n")
	for _, line := range [][2]string{{"pipeline status RUN", "how the stages of a run stand"},
		{"receipt " + id, "what the jobs of all runs cost"}, {"cancel " + id, "ends the schedule and its run"}} {
		fmt.Fprintf(&b, "  scrimp %-*s  %s\n", max(len("pipeline status RUN"), len("receipt ")+len(id)), line[0], line[1])
	}
	return b.String()
}

func scheduleRuns(g api.Group, p show.Place) string {
	var rows [][]string
	for _, r := range g.Schedule.Runs {
		stages, cost, state := "-", "-", show.Words(r.State)
		if r.Group != "" {
			stages, cost = fmt.Sprintf("%d of %d", r.Ran, r.Stages), money.Format(r.Cost, g.Currency, 4)
			if r.State == "over" {
				state = map[bool]string{true: "done", false: "not done"}[r.Succeeded]
			}
		}
		why := show.Clean(r.Why)
		if r.Same > 0 {
			why = fmt.Sprintf("%s; %s before it that day for the same condition", why, draw.Count(r.Same, "skip"))
		}
		if r.Missed > 0 {
			why = strings.TrimPrefix(why+fmt.Sprintf("; %d missed before it", r.Missed), "; ")
		}
		rows = append(rows, []string{p.MarketTime(r.DueMarket), show.OrDash(show.Clean(r.Group)), state, stages, cost,
			show.OrDash(why)})
	}
	if y := g.Schedule; waiting(y) {
		rows = append(rows, []string{p.MarketTime(*y.WaitsSince), "-", "waiting", "-", "-",
			show.Clean(y.Waits[len(y.Waits)-1].Why)})
	}
	return draw.Grid([]draw.Column{{Name: "DUE", Key: true}, {Name: "RUN"}, {Name: "STATE"},
		{Name: "STAGES RUN", Right: true, Leaves: 2}, {Name: "COST", Right: true}, {Name: "WHY", Least: 8, Leaves: 1}},
		rows, p.Columns())
}
