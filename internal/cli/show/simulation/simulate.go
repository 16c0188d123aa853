// Package simulation formats the scores of policies and queues in simulated runs.
package simulation

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"scrimp/internal/cli/show"
	"scrimp/internal/decide/policy"
	"scrimp/internal/decide/policy/zonechoice"
	"scrimp/internal/lib/draw"
	"scrimp/internal/sim/replay"
	"scrimp/internal/sim/tick/multizone"
)

// Scores formats the table of a benchmark: the mean cost of a run, its excess over the omniscient optimum, missed
// deadlines, and the mean numbers of interruptions, launches and moves between regions.
func Scores(scores []replay.Score, p show.Place) string {
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
	return draw.Grid(columns, rows, p.Columns())
}

// shortNames holds the column names of policies with long names.
var shortNames = map[string]string{string(policy.UniformProgress): "UNIFORM",
	string(policy.UniformProgress2): "UNIFORM-2"}

// Settings formats the table of a protocol: the mean cost by setting and policy, followed by the number of late runs if
// there are any.
func Settings(by []replay.SettingScores, policies []string, p show.Place) string {
	columns := []draw.Column{
		{Name: "ZONES", Least: 8}, {Name: "WORK", Right: true}, {Name: "BY", Right: true},
		{Name: "RESTART", Right: true, Leaves: 2}, {Name: "GB", Right: true, Leaves: 3}, {Name: "SIGHT", Leaves: 4},
	}
	const wide = 110
	narrow := p.Width > 0 && p.Width < wide // all that identifies a row, in one column
	if narrow {
		columns = []draw.Column{{Name: "ZONES", Least: 8}, {Name: "JOB", Key: true}}
	}
	for _, name := range policies {
		columns = append(columns, draw.Column{Name: cmp.Or(shortNames[name], strings.ToUpper(name)), Right: true, Key: true})
	}
	var rows [][]string
	for i := range by {
		s := &by[i]
		row := []string{zonesOf(s.Group), inHours(s.Size.Work), inHours(s.Size.Deadline), inHours(s.Restart),
			strconv.FormatFloat(s.Checkpoint.GB, 'f', -1, 64), string(s.Sight)}
		if narrow {
			job := row[1] + "/" + row[2] + " " + row[3] + " " + row[4] + "G " + row[5]
			row = []string{row[0], strings.ReplaceAll(job, " h", "h")}
		}
		for _, score := range s.Scores {
			row = append(row, costOf(score, 1))
		}
		rows = append(rows, row)
	}
	text := draw.Grid(columns, rows, p.Columns())
	if narrow {
		text += "\n" + draw.Wrap("", "JOB is its work and deadline, restart, GB of the checkpoint and sight.", p.Columns())
	}
	return text
}

// zonesOf names the zones of a group, or gives their number.
func zonesOf(group []zonechoice.Zone) string {
	if len(group) > 3 {
		return fmt.Sprintf("%s +%d", group[0].Name, len(group)-1)
	}
	return strings.Join(multizone.Names(group), " ")
}

// inHours formats a duration in hours with up to four digits.
func inHours(d time.Duration) string { return strconv.FormatFloat(d.Hours(), 'g', 4, 64) + " h" }
