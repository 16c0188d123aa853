package review

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
)

func asProblem(err error) (*api.Problem, bool) { return errors.AsType[*api.Problem](err) }

// lost adds what interruptions cost. Statements are of teams, so cost without a team leaves it unknown.
func (r *Review) lost(v api.Chargeback) {
	for _, s := range r.Sums {
		if !s.Teams[""].IsZero() {
			continue
		}
		s.LostToInterruptions = new(money.Amount)
		for _, of := range v.Statements {
			if of.Currency == s.Currency {
				*s.LostToInterruptions = s.LostToInterruptions.Add(of.LostToInterrupts)
			}
		}
	}
}

// anomalies keeps the incidents that went on within the month, the dearest of each currency first.
func (r *Review) anomalies(list []api.Anomaly) {
	r.Anomalies = []api.Anomaly{}
	for _, a := range list {
		if a.Since.Before(r.Until) && (a.Until == nil || a.Until.After(r.Since)) {
			r.Anomalies = append(r.Anomalies, a)
		}
	}
	slices.SortStableFunc(r.Anomalies, func(a, b api.Anomaly) int {
		return cmp.Or(strings.Compare(string(a.Currency), string(b.Currency)), b.AtStake.Cmp(a.AtStake))
	})
}

// text formats the page.
func (r *Review) text(p show.Place) string {
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
		s.text(&b, p)
	}
	r.missed(&b, p)
	for _, l := range r.Budgets {
		p.Fact(&b, "budget", "%s: %s of %s%s", l.Scope, money.Short(l.Spent, l.Currency), money.Short(l.Limit, l.Currency),
			l.forecast())
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
	for i, a := range r.Actions {
		p.Fact(&b, fmt.Sprint("next ", i+1), "%s (%s): %s", a.What, money.Short(a.Amount, a.Currency), a.Command)
	}
	return b.String()
}

func (l *Budget) forecast() string {
	if l.Forecast == nil {
		return ""
	}
	return fmt.Sprintf(", %s expected by the end of the month, %.0f %% chance to reach it",
		money.Short(*l.Forecast, l.Currency), *l.Chance*100)
}

// estimates compares the estimated with the actual cost, and says which jobs have no estimate.
func (s *Sum) estimates(b *strings.Builder, p show.Place) {
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

func (s *Sum) text(b *strings.Builder, p show.Place) {
	short := func(a money.Amount) string { return money.Short(a, s.Currency) }
	p.Fact(b, "spent", "%s by %s", short(s.Spent), draw.Count(s.Jobs, "job"))
	for _, use := range []string{"useful", "start-up", string(ledger.Lost), "idle", "open"} {
		if a := s.Uses[use]; !a.IsZero() {
			share := ""
			if of := shareOf(a, s.Spent); of != nil {
				share = fmt.Sprintf(", %.1f %%", *of*100)
			}
			if use == string(ledger.Lost) {
				share += ", of " + draw.Count(s.Losing, "job")
			}
			p.Fact(b, "  "+use, "%s%s", short(a), share)
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
