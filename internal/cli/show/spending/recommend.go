package spending

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"scrimp/internal/cli/show"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
	"scrimp/internal/work/recommend"
)

// Recommend formats what would lower spending: for each currency a table, and below it the evidence and the command of
// each recommendation.
func Recommend(list []recommend.Plan, p show.Place) string {
	var s strings.Builder
	for i, v := range list {
		if i > 0 {
			s.WriteString("\n")
		}
		c := v.Currency
		reached := "The recommendations below do not reach it."
		switch {
		case len(v.Recommendations) == 0:
			reached = "Nothing in these costs shows how to spend less."
		case v.Enough:
			reached = "The recommendations marked with * reach it."
		case v.Reached.IsZero():
			reached = "No saving of the recommendations below is known."
		}
		s.WriteString(draw.Wrap("", fmt.Sprintf("From %s to %s UTC %s was spent; the target is to save %s. %s",
			v.Since.UTC().Format("2006-01-02"), v.Until.UTC().Format("2006-01-02"), money.Short(v.Spent, c),
			money.Short(v.Target, c), reached), p.Columns()))
		if len(v.Recommendations) == 0 {
			continue
		}
		var rows [][]string
		var why strings.Builder
		for n, l := range v.Recommendations {
			name := l.Name
			if l.Needed {
				name += " *"
			}
			rows = append(rows, []string{strconv.Itoa(n + 1), name, amountOr(l.Saving, c), amountOr(l.Alone, c),
				money.Short(l.Sum, c), cmp.Or(string(l.Method), "-"), string(l.Confidence), string(l.Effort),
				string(l.Risk)})
			why.WriteString(draw.Wrap(fmt.Sprintf("%d  ", n+1), show.Clean(l.Evidence)+". Do: "+show.Clean(l.Command)+".",
				p.Columns()))
		}
		s.WriteString("\n" + draw.Grid([]draw.Column{{Name: "#", Right: true}, {Name: "RECOMMENDATION", Key: true},
			{Name: "SAVES", Right: true}, {Name: "ALONE", Right: true, Leaves: 1}, {Name: "IN ALL", Right: true},
			{Name: "BY", Leaves: 1}, {Name: "CONFIDENCE"}, {Name: "EFFORT", Leaves: 2}, {Name: "RISK", Leaves: 3}}, rows,
			p.Columns()))
		s.WriteString("\n" + why.String())
		s.WriteString(draw.Wrap("", fmt.Sprintf("All recommendations together: %s, %.0f %% of the spending.",
			money.Short(v.Reached, c), 100*v.Share), p.Columns()))
	}
	return s.String()
}
