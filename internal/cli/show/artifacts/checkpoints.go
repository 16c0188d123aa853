package artifacts

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/size"
)

// Checkpoints lists a job's checkpoints, newest first.
func Checkpoints(job string, list []api.Checkpoint, p show.Place) string {
	if len(list) == 0 {
		return show.Clean(job) + " has kept no checkpoint.\n"
	}
	rows := make([][]string, len(list))
	for i, c := range list {
		var metrics []string
		for _, name := range slices.Sorted(maps.Keys(c.Metrics)) {
			metrics = append(metrics, fmt.Sprintf("%s %.4g", name, c.Metrics[name]))
		}
		note := ""
		switch {
		case c.Damaged != "":
			note = "damaged: " + c.Damaged
		case c.Newest:
			note = "newest"
		}
		rows[i] = []string{show.Clean(c.Name), strconv.FormatInt(c.Step, 10), size.Bytes(c.Bytes).String(),
			p.When(c.Captured),
			show.Clean(c.Attempt), show.Clean(strings.Join(metrics, ", ")), show.Clean(note)}
	}
	return draw.Grid([]draw.Column{
		{Name: "CHECKPOINT", Key: true}, {Name: "STEP", Right: true}, {Name: "SIZE", Right: true}, {Name: "SAVED", Leaves: 3},
		{Name: "ATTEMPT", Leaves: 2}, {Name: "METRICS", Leaves: 1}, {Name: "NOTE"},
	}, rows, p.Columns())
}
