package show

import (
	"fmt"
	"strings"
	"time"

	api "scrimp/client"
	"scrimp/internal/lib/draw"
)

// Missed writes the share of jobs that missed their deadline, for each team that had a job with one; nothing if no team
// had, or if teams do not share the queue.
func Missed(v api.QueueShares, p Place) string {
	var list []string
	for _, t := range v.Teams {
		if t.MissShare != nil {
			list = append(list, TeamName(t.Team)+" "+MissedOf(t))
		}
	}
	if !v.Shared || len(list) == 0 {
		return ""
	}
	return draw.Wrap("", "Deadlines missed in "+draw.Span(v.HalfLife.Round(time.Second))+": "+strings.Join(list, "; ")+
		".", p.Columns())
}

// MissedOf writes the share of a team's jobs that missed their deadline, with their count, or - where none had one.
func MissedOf(t api.QueueShare) string {
	if t.MissShare == nil {
		return "-"
	}
	return fmt.Sprintf("%.1f%%, %d of %d", 100**t.MissShare, t.Missed, t.Met+t.Missed)
}

// TeamName writes the name of a team, also of none.
func TeamName(team string) string {
	if team == "" {
		return "(no team)"
	}
	return Clean(team)
}
