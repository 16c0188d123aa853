package groups

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/show/group"
)

// stateOf returns the states of all stages, to detect changes.
func stateOf(p *api.PipelineState) string {
	var text strings.Builder
	for i := range p.Stages {
		text.WriteString(p.Stages[i].State + " ")
	}
	return text.String()
}

// stageNews prints the stages whose state differs from before.
func stageNews(a *command.App, g api.Group, before map[string]string) {
	wide := 0
	for _, s := range g.Pipeline.Stages {
		wide = min(40, max(wide, len(s.Name)))
	}
	for _, s := range g.Pipeline.Stages {
		if s.State != before[s.Name] && s.State != "waiting" && s.State != "not_begun" {
			a.Notef("%s\n", group.Stage(s, g.Currency, wide, a.Line()))
		}
		before[s.Name] = s.State
	}
}

// StageCosts shows the cost of each stage.
func StageCosts(ctx context.Context, a *command.App, c *command.Client, id string) error {
	r, err := c.GroupReceipt(ctx, id)
	if err != nil {
		return err
	}
	if r.Group.Pipeline == nil {
		if r.Group, err = c.Group(ctx, id); err != nil {
			return err
		}
	}
	v := group.CostOf(r)
	return a.Show(v, v.Text(a.Place()))
}

// PipelineRun returns the newest run of the pipeline with the given name, or the run with the given ID, and all runs.
// With schedules it also accepts a schedule.
func PipelineRun(ctx context.Context, c *command.Client, name string, schedules bool) (g api.Group, all []api.Group,
	err error) {
	list, err := c.Groups(ctx)
	if err != nil {
		return g, nil, err
	}
	if schedules {
		if i := scheduleOf(list, name); i >= 0 {
			g, err = c.Group(ctx, list[i].ID) // with its reports, which the list lacks
			return g, nil, err
		}
	}
	id := ""
	for _, x := range list {
		if x.Kind != "pipeline" {
			continue
		}
		if all = append(all, x); x.Name == name && (id == "" || x.Submitted.After(g.Submitted)) {
			g, id = x, x.ID
		}
	}
	if id == "" {
		id = name
	}
	g, err = c.Group(ctx, id)
	if p, ok := errors.AsType[*api.Problem](err); ok && p.Code == api.JobUnknown {
		err = fmt.Errorf("pipeline %s is not known: scrimp groups lists the runs of pipelines", id)
	}
	if err == nil && g.Pipeline == nil {
		err = fmt.Errorf("%s is %s and no pipeline: scrimp groups lists what there is", id, Kind(g))
	}
	return g, all, err
}

// scheduleOf returns the index of the schedule that a name stands for, or -1 if it stands for a run: the open schedule
// of the name, else the newest of its schedules and of the runs that no schedule began, else the schedule with that ID.
func scheduleOf(list []api.Group, name string) int {
	newest := -1
	for i, x := range list {
		switch {
		case x.Name != name || x.Schedule == nil && (x.Kind != "pipeline" || x.Of != ""):
		case x.Schedule != nil && x.State != "over":
			return i
		case newest < 0 || !x.Submitted.Before(list[newest].Submitted):
			newest = i
		}
	}
	if newest < 0 {
		return slices.IndexFunc(list, func(x api.Group) bool { return x.ID == name && x.Schedule != nil })
	}
	if list[newest].Schedule == nil {
		return -1
	}
	return newest
}
