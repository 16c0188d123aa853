package show

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	api "scrimp/client"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
)

// Job formats the page of one job.
func Job(j api.Job, p Place) string {
	var b strings.Builder
	jobHead(&b, j, p)
	jobSteps(&b, j, p)
	jobMachine(&b, j, p)
	jobTimes(&b, j, p)
	jobOwner(&b, j, p)
	jobApproval(&b, j.Approval, p)
	b.WriteString(Notices(j, p))
	if len(j.Tags) > 0 {
		var list []string
		for _, name := range slices.Sorted(maps.Keys(j.Tags)) {
			list = append(list, name+"="+j.Tags[name])
		}
		p.Fact(&b, "tags", "%s", strings.Join(list, ", "))
	}
	return b.String()
}

// jobHead writes the state and its reason.
func jobHead(b *strings.Builder, j api.Job, p Place) {
	head := j.ID + ": " + j.State
	if j.Why != "" {
		head += " (" + Words(j.Why) + ")"
	}
	if w := phase(j); w != "" && held(j) {
		head += ", " + w
	}
	b.WriteString(draw.Wrap("", head, p.Columns()))
	if j.Detail != "" {
		p.Fact(b, "detail", "%s", j.Detail)
	}
	if j.State == "failed" && j.Exit != 0 {
		p.Fact(b, "exit code", "%s", exitCode(j.Exit))
	}
}

// jobSteps writes the program's progress and metrics.
func jobSteps(b *strings.Builder, j api.Job, p Place) {
	step := fmt.Sprint(j.Step)
	if j.Total != nil && *j.Total > 0 {
		step = fmt.Sprintf("%d of %d (%d %%)", j.Step, *j.Total, j.Step*100 / *j.Total)
	}
	if j.StepsPerSecond != nil && j.Finished == nil {
		step += fmt.Sprintf(", %s a second", Digits(*j.StepsPerSecond))
	}
	p.Fact(b, "step", "%s", step)
	p.Fact(b, "saved step", "%d", j.SavedStep)
	if len(j.Metrics) > 0 {
		var list []string
		for _, name := range slices.Sorted(maps.Keys(j.Metrics)) {
			list = append(list, fmt.Sprintf("%s %.4g", name, j.Metrics[name]))
		}
		p.Fact(b, "metrics", "%s", strings.Join(list, ", "))
	}
}

// jobMachine writes the job's cost and its current machine.
func jobMachine(b *strings.Builder, j api.Job, p Place) {
	spent := spentOf(j, 4)
	if j.Rate != nil && held(j) {
		spent += ", " + PerHour(*j.Rate, j.Currency) + " now"
	}
	what := "spent"
	if j.Closed {
		what = "cost"
	}
	p.Fact(b, what, "%s", spent)
	switch {
	case held(j) && len(j.Nodes) > 0:
		p.Fact(b, "machines", "%s", MachinesOf(len(j.Nodes), j.Offer))
		for _, n := range j.Nodes {
			taken := ""
			if n.Taken {
				taken = ", interrupted"
			}
			p.Fact(b, fmt.Sprintf("  node %d", n.Node), "%s, %s, %s%s", n.Machine, n.Phase, money.Format(n.Cost, j.Currency, 4),
				taken)
		}
	case held(j) && j.Machine != "":
		p.Fact(b, "machine", "%s, %s", j.Machine, j.Offer)
	case held(j):
		p.Fact(b, "machine", "requested: %s", j.Offer)
	}
	if j.Reads != nil && held(j) {
		p.Fact(b, "data", "%s besides, for reading data from another region", money.Short(*j.Reads, j.Currency))
	}
	p.Fact(b, "attempts", "%d, %s", j.Attempts, draw.Count(j.Interruptions, "interruption"))
	b.WriteString(Preemptions(j, p))
}

// realLeft returns the time to the job's deadline in seconds of real time, like its other times. The job must have a
// deadline.
func realLeft(j api.Job) float64 {
	if j.Speed > 0 {
		return *j.TimeLeft / j.Speed
	}
	return *j.TimeLeft
}

// StartsIn returns the wall time in seconds until a waiting job starts: 10 %, median and 90 %. ok is false if it does
// not wait or the time is unknown.
func StartsIn(j api.Job) (wall [3]float64, ok bool) {
	if j.Finished != nil || j.Estimate == nil || j.Estimate.StartS == nil || j.Speed <= 0 {
		return wall, false
	}
	for i, s := range j.Estimate.StartS {
		wall[i] = s / j.Speed
	}
	return wall, true
}

// Starts returns when a waiting job is expected to start, and what it costs from there on. ok is false if neither is
// known.
func Starts(j api.Job) (text string, ok bool) {
	e := j.Estimate
	if e == nil || j.Finished != nil {
		return "", false
	}
	money := func(f float64) string { return money.ShortFloat(f, j.Currency) }
	text = "costs " + between(money(e.Cost[0]), money(e.Cost[2])) + " from there on"
	if s, ok := StartsIn(j); ok {
		text = draw.Starts(s) + ", " + text
	}
	return text, true
}

// Waits says why a job that has no machine waits, and when it is expected to start, as the page of the job does. With
// always it says the detail of another job, too.
func Waits(j api.Job, always bool, p Place) string {
	var b strings.Builder
	waits := j.Finished == nil && (j.State == "queued" || j.State == "held" || j.State == "paused") && !held(j)
	if j.Detail != "" && (waits || always) {
		b.WriteString(draw.Wrap("", "It "+strings.TrimPrefix(j.Detail, "it ")+".", p.Columns()))
	}
	_, known := StartsIn(j)
	switch text, ok := Starts(j); {
	case !waits:
	case known:
		b.WriteString(draw.Wrap("", "It starts "+text+", by the forecast.", p.Columns()))
	case ok:
		b.WriteString(draw.Wrap("", "When it starts is unknown. By the forecast, it "+text+".", p.Columns()))
	case j.State == "queued":
		b.WriteString("When it starts is unknown.\n")
	}
	return b.String()
}

// between formats a range whose ends may read alike.
func between(low, high string) string {
	if low == high {
		return low
	}
	return low + " to " + high
}

// deadlineText says when the deadline is, and how the job stands to it.
func deadlineText(j api.Job, p Place) string {
	text := p.Moment(*j.Deadline)
	if j.TimeLeft != nil && j.Finished == nil {
		text += ", " + Seconds(realLeft(j)) + " left"
	}
	if j.Odds != nil && j.Finished == nil {
		text += fmt.Sprintf(", %.0f %% chance to meet it", *j.Odds*100)
	}
	if how := metDeadline(j); how != "" {
		text += ", " + how
	}
	return text
}

// jobTimes writes the deadline, the submission and the end.
func jobTimes(b *strings.Builder, j api.Job, p Place) {
	if j.Deadline != nil {
		p.Fact(b, "deadline", "%s", deadlineText(j, p))
	}
	if j.Speed > 0 && j.Speed != 1 {
		p.Fact(b, "clock", "%s; times here are real time", draw.SimulatedClock(j.Speed))
	}
	p.Fact(b, "submitted", "%s", p.When(j.Submitted))
	if text, ok := Starts(j); ok {
		p.Fact(b, "starts", "%s", text)
	}
	if j.Started != nil {
		p.Fact(b, "started", "%s", p.When(*j.Started))
	}
	if j.Finished != nil {
		at := p.When(*j.Finished)
		if !p.Now.IsZero() {
			at += " (" + p.Moment(*j.Finished) + ")"
		}
		p.Fact(b, "finished", "%s, after %s", at, took(j))
	}
	if j.Closed {
		more := "scrimp receipt " + j.ID + " says what the money went to"
		switch {
		case j.Session == "":
			more += ", scrimp get " + j.ID + " copies what it kept"
		case j.Started != nil: // it keeps its files as checkpoints
			more += ", scrimp get --checkpoint " + j.ID + " copies its files"
		}
		p.Fact(b, "more", "%s", more)
	}
}

// took returns the wall time of an ended job since its submission.
func took(j api.Job) string { return draw.Span(j.Finished.Sub(j.Submitted).Round(time.Second)) }

// metDeadline describes whether an ended job met its deadline. It returns "" if the job has none, or ended early
// without completing its work.
func metDeadline(j api.Job) string {
	switch {
	case j.TimeLeft == nil || j.Finished == nil:
		return ""
	case *j.TimeLeft < 0:
		return "missed by " + Seconds(-realLeft(j))
	case j.State == "succeeded":
		return "met with " + Seconds(realLeft(j)) + " to spare"
	}
	return ""
}

// Ended formats an ended job as one line: its result, duration and cost.
func Ended(j api.Job, p Place) string {
	text := j.ID + " " + j.State
	if j.State != "succeeded" && j.Why != "" {
		text += " (" + Words(j.Why) + ")"
	}
	if j.Finished != nil {
		text += " after " + took(j)
	}
	text += ", cost " + spentOf(j, 4)
	if how := metDeadline(j); how != "" {
		text += ", deadline " + how
	}
	return draw.Wrap("", Clean(text), p.Columns())
}

// jobOwner writes the submitter, team and project. It omits the owner of the data folder, who works alone.
func jobOwner(b *strings.Builder, j api.Job, p Place) {
	of := strings.Trim(j.Team+"/"+j.Project, "/")
	switch other := j.User != "" && j.User != "owner"; {
	case other && of != "":
		p.Fact(b, "by", "%s, for %s", j.User, of)
	case other:
		p.Fact(b, "by", "%s", j.User)
	case of != "":
		p.Fact(b, "for", "%s", of)
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
	text := what + " by " + v.By + ", " + p.When(*v.At)
	if v.Reason != "" {
		text += ": " + Clean(v.Reason)
	}
	p.Fact(b, "approval", "%s", text)
}

// exitCode formats a program's exit code with its usual meaning.
func exitCode(code int) string {
	switch {
	case code == 126:
		return "126: the command is not executable"
	case code == 127:
		return "127: the command was not found"
	case code > 128 && code < 160:
		return fmt.Sprintf("%d: ended by signal %d", code, code-128)
	}
	return strconv.Itoa(code)
}
