package pipeline

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/groups"
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

// showCmd returns a command that shows the newest run of a pipeline.
func (a *app) showCmd(use, short string,
	do func(context.Context, *command.Client, api.Group) error) *cobra.Command {
	return &cobra.Command{Use: use + " PIPELINE", Short: short, Args: command.Takes("PIPELINE"),
		Long: short + ": its newest run, or the run of that id." + command.PlainExit,
		RunE: a.With(func(ctx context.Context, c *command.Client, args []string) error {
			g, _, err := groups.PipelineRun(ctx, c, args[0], use == "status")
			if err != nil {
				return err
			}
			return do(ctx, c, g)
		})}
}

func (a *app) graphCmd() *cobra.Command {
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
						g, _, err := groups.PipelineRun(ctx, c, args[0], false)
						if err != nil {
							return err
						}
						return a.drawn(group.Graph(g), g.Currency)
					})(cmd, args)
				}
			}
			file, err := fileOf(args)
			if err != nil {
				return err
			}
			p, _, err := read(file, a.Now())
			if err != nil {
				return err
			}
			return a.drawn(graphOf(p), money.USD)
		}}
}

// drawn prints the stages of a pipeline.
func (a *app) drawn(list []group.GraphStage, c money.Currency) error {
	return command.ShowEach(a.App, list, group.DrawGraph(list, c, a.Place()))
}

func (a *app) whyCmd() *cobra.Command {
	return &cobra.Command{Use: "why PIPELINE STAGE",
		Short: "Show which input, parameter or program of a stage has changed",
		Args:  command.Takes("PIPELINE", "STAGE"),
		Long: "Compares a stage of the newest run of a pipeline with the newest run before it, and says which of its " +
			"inputs and parameters differ, and whether its command, environment or image does." + command.PlainExit,
		RunE: a.With(func(ctx context.Context, c *command.Client, args []string) error {
			g, all, err := groups.PipelineRun(ctx, c, args[0], false)
			if err != nil {
				return err
			}
			v, err := group.WhyOf(g, all, args[1])
			if err != nil {
				return err
			}
			return a.Show(v, v.Text(a.Place()))
		})}
}
