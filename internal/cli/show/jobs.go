package show

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	api "scrimp/client"
	"scrimp/internal/draw"
	"scrimp/internal/money"
	"scrimp/internal/state"
)

// Jobs is the table of jobs and queue.
func Jobs(list []api.Job, p Place) string {
	if len(list) == 0 {
		return draw.Wrap("", "No jobs. scrimp run job.yaml runs one, scrimp init writes the file.", p.width())
	}
	var rows [][]string
	// Whose they are is said where they are not all the same person's.
	several := slices.ContainsFunc(list, func(j api.Job) bool { return j.User != list[0].User || j.Team != list[0].Team })
	for _, j := range list {
		step, budget, left, odds := draw.Short(j.Step), "-", "-", "-"
		if j.Total != nil {
			step += "/" + draw.Short(*j.Total)
		}
		if j.Budget != nil {
			budget = money.Format(*j.Budget, j.Currency, 2)
		}
		if j.TimeLeft != nil && j.Finished == nil {
			left = seconds(*j.TimeLeft)
		}
		if j.Odds != nil && j.Finished == nil {
			odds = fmt.Sprintf("%.0f %%", *j.Odds*100)
		}
		row := []string{j.ID, j.State, step, spent(j, 4), budget, left, odds, p.when(j.Submitted), words(j.Why)}
		if several {
			row = slices.Insert(row, 1, clean(cmp.Or(j.User, "-")), clean(cmp.Or(j.Team, "-")))
		}
		rows = append(rows, row)
	}
	columns := []draw.Column{
		{Name: "ID", Least: 12}, {Name: "STATE"}, {Name: "STEP", Right: true}, {Name: "SPENT", Right: true},
		{Name: "BUDGET", Right: true, Leaves: 3},
		{Name: "LEFT", Right: true, Leaves: 1}, {Name: "ON-TIME", Right: true, Leaves: 1}, {Name: "SUBMITTED", Leaves: 4},
		{Name: "WHY", Least: 6, Leaves: 2},
	}
	if several {
		columns = slices.Insert(columns, 1, draw.Column{Name: "BY", Least: 6}, draw.Column{Name: "TEAM", Least: 6, Leaves: 6})
	}
	return draw.Grid(columns, rows, p.width())
}

// Held is the table of jobs that wait for approval.
func Held(list []api.Job, p Place) string {
	if len(list) == 0 {
		return draw.Wrap("", "No job waits for approval.", p.width())
	}
	var rows [][]string
	for _, j := range list {
		most, above, limit, until := "unknown", "-", "-", "-"
		if v := j.Approval; v != nil {
			if v.Most != nil {
				most = money.Format(*v.Most, j.Currency, 2)
			}
			if len(v.Limits) > 0 {
				above, limit = money.Format(v.Limits[0].Above, j.Currency, 2), v.Limits[0].Limit
			}
			until = p.until(v.Until)
		}
		left := "-"
		if j.TimeLeft != nil {
			left = seconds(*j.TimeLeft)
		}
		rows = append(rows, []string{j.ID, clean(j.User), clean(j.Team), most, above, clean(limit), left, until})
	}
	return draw.Grid([]draw.Column{
		{Name: "ID", Least: 12}, {Name: "BY", Leaves: 2}, {Name: "TEAM", Leaves: 3}, {Name: "MOST", Right: true},
		{Name: "ABOVE", Right: true}, {Name: "BUDGET", Leaves: 1},
		{Name: "LEFT", Right: true, Leaves: 5}, {Name: "EXPIRES", Leaves: 4},
	}, rows, p.width())
}

// spent writes what a job has spent, with so many decimals; less than a cent has
// six, where no budget of dollars says that cents are nothing.
func spent(j api.Job, places int) string {
	if f := j.Spent.Float(); f > 0 && f < 0.01 && (j.Budget == nil || j.Budget.Float() < 1) {
		places = 6
	}
	return money.Format(j.Spent, j.Currency, places)
}

// phase is what the machine of a running job is doing, for people; "" where it
// does what it is rented for.
func phase(j api.Job) string {
	switch j.Phase {
	case "", string(state.StageRunning):
		return ""
	case string(state.StageRequested):
		return "asks for a machine"
	case string(state.StageProvisioning):
		return "starts its machine"
	case string(state.StageTerminating):
		return "gives its machine back"
	}
	return words(j.Phase)
}

// held reports whether the job has a machine now. The machine of the last
// attempt stays on the wire, for status; it is not shown as held.
func held(j api.Job) bool { return j.Offer != "" && j.Finished == nil && j.State == "running" }

// Progress is a job in one line of at most the width: an item that does not
// fit is left out whole.
func Progress(j api.Job, p Place) string {
	items := progressItems(j)
	line := items[0]
	if p.Width > 0 {
		line = draw.Cut(line, p.Width)
	}
	for _, item := range items[1:] {
		if longer := line + "  " + item; p.Width == 0 || utf8.RuneCountInString(longer) <= p.Width {
			line = longer
		}
	}
	return clean(line)
}

// progressItems is what a progress line says, the most important first.
func progressItems(j api.Job) []string {
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
	if j.TimeLeft != nil && j.Finished == nil {
		items = append(items, seconds(*j.TimeLeft)+" left")
		if j.Odds != nil {
			items = append(items, fmt.Sprintf("odds %.0f %%", *j.Odds*100))
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

// progressHead names the job, and its state where the rest of the line does not say it.
func progressHead(j api.Job) string {
	switch w := phase(j); {
	case j.State == "running" && w != "":
		return j.ID + " " + w
	case j.State == "running" && j.Step > 0: // the step says so
		return j.ID
	case (j.State == "queued" || j.State == "held" || j.State == "paused") && j.Why != "":
		return j.ID + " " + j.State + " (" + words(j.Why) + ")"
	}
	return j.ID + " " + j.State
}

// spentOf is what a job has spent, of its budget where it has one.
func spentOf(j api.Job, decimals int) string {
	text := spent(j, decimals)
	if j.Budget != nil {
		text += " of " + money.Format(*j.Budget, j.Currency, 2)
	}
	return text
}

// Job is the page of one job.
func Job(j api.Job, p Place) string {
	var b strings.Builder
	jobHead(&b, j, p)
	jobSteps(&b, j, p)
	jobMachine(&b, j, p)
	jobTimes(&b, j, p)
	jobOwner(&b, j, p)
	jobApproval(&b, j.Approval, p)
	if len(j.Tags) > 0 {
		var list []string
		for _, name := range slices.Sorted(maps.Keys(j.Tags)) {
			list = append(list, name+"="+j.Tags[name])
		}
		p.fact(&b, "tags", "%s", strings.Join(list, ", "))
	}
	return b.String()
}

// jobHead writes the state, and why it is this one.
func jobHead(b *strings.Builder, j api.Job, p Place) {
	head := j.ID + ": " + j.State
	if j.Why != "" {
		head += " (" + words(j.Why) + ")"
	}
	if w := phase(j); w != "" && held(j) {
		head += ", " + w
	}
	b.WriteString(draw.Wrap("", head, p.width()))
	if j.Detail != "" {
		p.fact(b, "detail", "%s", j.Detail)
	}
	if j.State == "failed" && j.Exit != 0 {
		p.fact(b, "exit code", "%s", exitCode(j.Exit))
	}
}

// jobSteps writes how far the program is, and what it measures.
func jobSteps(b *strings.Builder, j api.Job, p Place) {
	step := fmt.Sprint(j.Step)
	if j.Total != nil && *j.Total > 0 {
		step = fmt.Sprintf("%d of %d (%d %%)", j.Step, *j.Total, j.Step*100 / *j.Total)
	}
	if j.StepsPerSecond != nil && j.Finished == nil {
		step += fmt.Sprintf(", %s a second", three(*j.StepsPerSecond))
	}
	p.fact(b, "step", "%s", step)
	p.fact(b, "saved step", "%d", j.SavedStep)
	if len(j.Metrics) > 0 {
		var list []string
		for _, name := range slices.Sorted(maps.Keys(j.Metrics)) {
			list = append(list, fmt.Sprintf("%s %.4g", name, j.Metrics[name]))
		}
		p.fact(b, "metrics", "%s", strings.Join(list, ", "))
	}
}

// jobMachine writes what the job has spent, and on what it spends now.
func jobMachine(b *strings.Builder, j api.Job, p Place) {
	spent := spentOf(j, 4)
	if j.Rate != nil && held(j) {
		spent += ", " + rate(*j.Rate, j.Currency) + " now"
	}
	p.fact(b, "spent", "%s", spent)
	switch {
	case held(j) && j.Machine != "":
		p.fact(b, "machine", "%s, %s", j.Machine, j.Offer)
	case held(j):
		p.fact(b, "machine", "asked for: %s", j.Offer)
	}
	p.fact(b, "attempts", "%d, %s", j.Attempts, draw.Count(j.Interruptions, "interruption"))
}

// jobTimes writes the deadline, the submission and the end.
func jobTimes(b *strings.Builder, j api.Job, p Place) {
	if j.Deadline != nil {
		text := moment(*j.Deadline)
		if j.TimeLeft != nil && j.Finished == nil {
			text += ", " + seconds(*j.TimeLeft) + " of market time left"
		}
		if j.Odds != nil && j.Finished == nil {
			text += fmt.Sprintf(", met with odds of %.0f %%", *j.Odds*100)
		}
		p.fact(b, "deadline", "%s", text)
	}
	p.fact(b, "submitted", "%s", p.when(j.Submitted))
	if j.Finished != nil {
		p.fact(b, "finished", "%s, after %s on the wall", p.when(*j.Finished),
			draw.Span(j.Finished.Sub(j.Submitted).Round(time.Second)))
	}
}

// jobOwner writes who submitted the job, for which team and project. The owner of the
// data folder, who works alone, is not named.
func jobOwner(b *strings.Builder, j api.Job, p Place) {
	of := strings.Trim(j.Team+"/"+j.Project, "/")
	switch other := j.User != "" && j.User != "owner"; {
	case other && of != "":
		p.fact(b, "by", "%s, for %s", j.User, of)
	case other:
		p.fact(b, "by", "%s", j.User)
	case of != "":
		p.fact(b, "for", "%s", of)
	}
}

// jobApproval writes who approved or rejected the job.
func jobApproval(b *strings.Builder, v *api.Approval, p Place) {
	if v == nil || v.At == nil {
		return
	}
	what := "rejected"
	if v.Approved != nil && *v.Approved {
		what = "approved"
	}
	text := what + " by " + v.By + ", " + p.when(*v.At)
	if v.Reason != "" {
		text += ": " + clean(v.Reason)
	}
	p.fact(b, "approval", "%s", text)
}

// exitCode writes a program's exit code, with what shells mean by it.
func exitCode(code int) string {
	switch {
	case code == 126:
		return "126: the command cannot be executed"
	case code == 127:
		return "127: the command was not found"
	case code > 128 && code < 160:
		return fmt.Sprintf("%d: ended by signal %d", code, code-128)
	}
	return strconv.Itoa(code)
}

// Refused says who rejected a job that waited for approval, and why.
func Refused(j api.Job, p Place) string {
	return draw.Wrap("", clean(j.ID+" was rejected by "+j.Approval.By+": "+j.Approval.Reason), p.width())
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
		why = words(j.Why)
	}
	b.WriteString(draw.Wrap("", j.ID+" failed: "+clean(why), p.width()))
	if len(last) > 0 {
		b.WriteString(draw.Wrap("", "The end of its output; scrimp logs "+j.ID+" has all of it:", p.width()))
	}
	for _, line := range last {
		line = "  " + clean(line)
		if p.Width > 0 {
			line = draw.Cut(line, p.Width)
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

// Next names the commands that are useful for a job that was just submitted.
func Next(id string) string {
	var b strings.Builder
	for _, line := range [][2]string{{"attach ", "its progress; Ctrl-C detaches"}, {"logs -f ", "its output"},
		{"explain ", "its decisions, and why"}, {"stop ", "saves a checkpoint and ends it"}} {
		fmt.Fprintf(&b, "  scrimp %-*s  %s\n", len("logs -f ")+len(id), line[0]+id, line[1])
	}
	return b.String()
}
