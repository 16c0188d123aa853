package group

import (
	"fmt"
	"slices"
	"strings"
	"time"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
)

// pipelineProgress summarizes a pipeline in a few words.
func pipelineProgress(s *api.PipelineState) (list []string) {
	count := map[string]int{}
	for i := range s.Stages {
		count[s.Stages[i].State]++
	}
	list = append(list, fmt.Sprintf("%d of %s done", count["done"]+count["reused"], draw.Count(len(s.Stages), "stage")))
	for _, state := range []struct{ name, is string }{{"reused", "%d of them reused"}, {"running", "%d running"},
		{"keeping", "%d keeping outputs"}, {"waiting", "%d waiting"}, {"not_begun", "%d not begun"},
		{"skipped", "%d skipped"}, {"failed", "%d failed"}} {
		if n := count[state.name]; n > 0 {
			list = append(list, fmt.Sprintf(state.is, n))
		}
	}
	return list
}

// Stage formats a stage as one line of a pipeline's progress.
func Stage(s api.StageState, c money.Currency, wide int, p show.Place) string {
	text := fmt.Sprintf("%s%s  %-8s", show.Clean(s.Name), strings.Repeat(" ", max(0, wide-draw.Width(s.Name))),
		show.Words(s.State))
	switch {
	case s.Saved != nil:
		text += "  saves " + money.Format(*s.Saved, c, 4)
	case s.Spared != nil:
		text += "  spares " + money.Format(*s.Spared, c, 4)
	case s.Finished != nil:
		text += "  " + stageCost(s, c)
	}
	if s.State == "running" || s.State == "failed" {
		text += "  " + show.Clean(s.Job)
	}
	if s.Why != "" {
		text += "  " + show.Clean(s.Why)
	}
	if p.Width > 0 {
		text = draw.Cut(text, p.Width)
	}
	return strings.TrimRight(text, " ")
}

// stageCost formats what a stage has cost; "-" once its job is over and until its machine is billed.
func stageCost(s api.StageState, c money.Currency) string {
	if s.CostOpen && s.Finished != nil {
		return "-"
	}
	return money.Format(s.Cost, c, 4)
}

// Pipeline formats the page of a pipeline run.
func Pipeline(g api.Group, p show.Place) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", Progress(g, p))
	clock(&b, g, "times here are real time", p)
	p.Fact(&b, "submitted", "%s by %s; at most %s at once", p.When(g.Submitted), g.User, draw.Count(g.AtOnce, "stage"))
	if g.Finished != nil {
		p.Fact(&b, "finished", "%s", p.When(*g.Finished))
	}
	if g.Rate != nil {
		p.Fact(&b, "burns", "%s", show.PerHour(*g.Rate, g.Currency))
	}
	limits(&b, g, g.Pipeline.GroupLimits, p)
	if !g.Pipeline.Saved.IsZero() {
		p.Fact(&b, "saved", "%s by stages that were not run again", money.Format(g.Pipeline.Saved, g.Currency, 4))
	}
	gateFacts(&b, g, p)
	review(&b, g, p)
	b.WriteString("\n")
	var rows [][]string
	listed := g.Pipeline.Stages
	if len(listed) > mostListed { // the important stages
		listed = slices.DeleteFunc(slices.Clone(listed), func(s api.StageState) bool {
			return s.State == "waiting" || s.State == "done" || s.State == "reused"
		})
		listed = listed[:min(len(listed), mostListed)]
		p.Fact(&b, "listed", "%d of %s: those that run, have failed or are skipped; --json lists all", len(listed),
			draw.Count(len(g.Pipeline.Stages), "stage"))
	}
	for _, s := range listed {
		cost := "-"
		if s.Started != nil && s.State != "reused" {
			cost = stageCost(s, g.Currency)
		}
		rows = append(rows, []string{show.Clean(s.Name), show.Words(s.State), stageTook(s, p), cost,
			show.OrDash(show.Clean(s.Job)), show.OrDash(show.Clean(s.Why))})
	}
	b.WriteString(draw.Grid([]draw.Column{{Name: "STAGE", Key: true}, {Name: "STATE"},
		{Name: "TIME", Right: true, Leaves: 2}, {Name: "COST", Right: true}, {Name: "JOB", Least: 8, Leaves: 3},
		{Name: "WHY", Least: 12, Leaves: 1}}, rows, p.Columns()))
	id := show.Clean(g.ID)
	b.WriteString("\n")
	for _, line := range [][2]string{{"cost " + id, "what each stage cost, and what would lower it"},
		{"graph " + id, "which stage comes after which"}, {"why " + id + " STAGE", "what has changed since the run before"}} {
		fmt.Fprintf(&b, "  scrimp pipeline %-*s  %s\n", len("why  STAGE")+len(id), line[0], line[1])
	}
	return b.String()
}

// stageTook returns the duration of a stage so far.
func stageTook(s api.StageState, p show.Place) string {
	switch {
	case s.Started == nil || s.State == "reused":
		return "-"
	case s.Finished != nil:
		return draw.Span(s.Finished.Sub(*s.Started))
	case p.Now.IsZero():
		return "-"
	}
	return draw.Span(p.Now.Sub(*s.Started).Round(time.Second))
}

// GraphStage is a stage in the drawing of a pipeline file or run.
type GraphStage struct {
	Name  string        `json:"name"`
	Layer int           `json:"layer"` // 1 if it needs no other stage
	Needs []string      `json:"needs,omitempty"`
	Gate  string        `json:"gate,omitempty"`
	State string        `json:"state,omitempty"` // only of a run
	Cost  *money.Amount `json:"cost,omitempty"`  // only of a run, if the stage ran and its cost is final or grows
	Share float64       `json:"-"`               // of the total cost
	time  time.Duration
}

// Graph returns the stages of a run for drawing.
func Graph(g api.Group) (list []GraphStage) {
	total := money.Amount{}
	for _, s := range g.Pipeline.Stages {
		total = total.Add(s.Cost)
	}
	for _, s := range g.Pipeline.Stages {
		x := GraphStage{Name: s.Name, Needs: s.Needs, State: s.State}
		if s.Started != nil && s.State != "reused" && (!s.CostOpen || s.Finished == nil) {
			if x.Cost = new(s.Cost); total.Sign() > 0 {
				x.Share = s.Cost.Float() / total.Float()
			}
		}
		if s.Started != nil && s.State != "reused" && s.Finished != nil {
			x.time = s.Finished.Sub(*s.Started)
		}
		list = append(list, x)
	}
	return Layered(list)
}

// Layered sets each stage's layer, one more than the highest of its dependencies, and sorts by it. The list must
// already have dependencies first.
func Layered(list []GraphStage) []GraphStage {
	list = slices.Clone(list)
	layer := make(map[string]int, len(list))
	for i := range list {
		list[i].Layer = 1
		for _, n := range list[i].Needs {
			list[i].Layer = max(list[i].Layer, layer[n]+1)
		}
		layer[list[i].Name] = list[i].Layer
	}
	slices.SortStableFunc(list, func(a, b GraphStage) int { return a.Layer - b.Layer })
	return list
}

// DrawGraph draws a pipeline: a line for each stage; stages that may run at the same time are next to each other.
func DrawGraph(list []GraphStage, c money.Currency, p show.Place) string {
	var rows [][]string
	digits := len(fmt.Sprint(list[len(list)-1].Layer))
	for i, s := range list {
		first, last := i == 0 || list[i-1].Layer < s.Layer, i == len(list)-1 || list[i+1].Layer > s.Layer
		line := map[[2]bool]string{{true, true}: "──", {true, false}: "┬─", {false, false}: "├─",
			{false, true}: "└─"}[[2]bool{first, last}]
		number := strings.Repeat(" ", digits)
		if first {
			number = fmt.Sprintf("%*d", digits, s.Layer)
		}
		cost, bar := "-", "-"
		if s.Cost != nil {
			cost, bar = money.Format(*s.Cost, c, 4), strings.TrimRight(draw.Bar(s.Share, 10), " ")
		}
		after := strings.Join(s.Needs, ", ")
		if s.Gate != "" {
			after += "; gate " + s.Gate
		}
		rows = append(rows, []string{number + " " + line + " " + show.Clean(s.Name), show.OrDash(show.Clean(after)),
			show.OrDash(show.Words(s.State)),
			cost, show.OrDash(bar)})
	}
	text := draw.Grid([]draw.Column{{Name: strings.Repeat(" ", digits+4) + "STAGE", Key: true}, {Name: "AFTER", Least: 10},
		{Name: "STATE", Leaves: 2}, {Name: "COST", Right: true, Leaves: 1}, {Name: "SHARE", Leaves: 3}}, rows, p.Columns())
	var b strings.Builder
	b.WriteString(text)
	if path, took := longest(list); took > 0 {
		b.WriteString("\n")
		p.Fact(&b, "critical path", "%s, %s", strings.Join(path, " → "), draw.Span(took))
	}
	return b.String()
}

// longest returns the chain of stages with the longest total duration.
func longest(list []GraphStage) (path []string, took time.Duration) {
	until, before := map[string]time.Duration{}, map[string]string{}
	end := ""
	for _, s := range list {
		for _, n := range s.Needs {
			if until[n] > until[s.Name] {
				until[s.Name], before[s.Name] = until[n], n
			}
		}
		if until[s.Name] += s.time; until[s.Name] > took {
			end, took = s.Name, until[s.Name]
		}
	}
	for ; end != ""; end = before[end] {
		path = append(path, show.Clean(end))
	}
	slices.Reverse(path)
	return path, took
}

// Bounds of the stages in a plan's drawing, and in a page's list.
const (
	mostDrawn  = 40
	mostListed = 200
)

// PipelinePlan formats what a pipeline would run, before it spends anything.
func PipelinePlan(name string, list []GraphStage, atOnce int, budget money.Amount, most api.GroupLimits, notes []string,
	p show.Place) string {
	var b strings.Builder
	first := list[:min(len(list), mostDrawn)]
	fmt.Fprintf(&b, "%s has %s\n\n%s\n", show.Clean(name), draw.Count(len(list), "stage"), DrawGraph(first, money.USD, p))
	if n := len(list) - len(first); n > 0 {
		p.Fact(&b, "not drawn", "%s: scrimp pipeline graph draws all", draw.Count(n, "stage"))
	}
	p.Fact(&b, "budget", "%s for all of them: at most that begins; their saves and minimum charges may add to it",
		money.Short(budget, money.USD))
	if n := most.GPULimit; n != nil {
		p.Fact(&b, "GPU-hours", "%s for all of them, saves included", number(*n))
	}
	if n := most.WallClock; n != nil {
		p.Fact(&b, "wall clock", "%s from the submission on: then its stages save and end", draw.Span(*n))
	}
	p.Fact(&b, "at once", "%s at most", draw.Count(atOnce, "stage"))
	for _, n := range notes {
		p.Fact(&b, "note", "%s", n)
	}
	return b.String()
}
