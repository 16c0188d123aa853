package artifacts

import (
	"fmt"
	"strconv"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
)

// Cache lists the kept outputs of stages, those with the most value per byte first.
func Cache(v api.Cache, p show.Place) string {
	if len(v.Entries) == 0 {
		return draw.Wrap("", "No outputs of pipeline stages are kept. A stage with outs keeps them once it has succeeded.",
			p.Columns())
	}
	var rows [][]string
	for _, e := range v.Entries {
		cost, value, used, note := "unknown", "unknown", "-", ""
		if e.Cost != nil {
			cost = money.Short(*e.Cost, v.Currency)
		}
		if e.Value != nil {
			value = money.ShortFloat(*e.Value, v.Currency)
		}
		if e.Used != nil {
			used = p.When(*e.Used)
		}
		if e.Needed {
			note = "needed"
		}
		rows = append(rows, []string{show.Clean(e.Job), show.Clean(e.Team), show.Bytes(e.Bytes), cost, strconv.Itoa(e.Uses),
			used, fmt.Sprintf("%.0f %%", e.Odds*100), value, note})
	}
	text := draw.Grid([]draw.Column{{Name: "STAGE", Key: true}, {Name: "TEAM", Leaves: 3}, {Name: "SIZE", Right: true},
		{Name: "MADE FOR", Right: true}, {Name: "USES", Right: true}, {Name: "LAST USE", Leaves: 4},
		{Name: "CHANCE", Right: true, Leaves: 2}, {Name: "VALUE", Right: true}, {Name: "", Leaves: 1}}, rows, p.Columns())
	return text + "\n" + draw.Wrap("", fmt.Sprintf("%s are kept; runs that used outputs instead of making them again "+
		"saved %s. CHANCE is that of a use in 30 days, VALUE is MADE FOR times CHANCE.", show.Bytes(v.Bytes),
		money.Short(v.Saved, v.Currency)), p.Columns())
}
