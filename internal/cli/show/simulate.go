package show

import (
	"fmt"

	"scrimp/internal/lib/draw"
	"scrimp/internal/sim/replay"
)

// Scores is the table of a benchmark: the mean cost of a run, how much that is
// over the optimum that knows the future, deadlines missed, and machines lost,
// launched and changed between regions in the mean of a run.
func Scores(scores []replay.Score, p Place) string {
	columns := []draw.Column{
		{Name: "POLICY"}, {Name: "FORM", Leaves: 1}, {Name: "MEAN", Right: true}, {Name: "OVER OPT.", Right: true},
		{Name: "MISSES", Right: true},
		{Name: "LOST/RUN", Right: true, Leaves: 3}, {Name: "LAUNCHES/RUN", Right: true, Leaves: 4},
		{Name: "MOVES/RUN", Right: true, Leaves: 2},
	}
	var rows [][]string
	for _, s := range scores {
		form, over, lost, launches, moves := "-", "-", fmt.Sprintf("%.1f", s.InterruptionsPerRun),
			fmt.Sprintf("%.1f", s.LaunchesPerRun), "-"
		if s.Form != "" {
			form, moves = s.Form, fmt.Sprintf("%.2f", s.MovesPerRun)
		}
		if s.OverOptimum != nil {
			over = fmt.Sprintf("%.1f %%", 100**s.OverOptimum)
		}
		if s.Name == replay.Optimum {
			over, lost, launches, moves = "", "-", "-", "-"
		}
		rows = append(rows, []string{s.Name, form, fmt.Sprintf("$%.3f", s.MeanUSD), over,
			fmt.Sprintf("%d of %d", s.Misses, s.Runs), lost, launches, moves})
	}
	return draw.Grid(columns, rows, p.width())
}
