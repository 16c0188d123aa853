package show

import (
	"fmt"
	"strconv"

	"scrimp/internal/lib/draw"
)

// Alert is a row of a series that is unusual.
type Alert struct {
	At           string
	Value, Score float64
}

// Alerts is the text of the alerts of a series of so many rows.
func Alerts(name string, rows int, alerts []Alert, p Place) string {
	if len(alerts) == 0 {
		return fmt.Sprintf("%s: %d rows, none of them unusual.\n", clean(name), rows)
	}
	var table [][]string
	for _, a := range alerts {
		table = append(table, []string{clean(a.At), strconv.FormatFloat(a.Value, 'g', 8, 64),
			strconv.FormatFloat(a.Score, 'f', 3, 64)})
	}
	return draw.Grid([]draw.Column{{Name: "TIMESTAMP", Key: true}, {Name: "VALUE", Right: true},
		{Name: "SCORE", Right: true}}, table, p.width())
}
