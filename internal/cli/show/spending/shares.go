package spending

import (
	"fmt"
	"time"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
)

// Shares formats the table of the teams' shares in the queue.
func Shares(v api.QueueShares, p show.Place) string {
	if !v.Shared {
		return draw.Wrap("", "The queue does not regard teams. scrimp queue set --team NAME --weight 2 turns shares on.",
			p.Columns())
	}
	if len(v.Teams) == 0 {
		return draw.Wrap("", "You see no team that has a share.", p.Columns())
	}
	var rows [][]string
	whole := 0.0 // what the listed teams want together, from 0 to 1
	for _, t := range v.Teams {
		whole += t.Wanted
		rows = append(rows, shareRow(t, v.Currency))
	}
	table := draw.Grid([]draw.Column{
		{Name: "TEAM", Key: true}, {Name: "WEIGHT", Right: true}, {Name: "WANTED", Right: true}, {Name: "HAD", Right: true},
		{Name: "SPENT", Right: true, Leaves: 2}, {Name: "HELD", Right: true, Leaves: 1}, {Name: "BURNS", Right: true},
		{Name: "RUNNING", Right: true, Leaves: 3}, {Name: "GUARANTEE", Right: true}, {Name: "BORROW", Right: true},
		{Name: "MISSED", Right: true}, {Name: "QUEUE"},
	}, rows, p.Columns())
	note := fmt.Sprintf("What a team spent counts half after %s. BURNS, GUARANTEE and BORROW are per hour. MISSED is of "+
		"the jobs with a deadline that ended in this time.", draw.Span(v.HalfLife.Round(time.Second)))
	if whole < 0.999 {
		note += " WANTED and HAD are parts of all teams, and you see some of them."
	}
	return table + draw.Wrap("", note, p.Columns())
}

// shareRow returns the share of one team.
func shareRow(t api.QueueShare, c money.Currency) []string {
	rate := func(r money.Rate) string { return money.Short(r.Until(time.Hour), c) }
	name, weight, guarantee, borrow, queue := show.TeamName(t.Team), fmt.Sprintf("%g", t.Weight), "none", "no limit", "-"
	if t.Guarantee > 0 {
		guarantee = rate(t.Guarantee)
	}
	if t.Borrow != nil {
		borrow = rate(*t.Borrow)
	}
	switch {
	case t.Waits && t.Burn < t.Guarantee:
		queue = "waits: under its guarantee"
	case t.Waits && t.Stopped:
		queue = "waits: borrowed all"
	case t.Waits:
		queue = "waits"
	}
	wanted := part(t.Wanted)
	if t.Wanted == 0 { // without a setting and a job it takes no part
		wanted = "-"
	}
	return []string{name, weight, wanted, part(t.Had), money.Short(t.Spent, c), money.Short(t.Held, c),
		rate(t.Burn), fmt.Sprint(t.Running), guarantee, borrow, show.MissedOf(t), queue}
}

// part writes a fraction in percent.
func part(v float64) string { return fmt.Sprintf("%.1f%%", 100*v) }
