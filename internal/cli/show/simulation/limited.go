package simulation

import (
	"fmt"
	"strings"

	"scrimp/internal/cli/show"
	"scrimp/internal/decide/fair"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
	"scrimp/internal/sim/queue"
)

// LimitedReplay is the output of scrimp simulate queue --history --rate.
type LimitedReplay struct {
	Jobs    int         `json:"jobs"`
	Rate    float64     `json:"rate_usd_per_hour"`
	Exact   money.Rate  `json:"-"`
	Teams   []TeamShare `json:"teams"`
	History *PastQueue  `json:"history"`
}

// TeamShare is what the jobs of a team would have cost, and how long they would have taken from submission to end.
type TeamShare struct {
	Name   string       `json:"name"`
	Weight float64      `json:"weight"`
	Jobs   int          `json:"jobs"` // that ended
	Cost   float64      `json:"cost_usd"`
	Exact  money.Amount `json:"-"`
	Mean   float64      `json:"mean_completion_hours"`
	P99    float64      `json:"p99_completion_hours"`
	// Equal is the mean with the same weight for all teams.
	Equal float64 `json:"equal_weights_mean_completion_hours"`
	Never int     `json:"never_started"` // their cheapest machine alone exceeds the limit
}

// TeamShareOf returns the figures of a team, with its weight, beside those with the same weight for all teams.
func TeamShareOf(s, equal *queue.Share, weights map[string]float64) TeamShare {
	t := TeamShare{Name: s.Team, Weight: fair.DefaultWeight, Jobs: s.Jobs, Cost: s.Cost.Float(), Exact: s.Cost,
		Mean: s.Mean / 3600, P99: s.P99 / 3600, Equal: equal.Mean / 3600, Never: s.Never}
	for team, w := range weights {
		if fair.Key(team) == fair.Key(s.Team) {
			t.Weight = w
		}
	}
	return t
}

// Text formats the result for people.
func (r LimitedReplay) Text(p show.Place) string {
	var rows [][]string
	never := 0
	for _, t := range r.Teams {
		name := t.Name
		if name == "" {
			name = "-"
		}
		never += t.Never
		rows = append(rows, []string{name, fmt.Sprintf("%g", t.Weight), fmt.Sprint(t.Jobs),
			money.Format(t.Exact, money.USD, 2), fmt.Sprintf("%.2f h", t.Mean), fmt.Sprintf("%.1f h", t.P99),
			fmt.Sprintf("%.2f h", t.Equal)})
	}
	var b strings.Builder
	b.WriteString(draw.Wrap("", draw.Count(r.Jobs, "job")+" of the log, for which "+
		money.Short(r.History.PaidExact, money.USD)+" was paid, at $"+r.Exact.String()+" an hour at most",
		p.Columns()) + "\n")
	b.WriteString(draw.Grid([]draw.Column{{Name: "TEAM", Key: true}, {Name: "WEIGHT", Right: true},
		{Name: "JOBS", Right: true}, {Name: "COST", Right: true}, {Name: "MEAN", Right: true}, {Name: "P99", Right: true},
		{Name: "EQUAL", Right: true}}, rows, p.Columns()))
	b.WriteString("\n" + draw.Wrap("", "MEAN and P99 are from submission to end. EQUAL is the mean with the same weight "+
		"for all teams.", p.Columns()))
	b.WriteString(draw.Wrap("note: ", "each job has a machine of its own; machines come at once, on demand, at their "+
		"last price and equally fast; jobs have no deadlines.", p.Columns()))
	if never > 0 {
		b.WriteString(draw.Wrap("note: ", "never started, because the cheapest machine alone exceeds the limit: "+
			draw.Count(never, "job"), p.Columns()))
	}
	for _, text := range Omitted(r.History.Omitted, r.History.Earlier, r.History.Failed) {
		b.WriteString(draw.Wrap("note: ", "left out: "+text, p.Columns()))
	}
	return b.String()
}
