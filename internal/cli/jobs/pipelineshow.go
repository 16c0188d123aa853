package jobs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/show/group"
	"scrimp/internal/work/pipelinefile"
	"scrimp/money"
)

// graphOf returns the stages of a file for drawing.
func graphOf(f *pipelinefile.File) []group.GraphStage {
	var list []group.GraphStage
	for _, s := range f.Spec.Stages {
		x := group.GraphStage{Name: s.Name}
		for _, n := range s.Needs {
			x.Needs = append(x.Needs, f.Spec.Stages[n].Name)
		}
		var gates []string
		for _, g := range s.All() {
			gates = append(gates, g.Text())
		}
		if s.Drift != nil {
			gates = append(gates, s.Drift.Text())
		}
		x.Gate = strings.Join(gates, " and ")
		list = append(list, x)
	}
	return group.Layered(list)
}

// stateOf returns the states of all stages, to detect changes.
func stateOf(p *api.PipelineState) (text string) {
	for i := range p.Stages {
		text += p.Stages[i].State + " "
	}
	return text
}

// stageNews prints the stages whose state differs from before.
func (a *app) stageNews(g api.Group, before map[string]string) {
	wide := 0
	for _, s := range g.Pipeline.Stages {
		wide = min(40, max(wide, len(s.Name)))
	}
	for _, s := range g.Pipeline.Stages {
		if s.State != before[s.Name] && s.State != "waiting" {
			a.Notef("%s\n", group.Stage(s, g.Currency, wide, a.Line()))
		}
		before[s.Name] = s.State
	}
}

// pipelineCost shows the cost of each stage.
func (a *app) pipelineCost(ctx context.Context, c *command.Client, id string) error {
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
	if a.JSON {
		return a.Print(v)
	}
	a.Printf("%s", v.Text(a.Place()))
	return nil
}

// runOf returns the newest run of the pipeline with the given name, or the run with the given ID, and all runs. With
// schedules it also accepts a schedule.
func runOf(ctx context.Context, c *command.Client, name string, schedules bool) (g api.Group, all []api.Group,
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
		err = fmt.Errorf("%s is %s and no pipeline: scrimp groups lists what there is", id, kindOf(g))
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

// pipelineShows returns a command that shows the newest run of a pipeline.
func (a *app) pipelineShows(use, short string,
	do func(context.Context, *command.Client, api.Group) error) *cobra.Command {
	return &cobra.Command{Use: use + " PIPELINE", Short: short, Args: command.Takes("PIPELINE"),
		Long: short + ": its newest run, or the run of that id." + command.PlainExit,
		RunE: a.With(func(ctx context.Context, c *command.Client, args []string) error {
			g, _, err := runOf(ctx, c, args[0], use == "status")
			if err != nil {
				return err
			}
			return do(ctx, c, g)
		})}
}

func (a *app) pipelineGraphCmd() *cobra.Command {
	return &cobra.Command{Use: "graph [pipeline.yaml | PIPELINE]",
		Short: "Draw the stages of a pipeline and what comes after what",
		Args:  command.Takes("[pipeline.yaml]"), ValidArgsFunction: command.CompleteJobFile,
		Long: "Draws the stages of a pipeline file, or of the newest run of a pipeline with what each has cost. Those that " +
			"may run side by side have one number. Without an argument it takes pipeline.yaml, or else dvc.yaml, of this " +
			"folder. --json prints one object for each stage." + command.PlainExit,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				if _, err := os.Stat(args[0]); errors.Is(err, fs.ErrNotExist) && filepath.Ext(args[0]) == "" {
					return a.With(func(ctx context.Context, c *command.Client, args []string) error {
						g, _, err := runOf(ctx, c, args[0], false)
						if err != nil {
							return err
						}
						return a.drawn(group.Graph(g), g.Currency)
					})(cmd, args)
				}
			}
			file, err := pipelineFile(args)
			if err != nil {
				return err
			}
			p, _, err := readPipeline(file, a.Now())
			if err != nil {
				return err
			}
			return a.drawn(graphOf(p), money.USD)
		}}
}

// drawn prints the stages of a pipeline.
func (a *app) drawn(list []group.GraphStage, c money.Currency) error {
	if !a.JSON {
		a.Printf("%s", group.DrawGraph(list, c, a.Place()))
		return nil
	}
	for _, s := range list {
		if err := a.Print(s); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) pipelineWhyCmd() *cobra.Command {
	return &cobra.Command{Use: "why PIPELINE STAGE",
		Short: "Show which input, parameter or program of a stage has changed",
		Args:  command.Takes("PIPELINE", "STAGE"),
		Long: "Compares a stage of the newest run of a pipeline with the newest run before it, and says which of its " +
			"inputs and parameters differ, and whether its command, environment or image does." + command.PlainExit,
		RunE: a.With(func(ctx context.Context, c *command.Client, args []string) error {
			g, all, err := runOf(ctx, c, args[0], false)
			if err != nil {
				return err
			}
			v, err := group.WhyOf(g, all, args[1])
			switch {
			case err != nil:
				return err
			case a.JSON:
				return a.Print(v)
			}
			a.Printf("%s", v.Text(a.Place()))
			return nil
		})}
}
