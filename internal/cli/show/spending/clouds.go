package spending

import (
	"fmt"
	"strconv"
	"strings"

	"scrimp/internal/cli/show"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
	"scrimp/internal/work/advice"
)

// Clouds is the table of clouds' own recommendations, with the commands of each below it.
func Clouds(list []advice.Recommendation, p show.Place) string {
	if len(list) == 0 {
		return draw.Wrap("", "The files of --with have no recommendation about cost.", p.Columns())
	}
	var s, how strings.Builder
	s.WriteString(draw.Wrap("", "Clouds recommend, with savings by their own estimates:", p.Columns()) + "\n")
	var rows [][]string
	billed := false
	for i, r := range list {
		rows = append(rows, []string{strconv.Itoa(i + 1), show.Clean(r.Source), show.Clean(named(r.Resource)),
			show.Clean(r.Advice), amountOr(r.Saving, r.Currency), amountOr(r.Billed, r.Currency), string(r.Action)})
		billed = billed || r.Billed != nil
		text := r.Command
		switch {
		case r.Check == r.Command+" --dry-run":
			text = r.Check + ", then without --dry-run"
		case r.Check != "":
			text = r.Check + " first, then " + r.Command
		}
		if r.Scrimp != "" {
			text = r.Scrimp + ". " + text
		}
		how.WriteString(draw.Wrap(fmt.Sprintf("%d  ", i+1), show.Clean(text), p.Columns()))
	}
	columns := []draw.Column{{Name: "#", Right: true}, {Name: "CLOUD", Leaves: 2}, {Name: "RESOURCE", Key: true},
		{Name: "ADVICE", Least: 8}, {Name: "SAVES A MONTH", Right: true}, {Name: "BILLED", Right: true}, {Name: "ACTION"}}
	if !billed {
		columns = append(columns[:5], columns[6])
		for i := range rows {
			rows[i] = append(rows[i][:5], rows[i][6])
		}
	}
	s.WriteString(draw.Grid(columns, rows, p.Columns()) + "\n" + how.String())
	for _, t := range advice.Totals(list) {
		s.WriteString(draw.Wrap("", fmt.Sprintf("Together they save %s a month: of each resource the largest saving, "+
			"without those to keep.", money.Short(t.Saving, t.Currency)), p.Columns()))
	}
	return s.String()
}

func named(resource string) string {
	if resource == "" {
		return "the account"
	}
	return resource
}
