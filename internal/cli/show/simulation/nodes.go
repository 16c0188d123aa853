package simulation

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"scrimp/internal/cli/show"
	"scrimp/internal/decide/policy"
	"scrimp/internal/lib/draw"
	"scrimp/internal/sim/replay"
)

// GangScores holds the rows of a benchmark for a job on several machines at once.
type GangScores struct {
	Nodes  int
	Scores []replay.Score
}

// ByNodes formats the table that compares numbers of machines: for each form, the mean cost of one of the machines by
// policy, followed by the number of late runs if there are any. If the default policy and the optimum are there, the
// last column has the excess of one over the other.
func ByNodes(list []GangScores, policies []string, p show.Place) string {
	columns := []draw.Column{{Name: "NODES", Right: true}, {Name: "FORM"}}
	for _, name := range policies {
		columns = append(columns, draw.Column{Name: cmp.Or(shortNames[name], strings.ToUpper(name)), Right: true, Key: true})
	}
	compared := slices.Contains(policies, replay.Optimum) && slices.Contains(policies, string(policy.Default))
	note := "Dollars for each machine of the job, mean of all runs."
	if compared {
		columns = append(columns, draw.Column{Name: "OVER OPT.", Right: true})
		note += " OVER OPT. is how much the default policy costs above the optimum."
	}
	var rows [][]string
	for _, g := range list {
		var forms []string
		cells, over := map[string][]string{}, map[string]string{}
		for _, s := range g.Scores { // by policy, in the order of the columns
			if cells[s.Form] == nil {
				forms = append(forms, s.Form)
			}
			cells[s.Form] = append(cells[s.Form], costOf(s, g.Nodes))
			if s.Name == string(policy.Default) && s.OverOptimum != nil {
				over[s.Form] = fmt.Sprintf("%.1f %%", 100**s.OverOptimum)
			}
		}
		for _, form := range forms {
			row := append([]string{strconv.Itoa(g.Nodes), form}, cells[form]...)
			if compared {
				row = append(row, cmp.Or(over[form], "-"))
			}
			rows = append(rows, row)
		}
	}
	return draw.Grid(columns, rows, p.Columns()) + "\n" + draw.Wrap("", note, p.Columns())
}

// costOf formats the mean cost of a row for each of its machines, followed by the number of late runs if there are any.
func costOf(s replay.Score, nodes int) string {
	switch {
	case s.Runs == 0:
		return "-"
	case s.Misses > 0:
		return fmt.Sprintf("%.2f (%d late)", s.MeanUSD/float64(nodes), s.Misses)
	}
	return fmt.Sprintf("%.2f", s.MeanUSD/float64(nodes))
}
