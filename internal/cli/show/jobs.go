package show

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	api "scrimp/client"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
)

// Jobs formats the table of jobs and queue.
func Jobs(list []api.Job, p Place) string {
	if len(list) == 0 {
		return draw.Wrap("", "No jobs. scrimp run job.yaml runs one, scrimp init writes the file.", p.Columns())
	}
	var rows [][]string
	// The owner is shown only if the jobs have several.
	several := slices.ContainsFunc(list, func(j api.Job) bool { return j.User != list[0].User || j.Team != list[0].Team })
	starts := slices.ContainsFunc(list, func(j api.Job) bool { _, ok := StartsIn(j); return ok })
	for _, j := range list {
		step, budget, left, odds := draw.Short(j.Step), "-", "-", "-"
		if j.Total != nil {
			step += "/" + draw.Short(*j.Total)
		}
		if j.Budget != nil {
			budget = money.Short(*j.Budget, j.Currency)
		}
		if j.TimeLeft != nil && j.Finished == nil {
			left = Seconds(*j.TimeLeft)
		}
		if j.Odds != nil && j.Finished == nil {
			odds = fmt.Sprintf("%.0f %%", *j.Odds*100)
		}
		row := []string{j.ID, j.State, step, spent(j, 4), budget, left, odds, p.When(j.Submitted), Words(j.Why)}
		if starts {
			row = slices.Insert(row, 2, startsText(j))
		}
		if several {
			row = slices.Insert(row, 1, Clean(cmp.Or(j.User, "-")), Clean(cmp.Or(j.Team, "-")))
		}
		rows = append(rows, row)
	}
	columns := []draw.Column{
		{Name: "ID", Key: true}, {Name: "STATE"}, {Name: "STEP", Right: true}, {Name: "SPENT", Right: true},
		{Name: "BUDGET", Right: true, Leaves: 3},
		{Name: "LEFT", Right: true, Leaves: 1}, {Name: "ON-TIME", Right: true, Leaves: 1}, {Name: "SUBMITTED", Leaves: 4},
		{Name: "WHY", Least: 6, Leaves: 2},
	}
	if starts {
		columns = slices.Insert(columns, 2, draw.Column{Name: "STARTS"})
	}
	if several {
		columns = slices.Insert(columns, 1, draw.Column{Name: "BY", Least: 6}, draw.Column{Name: "TEAM", Least: 6, Leaves: 6})
	}
	return draw.Grid(columns, rows, p.Columns())
}

// startsText formats when a waiting job is expected to start, by the median.
func startsText(j api.Job) string {
	wall, ok := StartsIn(j)
	switch {
	case !ok && j.State == "queued":
		return "unknown"
	case !ok:
		return "-"
	case wall[1] < 1:
		return "next"
	}
	return "in " + Seconds(wall[1])
}

// Held formats the table of jobs that wait for approval.
func Held(list []api.Job, p Place) string {
	if len(list) == 0 {
		return draw.Wrap("", "No job waits for approval.", p.Columns())
	}
	var rows [][]string
	for _, j := range list {
		most, above, limit, until := "unknown", "-", "-", "-"
		if v := j.Approval; v != nil {
			if v.Most != nil {
				most = money.Short(*v.Most, j.Currency)
			}
			if len(v.Limits) > 0 {
				above, limit = money.Short(v.Limits[0].Above, j.Currency), v.Limits[0].Limit
			}
			until = p.Until(v.Until)
		}
		left := "-"
		if j.TimeLeft != nil {
			left = Seconds(*j.TimeLeft)
		}
		rows = append(rows, []string{j.ID, Clean(j.User), Clean(j.Team), most, above, Clean(limit), left, until})
	}
	return draw.Grid([]draw.Column{
		{Name: "ID", Key: true}, {Name: "BY", Leaves: 2}, {Name: "TEAM", Leaves: 3}, {Name: "MOST", Right: true},
		{Name: "ABOVE", Right: true}, {Name: "BUDGET", Leaves: 1},
		{Name: "LEFT", Right: true, Leaves: 5}, {Name: "EXPIRES", Leaves: 4},
	}, rows, p.Columns())
}

// spent formats a job's cost with the given number of decimals. Less than a cent gets six decimals, unless a budget of
// a dollar or more makes cents negligible. An amount above zero is never shown as zero.
func spent(j api.Job, places int) string {
	if f := j.Spent.Float(); f > 0 && f < 0.01 && (j.Budget == nil || j.Budget.Float() < 1) {
		places = 6
	}
	text := money.Format(j.Spent, j.Currency, places)
	if !j.Spent.IsZero() && text == money.Format(money.Amount{}, j.Currency, places) {
		return money.Short(j.Spent, j.Currency)
	}
	return text
}

// phase describes what the machine of a running job does, or returns "" while the program runs.
func phase(j api.Job) string {
	switch j.Phase {
	case "", string(state.StageRunning):
		return ""
	case string(state.StageRequested):
		return "requesting a machine"
	case string(state.StageProvisioning):
		return "provisioning its machine"
	case string(state.StageTerminating):
		return "terminating its machine"
	}
	return Words(j.Phase)
}

// held reports whether the job has a machine now. The API keeps the machine of the last attempt for status; it does not
// count.
func held(j api.Job) bool { return j.Offer != "" && j.Finished == nil && j.State == "running" }

// Follow holds the last shown line of a job. A job's cost decreases when its machine turns out to have ended earlier,
// and the next line then explains that.
type Follow struct {
	spent money.Amount
	text  string
}

// Progress returns the next line about a job. Call it only for lines that are shown.
func (f *Follow) Progress(j api.Job, p Place) string {
	text, why := spent(j, 3), ""
	if j.Spent.Cmp(f.spent) < 0 && text != f.text {
		why = "corrected from " + f.text + ": its machine ended earlier than was known, or is billed lower"
	}
	f.spent, f.text = j.Spent, text
	return progress(j, p, why)
}

// Progress formats a job as one line of at most the width. It omits whole items that do not fit.
func Progress(j api.Job, p Place) string { return progress(j, p, "") }

func progress(j api.Job, p Place, why string) string {
	items := progressItems(j, why)
	line := items[0]
	if p.Width > 0 {
		line = draw.Cut(line, p.Width)
	}
	for _, item := range items[1:] {
		if longer := line + "  " + item; p.Width == 0 || draw.Width(longer) <= p.Width {
			line = longer
		}
	}
	return Clean(line)
}

// progressItems returns the items of a progress line, the most important first.
func progressItems(j api.Job, why string) []string {
	items := []string{progressHead(j)}
	if j.Total != nil {
		items = append(items, fmt.Sprintf("step %d/%d", j.Step, *j.Total))
	} else if j.Step > 0 {
		items = append(items, fmt.Sprintf("step %d", j.Step))
	}
	if loss, ok := j.Metrics["loss"]; ok {
		items = append(items, fmt.Sprintf("loss %.4g", loss))
	}
	items = append(items, spentOf(j, 3))
	if why != "" {
		items[len(items)-1] += " (" + why + ")"
	}
	switch {
	case j.TimeLeft == nil || j.Finished != nil:
	case *j.TimeLeft < 0:
		items = append(items, Seconds(-*j.TimeLeft)+" late")
	default:
		items = append(items, Seconds(*j.TimeLeft)+" left")
		if j.Odds != nil {
			items = append(items, fmt.Sprintf("%.0f %% on time", *j.Odds*100))
		}
	}
	if held(j) {
		items = append(items, string(j.Offer))
	}
	if j.Interruptions > 0 {
		items = append(items, draw.Count(j.Interruptions, "interruption"))
	}
	return items
}

// progressHead returns the job's ID, with its state unless the rest of the line shows it.
func progressHead(j api.Job) string {
	switch w := phase(j); {
	case j.State == "running" && w != "":
		return j.ID + " " + w
	case j.State == "running" && j.Step > 0: // the step shows it
		return j.ID
	case (j.State == "queued" || j.State == "held" || j.State == "paused") && j.Why != "":
		return j.ID + " " + j.State + " (" + Words(j.Why) + ")"
	}
	return j.ID + " " + j.State
}

// spentOf formats a job's cost, with its budget if it has one.
func spentOf(j api.Job, decimals int) string {
	text := spent(j, decimals)
	if j.Budget != nil {
		text += " of " + money.Short(*j.Budget, j.Currency)
	}
	return text
}

// Refused says who rejected a job that waited for approval, and why.
func Refused(j api.Job, p Place) string {
	return draw.Wrap("", Clean(j.ID+" was rejected by "+j.Approval.By+": "+j.Approval.Reason), p.Columns())
}

// Failed says why a job failed, with the last lines of its output.
func Failed(j api.Job, last []string, p Place) string {
	var b strings.Builder
	b.WriteString("\n")
	why := j.Detail
	if why == "" && j.Exit != 0 {
		why = "exit code " + exitCode(j.Exit)
	}
	if why == "" {
		why = Words(j.Why)
	}
	b.WriteString(draw.Wrap("", j.ID+" failed: "+Clean(why), p.Columns()))
	if len(last) > 0 {
		b.WriteString(draw.Wrap("", "The end of its output; scrimp logs "+j.ID+" has all of it:", p.Columns()))
	}
	for _, line := range last {
		line = "  " + Clean(line)
		if p.Width > 0 {
			line = draw.Cut(line, p.Width)
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

// Next lists the commands that are useful right after a submission.
func Next(id string) string {
	var b strings.Builder
	for _, line := range [][2]string{{"attach ", "its progress; Ctrl-C detaches"}, {"logs -f ", "its output"},
		{"explain ", "its decisions, and why"}, {"stop ", "saves a checkpoint and ends it"}} {
		fmt.Fprintf(&b, "  scrimp %-*s  %s\n", len("logs -f ")+len(id), line[0]+id, line[1])
	}
	return b.String()
}
