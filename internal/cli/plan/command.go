package plan

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"scrimp/internal/cli/command"
	"scrimp/internal/cli/jobfile"
	"scrimp/internal/cli/pastruns"
	"scrimp/internal/job/spec"
	"scrimp/internal/work/studyfile"
)

func (a *app) planCmd() *cobra.Command {
	var f jobfile.Flags
	var ranked bool
	var svg string
	var most int
	cmd := &cobra.Command{
		Use:   "plan job.yaml | plan study.yaml | plan -- COMMAND [ARG ...]",
		Short: "Show what a job would cost and when it finishes; spends nothing",
		Long: `Makes 200 simulated runs of the job with the production code, on markets drawn from what is known of the
offers, and prints the cost (10 %, median, 90 %), the finish, the chance to meet the deadline, and why
each offer is taken or not. It rents nothing. Amounts are in the offers' currency.

With --catalog, or where the job asks for an accelerator that the market of the data folder does not
sell, it ranks the offers of the catalogue instead, by expected cost, finish and chance to be on time,
says why each other one is rejected and what would be cheaper, and simulates the first (docs/plan.md).

A study file gives the plan of the search, as scrimp tune plan does.

Exit status: 0 feasible, 2 not feasible, 1 error.`,
		Example: "  scrimp plan job.yaml\n  scrimp plan --catalog job.yaml --svg frontier.svg\n" +
			"  scrimp plan --json job.yaml --env STEPS=100",
		Args: command.TakesJob, GroupID: command.GroupRun, ValidArgsFunction: command.CompleteJobFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			if most < 0 {
				return fmt.Errorf("--limit %d: write a number of plans, or 0 for all", most)
			}
			if is, err := isStudy(cmd, args); err != nil {
				return err
			} else if is {
				return a.study(cmd.Context(), args[0], f)
			}
			j, _, _, err := jobfile.Load(spec.Read, args, cmd.ArgsLenAtDash(), f, a.Now())
			if err != nil {
				return err
			}
			if kind := j.Resources.Accelerator; kind != "" && !ranked && f.Market == "" && len(j.Places()) == 0 &&
				!a.sells(cmd.Context(), kind) {
				if kind == spec.AnyAccelerator {
					kind = "GPU"
				}
				a.Notef("note: the market of the data folder sells no %s: the catalogue is ranked instead (--catalog)\n", kind)
				ranked = true
			}
			if ranked {
				j, folder, notes, err := jobfile.Load(spec.Rank, args, cmd.ArgsLenAtDash(), f, a.Now())
				if err != nil {
					return err
				}
				jobfile.Note(a.App, notes)
				return a.rankPlan(cmd.Context(), j, folder, svg, most)
			}
			return a.plan(cmd.Context(), args, cmd.ArgsLenAtDash(), f)
		},
	}
	f.Add(cmd)
	f.AddTerms(cmd)
	f.AddArray(cmd)
	cmd.Flags().BoolVar(&ranked, "catalog", false, "rank the catalogue's offers for the job instead, by arithmetic "+
		"(docs/plan.md) (default: simulate it on the server's market)")
	cmd.MarkFlagsMutuallyExclusive("array", "catalog")
	cmd.Flags().StringVar(&svg, "svg", "", "with --catalog: draw cost against time into this `file` (default: no drawing)")
	cmd.Flags().IntVar(&most, "limit", 50, "with --catalog: plans and rejected offers to return; 0 is all")
	return cmd
}

// isStudy reports whether the file is one of a search, and refuses the flags that a search has no use for.
func isStudy(cmd *cobra.Command, args []string) (is bool, err error) {
	if cmd.ArgsLenAtDash() >= 0 || len(args) != 1 {
		return false, nil
	}
	text, err := jobfile.ReadFile(args[0], spec.MaxText)
	if err != nil || !studyfile.Is(text) {
		return false, nil // the reader of job files explains what is wrong with it
	}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.Name != "env" && f.Name != "market" && cmd.InheritedFlags().Lookup(f.Name) == nil {
			err = fmt.Errorf("%s is a study: it takes no --%s; write it into the study or its job", args[0], f.Name)
		}
	})
	return err == nil, err
}

// plan simulates a job on the server's market.
func (a *app) plan(ctx context.Context, args []string, dash int, f jobfile.Flags) error {
	c, v, j, folder, err := jobfile.Connect(ctx, a.App, args, dash, f)
	if err != nil {
		return err
	}
	if j, err = pastruns.Modelled(j, folder); err != nil {
		return err
	}
	j, from := pastruns.From(ctx, a.App, c, j)
	member, array, err := f.Member(j)
	if err != nil {
		return err
	}
	p, q, err := predict(ctx, a.App, c, member, v)
	if err != nil {
		return err
	}
	if array != nil {
		p = p.OfArray(array.Members, array.AtOnce, array.Budget)
	}
	if p.Known && ctx.Err() == nil {
		p.Engines = q.Compare(j)
	}
	if p.WorkFrom = from; dash >= 0 {
		p = p.OfCommand(j.Checkpoint.Dir)
	}
	return a.shows(p)
}
