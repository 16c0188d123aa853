// Package models holds the commands that list the versions of the models that pipelines deploy.
package models

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/show/group"
)

// app is what every command is given, for the commands of this package.
type app struct {
	*command.App
	project string
}

// Commands are those of this package.
func Commands(shared *command.App) []*cobra.Command {
	a := &app{App: shared}
	cmd := &cobra.Command{Use: "models [PIPELINE]", Short: "List the versions of the models that pipelines deploy",
		GroupID: command.GroupLook, Args: command.Takes("[PIPELINE]"),
		Long: "Lists the versions of the models that pipelines deploy, oldest first: each run of a pipeline with a stage " +
			"that deploys is a version. A line has the version, its state, what the run cost, what its gates say and its " +
			"metrics. deployed is the version that is in place now; replaced, one that was; unchanged, a run that reused " +
			"the deploy stage because its model was in place; unknown, the last that was deployed before a deploy stage " +
			"failed. docs/pipelines.md explains gates." + command.PlainExit,
		Example: "  scrimp models\n  scrimp models retrain --json\n  scrimp models show retrain@3",
		RunE: a.With(func(ctx context.Context, c *command.Client, args []string) error {
			name := ""
			if len(args) > 0 {
				name = args[0]
			}
			if strings.Contains(name, "@") {
				return fmt.Errorf("%s is a version, and scrimp models lists the versions of a pipeline: write scrimp models "+
					"show %s", name, name)
			}
			list, err := c.ModelVersions(ctx, name, a.project)
			if err != nil {
				return err
			}
			if len(list) == 0 && (name != "" || a.project != "") {
				return a.none(name)
			}
			return command.ShowEach(a.App, list, group.Models(list, a.Place()))
		})}
	cmd.PersistentFlags().StringVar(&a.project, "project", "", "take the pipelines of this `project` alone (default: "+
		"of all)")
	cmd.AddCommand(a.showCmd())
	return []*cobra.Command{cmd}
}

func (a *app) showCmd() *cobra.Command {
	return &cobra.Command{Use: "show VERSION", Short: "Show a version of a model: cost, gates, metrics and lineage",
		Args: command.Takes("VERSION"),
		Long: "Shows a version of a model: what its run cost, what its gates compared with what, its metrics, and its " +
			"lineage: the digests of what each stage has read and made, and its parameters. VERSION is PIPELINE@NUMBER as " +
			"scrimp models lists it; PIPELINE for its deployed version, or its newest where none is deployed; or the id " +
			"of the run." + command.PlainExit,
		Example: "  scrimp models show retrain\n  scrimp models show retrain@3\n  scrimp models show retrain-3 --json",
		RunE: a.With(func(ctx context.Context, c *command.Client, args []string) error {
			run, err := a.runOf(ctx, c, args[0])
			if err != nil {
				return err
			}
			v, err := c.ModelVersion(ctx, run)
			if no, ok := errors.AsType[*api.Problem](err); ok && no.Status == http.StatusNotFound {
				return unknown(args[0])
			}
			if err != nil {
				return err
			}
			return a.Show(v, group.Model(v, a.Place()))
		})}
}

// none says that no version is listed under a name of a pipeline and the project asked for; "": under any name.
func (a *app) none(name string) error {
	what := "there is no pipeline " + name + " with versions of a model"
	if name == "" {
		what = "there is no pipeline with versions of a model"
	}
	if a.project != "" {
		what += " in the project " + a.project
	}
	return errors.New(what + ": scrimp models lists those that there are; a pipeline makes versions if a stage is named " +
		"deploy or has deploy: true")
}

func unknown(version string) error {
	return fmt.Errorf("there is no version %s: scrimp models lists those that there are", version)
}

// ofProjects returns the deployed version of each project, or its newest one. The list is oldest first.
func ofProjects(list []api.ModelVersion) (runs []api.ModelVersion) {
	for _, v := range list {
		switch of := len(runs) - 1; {
		case of < 0 || runs[of].Team != v.Team || runs[of].Project != v.Project:
			runs = append(runs, v)
		case !current(runs[of]):
			runs[of] = v
		}
	}
	return runs
}

// runOf is the run that has made a version.
func (a *app) runOf(ctx context.Context, c *command.Client, version string) (string, error) {
	name, number, found := strings.Cut(version, "@")
	if n, err := strconv.Atoi(number); found && (err != nil || n < 1 || name == "") {
		return "", fmt.Errorf("%q is not a version: write one such as retrain@3, as scrimp models lists it", version)
	}
	list, err := c.ModelVersions(ctx, name, a.project)
	switch {
	case err != nil:
		return "", err
	case !found && len(list) == 0: // the name of no pipeline is the id of a run
		return version, nil
	}
	var runs []api.ModelVersion
	if found {
		runs = slices.DeleteFunc(list, func(v api.ModelVersion) bool { return v.ID() != version })
	} else {
		runs = ofProjects(list)
	}
	switch {
	case len(runs) == 0:
		return "", unknown(version)
	case len(runs) > 1:
		return "", fmt.Errorf("%s belongs to the projects %q and %q: give --project, or the run, such as %s",
			version, runs[0].Project, runs[1].Project, runs[0].Run)
	case !found:
		which := map[string]string{"deployed": "the deployed version", "unknown": "the last that was deployed"}
		a.Notef("%s is %s of %s\n", runs[0].ID(), cmp.Or(which[runs[0].State], "the newest version, and none is deployed,"),
			name)
	}
	return runs[0].Run, nil
}

// current reports whether a version is the last that its pipeline deployed.
func current(v api.ModelVersion) bool { return v.State == "deployed" || v.State == "unknown" }
