package review

import (
	"fmt"
	"strings"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/decide/review"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
)

// page is a review as text.
type page api.MonthReview

// text formats the page.
func (r page) text(p show.Place) string {
	var b strings.Builder
	until := "up to " + p.Moment(r.Until)
	if r.Over {
		until = "the whole month"
	}
	if !r.Whole {
		until += ", of the teams that you may see"
	}
	b.WriteString(draw.Wrap("", "Review of "+r.Month+": "+until, p.Columns()))
	if len(r.Sums) == 0 {
		b.WriteString("Nothing was spent.\n")
	}
	for _, s := range r.Sums {
		(&sum{s}).text(&b, p)
	}
	r.missed(&b, p)
	for _, l := range r.Budgets {
		p.Fact(&b, "budget", "%s: %s of %s%s", l.Scope, money.Short(l.Spent, l.Currency), money.Short(l.Limit, l.Currency),
			forecast(l))
	}
	if r.Anomalies == nil {
		p.Fact(&b, "anomalies", "- (the month began more than 90 days ago)")
	} else {
		p.Fact(&b, "anomalies", "%d", len(r.Anomalies))
	}
	for _, a := range r.Anomalies[:min(len(r.Anomalies), 5)] {
		p.Fact(&b, "", "%s %s: %s beyond the usual", a.Kind, a.About, money.Short(a.AtStake, a.Currency))
	}
	r.proposed(&b, p)
	r.saved(&b, p)
	r.mature(&b, p)
	for i, a := range r.Actions {
		p.Fact(&b, fmt.Sprint("next ", i+1), "%s (%s): %s", a.What, money.Short(a.Amount, a.Currency), a.Command)
	}
	return b.String()
}

// mature writes the marks with their evidence.
func (r page) mature(b *strings.Builder, p show.Place) {
	for i, m := range r.Maturity {
		label := "maturity"
		if i > 0 {
			label = ""
		}
		mark := m.Mark
		if mark == "" {
			mark = "-"
		}
		p.Fact(b, label, "%s: %s (%s; %s)", m.Capability, mark, m.Evidence, m.Rule)
	}
}

// forecast formats what is expected of a budget by the end of the month.
func forecast(l api.ReviewBudget) string {
	if l.Forecast == nil {
		return ""
	}
	return fmt.Sprintf(", %s expected by the end of the month, %.0f %% chance to reach it",
		money.Short(*l.Forecast, l.Currency), *l.Chance*100)
}

// sum is what the month cost in one currency.
type sum struct{ api.ReviewSum }

const lost api.Use = "lost"

// estimates compares the estimated with the actual cost, and says which jobs have no estimate.
func (s *sum) estimates(b *strings.Builder, p show.Place) {
	if s.Estimated == nil {
		p.Fact(b, "estimates", "-")
	} else {
		p.Fact(b, "estimates", "%s estimated, %s actual, of %s", money.Short(*s.Estimated, s.Currency),
			money.Short(*s.Actual, s.Currency), draw.Count(s.Foreseen, "job"))
	}
	if n := s.Jobs - s.Foreseen; n > 0 {
		p.Fact(b, "  without", "%s: no success, or no expected cost when they began", draw.Count(n, "job"))
	}
}

func (s *sum) text(b *strings.Builder, p show.Place) {
	short := func(a money.Amount) string { return money.Short(a, s.Currency) }
	p.Fact(b, "spent", "%s by %s", short(s.Spent), draw.Count(s.Jobs, "job"))
	for _, use := range []api.Use{"useful", "start-up", lost, "idle", "open"} {
		if a := s.Uses[use]; !a.IsZero() {
			share := ""
			if of := review.ShareOf(a, s.Spent); of != nil {
				share = fmt.Sprintf(", %.1f %%", *of*100)
			}
			if use == lost {
				share += ", of " + draw.Count(s.Losing, "job")
			}
			p.Fact(b, "  "+string(use), "%s%s", short(a), share)
		}
	}
	for _, kind := range []string{"tax", "credit", "adjustment"} {
		if a, is := s.Extras[kind]; is {
			p.Fact(b, "  "+kind, "%s of bills", short(a))
		}
	}
	interrupted := "- (some cost has no team)"
	if s.LostToInterruptions != nil {
		interrupted = short(*s.LostToInterruptions) + " of lost work"
	}
	p.Fact(b, "interruptions", "%s", interrupted)
	s.estimates(b, p)
	var covered []string
	for _, c := range s.Coverage {
		text := "-"
		if c.Share != nil {
			text = fmt.Sprintf("%.0f %%", *c.Share*100)
		}
		covered = append(covered, c.Tag+" "+text)
	}
	p.Fact(b, "tagged", "%s", strings.Join(covered, ", "))
	var rows [][]string
	for _, j := range s.Top {
		rows = append(rows, []string{show.Clean(j.Job), show.Named(j.Team), short(j.Cost), short(j.Lost)})
	}
	rows = append(rows, []string{"(the rest)", "", short(s.Rest), ""})
	b.WriteString("\n" + draw.Grid([]draw.Column{{Name: "JOB", Key: true}, {Name: "TEAM", Leaves: 2},
		{Name: "COST", Right: true}, {Name: "LOST", Right: true, Leaves: 1}}, rows, p.Columns()) + "\n")
}
