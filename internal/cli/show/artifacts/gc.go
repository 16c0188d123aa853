package artifacts

import (
	"cmp"
	"fmt"
	"strings"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/lib/draw"
)

// GC lists what was or would be removed.
func GC(v api.GCDone, p show.Place) string {
	if len(v.Items) == 0 {
		return draw.Wrap("", "Nothing has to go.", p.Columns())
	}
	var rows [][]string
	failed := 0
	for _, i := range v.Items {
		why := i.Why
		if i.Error != "" {
			failed++
			why = "NOT removed: " + i.Error
		}
		rows = append(rows, []string{cmp.Or(i.Job, i.Name, "-"), i.Kind, show.Bytes(i.Bytes), why})
	}
	var b strings.Builder
	b.WriteString(draw.Grid([]draw.Column{{Name: "OF", Least: 12}, {Name: "WHAT", Least: 8}, {Name: "SIZE", Right: true},
		{Name: "WHY", Least: 12}}, rows, p.Columns()))
	verb, after := "given back", "receipts, costs and decisions are as they were"
	if v.DryRun {
		verb, after = "would be given back", "nothing was removed: leave --dry-run out"
	}
	fmt.Fprintf(&b, "\n%s", draw.Wrap("", fmt.Sprintf("%s %s; %s.", show.Bytes(v.Bytes), verb, after), p.Columns()))
	if failed > 0 {
		b.WriteString(draw.Wrap("", draw.Count(failed, "thing")+" could not be removed.", p.Columns()))
	}
	return b.String()
}
