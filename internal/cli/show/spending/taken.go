package spending

import (
	"fmt"
	"strings"
	"time"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
)

// Taken formats the recommendations that were taken: what they were expected to save, and what they have saved.
func Taken(list []api.TakenRecommendation, p show.Place) string {
	if len(list) == 0 {
		return ""
	}
	var rows [][]string
	var how strings.Builder
	told := map[string]bool{}
	for _, t := range list {
		rows = append(rows, []string{show.Clean(t.Name), TeamOf(t), t.At.UTC().Format(time.DateOnly),
			fmt.Sprintf("%.1f", t.Days), amountOr(t.Expected, t.Currency), amountOr(t.Saved, t.Currency)})
		if !told[t.Name] {
			told[t.Name] = true
			how.WriteString(draw.Wrap("", fmt.Sprintf("%s: costs are compared by %s.", show.Clean(t.Name), show.Clean(t.Unit)),
				p.Columns()))
		}
	}
	return "\nTaken, up to 30 days since:\n\n" + draw.Grid([]draw.Column{{Name: "RECOMMENDATION", Key: true},
		{Name: "TEAM", Leaves: 2}, {Name: "SINCE", Leaves: 1}, {Name: "DAYS", Right: true}, {Name: "EXPECTED", Right: true},
		{Name: "SAVED", Right: true}}, rows, p.Columns()) + "\n" + how.String()
}

// TeamOf returns the team that follows a recommendation, or (all).
func TeamOf(t api.TakenRecommendation) string {
	if t.Team == "" {
		return "(all)"
	}
	return show.Clean(t.Team)
}

// Took says what was recorded of a recommendation that somebody takes.
func Took(t api.TakenRecommendation, p show.Place) string {
	expected := "its saving is unknown"
	if t.Monthly != nil {
		expected = money.Short(*t.Monthly, t.Currency) + " a month is expected by it alone"
	}
	return draw.Wrap("", fmt.Sprintf("%s is taken: %s. scrimp recommend and scrimp review say what it has saved.",
		show.Clean(t.Name), expected), p.Columns())
}
