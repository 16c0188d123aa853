package spending

import (
	"fmt"
	"strconv"
	"strings"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
)

// Alert is an unusual row of a series.
type Alert struct {
	At           string
	Value, Score float64
}

// Alerts formats the alerts of a series with the given number of rows.
func Alerts(name string, rows int, alerts []Alert, p show.Place) string {
	if len(alerts) == 0 {
		return fmt.Sprintf("%s: %d rows, none of them unusual.\n", show.Clean(name), rows)
	}
	var table [][]string
	for _, a := range alerts {
		table = append(table, []string{show.Clean(a.At), strconv.FormatFloat(a.Value, 'g', 8, 64),
			strconv.FormatFloat(a.Score, 'f', 3, 64)})
	}
	return draw.Grid([]draw.Column{{Name: "TIMESTAMP", Key: true}, {Name: "VALUE", Right: true},
		{Name: "SCORE", Right: true}}, table, p.Columns())
}

// Anomalies formats the incidents: a table, followed by the details of each.
func Anomalies(v api.Anomalies, p show.Place) string {
	if len(v.Anomalies) == 0 {
		return draw.Wrap("", "No incidents since "+v.Since.UTC().Format("2006-01-02 15:04")+" UTC.", p.Columns())
	}
	var rows [][]string
	var why strings.Builder
	for i, a := range v.Anomalies {
		state := "goes on"
		if a.Until != nil {
			state = a.Until.UTC().Format("01-02 15:04")
		}
		rows = append(rows, []string{strconv.Itoa(i + 1), show.Named(a.Team), show.Clean(a.Kind), show.Clean(a.About),
			a.Since.UTC().Format("01-02 15:04"), state, money.Short(a.AtStake, a.Currency)})
		why.WriteString(draw.Wrap(fmt.Sprintf("%d  ", i+1), show.Clean(a.Why)+".", p.Columns()))
	}
	return draw.Grid([]draw.Column{{Name: "#", Right: true}, {Name: "TEAM", Leaves: 2}, {Name: "KIND", Key: true},
		{Name: "ABOUT"}, {Name: "SINCE", Leaves: 3}, {Name: "UNTIL", Leaves: 1}, {Name: "AT STAKE", Right: true}}, rows,
		p.Columns()) + "\n" + why.String()
}
