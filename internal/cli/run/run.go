// Package run holds the commands that begin jobs, pause and resume them, and change their terms.
package run

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/evidence"
	"scrimp/internal/cli/follow"
	"scrimp/internal/cli/groups"
	"scrimp/internal/cli/jobfile"
	"scrimp/internal/cli/pastruns"
	cliplan "scrimp/internal/cli/plan"
	"scrimp/internal/cli/show/planning"
	"scrimp/internal/cli/submit"
	"scrimp/internal/job/spec"
)

// app gives the commands of this package their shared environment.
type app struct{ *command.App }

// Commands returns the commands of this package.
func Commands(shared *command.App) []*cobra.Command {
	a := &app{shared}
	return []*cobra.Command{a.runCmd(), a.rerunCmd(), a.pauseCmd(), a.resumeCmd(), a.updateCmd(), a.profileCmd()}
}

func (a *app) runCmd() *cobra.Command {
	var f jobfile.Flags
	var yes, detach, force bool
	var t together
	cmd := &cobra.Command{
		Use:   "run job.yaml | run -- COMMAND [ARG ...]",
		Short: "Run a job to its deadline for the least money",
		Long: `Runs the job of a job file, or a command as it is, in a copy of its folder, and shows its progress on
stderr; the receipt goes to stdout. At a terminal it says what the run would cost and asks
first; -y or --json does not ask. Ctrl-C detaches; the job goes on.

A job from a command after -- has the name of its script. What the command prints appears here, before the
receipt, and scrimp get copies the files that it makes or changes in its work folder: the newest, up to 1 GiB.
An interrupted command goes on from what it saved in the folder that SCRIMP_CHECKPOINT_DIR or its script names.
scrimp guesses from the script, as scrimp init does, how it shows its progress and how many steps it takes, and
prints each guess. It also prints what an interruption would cost.

The flags for name, deadline, budget, accelerator, capacity, priority and retries replace what the job file
says, and are written as there.

With -y, with --json or without a terminal, scrimp runs no job whose plan is not feasible, and says what would
have to change. It also refuses a job that may run on spot for more than two hours if it has never seen a job of
that name go on from a checkpoint, except on a simulated market with a faster clock, where an interruption costs
seconds. It refuses a job that nothing on the market fits. --force runs all of these; the last then waits.

Exit status: 0 succeeded or detached, 1 error, 2 not run: not feasible, 3 the job failed or was stopped.`,
		Example: "  scrimp run job.yaml\n  scrimp run job.yaml --deadline \"in 6h\" --budget '$25' --gpu A100:2\n" +
			"  scrimp run -y -d job.yaml --env STEPS=100\n  scrimp run -- python3 train.py --epochs 3",
		Args: command.TakesJob, GroupID: command.GroupRun, ValidArgsFunction: command.CompleteJobFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.run(cmd.Context(), args, cmd.ArgsLenAtDash(), f, t, yes, detach, force)
		},
	}
	f.Add(cmd)
	f.AddTerms(cmd)
	f.AddArray(cmd)
	t.add(cmd)
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask before money is spent; what is not feasible is not run "+
		"(default: ask at a terminal)")
	cmd.Flags().BoolVarP(&detach, "detach", "d", false, "submit and return (default: show the progress)")
	cmd.Flags().BoolVar(&force, "force", false, "let a job run whose plan is not feasible, let a long run go on spot "+
		"without proven checkpoints, and let a job wait that nothing fits (default: refuse them)")
	return cmd
}

func (a *app) run(ctx context.Context, args []string, dash int, f jobfile.Flags, t together,
	yes, detach, force bool) error {
	if err := a.checkFile(args, dash, f); err != nil { // before a server is started for it
		return err
	}
	c, v, err := a.Connect(ctx, f.Market)
	if err != nil {
		return err
	}
	j, folder, notes, err := jobfile.Load(spec.Run, args, dash, f, v.Market.Now)
	if err != nil {
		return err
	}
	jobfile.Note(a.App, notes)
	if j, err = a.modelled(j, folder); err != nil {
		return err
	}
	j, from := pastruns.From(ctx, a.App, c, j)
	p, err := a.foretell(ctx, c, j, v, from, args, dash, f, force)
	if err != nil {
		return err
	}
	if !force && p.Feasible { // a plan that is not says why by itself
		if err := proven(ctx, c, j, v.Market.Speed); err != nil {
			return err
		}
	}
	if err := a.agreed(ctx, p, yes, force); err != nil {
		return err
	}
	s, err := submit.Request(ctx, a.App, c, api.Submission{AcceptUnproven: force, AcceptWait: force, Array: f.Array,
		After: t.after}, j, folder)
	if err != nil {
		return err
	}
	if f.Array != "" {
		return groups.Submit(ctx, a.App, c, s, detach)
	}
	job, err := c.Submit(ctx, s)
	if err != nil {
		return err
	}
	return a.follow(ctx, c, job, dash, detach)
}

// follow shows the submitted job: its output if the user gave its command behind a dash, else its progress.
func (a *app) follow(ctx context.Context, c *command.Client, job api.Job, dash int, detach bool) error {
	switch {
	case detach:
		return follow.Detached(ctx, a.App, c, job)
	case dash >= 0 && !a.JSON:
		return follow.Output(ctx, a.App, c, job.ID)
	}
	return follow.Job(ctx, a.App, c, job.ID)
}

// checkFile returns an error where the job file, or the command, and the flags are no valid job.
func (a *app) checkFile(args []string, dash int, f jobfile.Flags) error {
	j, _, _, err := jobfile.Load(spec.Run, args, dash, f, a.Now())
	if err != nil {
		return err
	}
	_, _, err = f.Member(j)
	return err
}

// modelled adds what the model of a job needs, and notes that the job may begin from files of an earlier run.
func (a *app) modelled(j spec.Job, folder string) (spec.Job, error) {
	j, err := pastruns.Modelled(j, folder)
	if err != nil {
		return j, fmt.Errorf("not run: %w", err)
	}
	if pastruns.Given(j, folder).Checkpoint.Given {
		a.Notef("note: %s holds files already: the program may go on from them, so that nothing is learned from how long "+
			"it takes\n", j.Checkpoint.Dir)
	}
	return j, nil
}

// proven refuses a long job on spot without proven checkpoints. On a simulated market, whose speed is not 1, an
// interruption loses only seconds, and proven refuses nothing.
func proven(ctx context.Context, c *command.Client, j spec.Job, speed float64) error {
	if speed != 1 {
		return nil
	}
	return evidence.Proven(ctx, c, j)
}

// foretell shows what the job would cost. Without force it refuses a job that no offer can run.
func (a *app) foretell(ctx context.Context, c *command.Client, j spec.Job, v api.Server, from string, args []string,
	dash int, f jobfile.Flags, force bool) (planning.Plan, error) {
	member, array, err := f.Member(j)
	if err != nil {
		return planning.Plan{}, err
	}
	p, err := cliplan.Predict(ctx, a.App, c, member, v)
	if err != nil {
		return p, err
	}
	if array != nil {
		p = p.OfArray(array.Members, array.AtOnce, array.Budget)
	}
	if p.WorkFrom = from; dash >= 0 {
		p = p.OfCommand(j.Checkpoint.Dir)
	}
	if !a.JSON {
		a.Notef("%s", p.Text(a.Line()))
	}
	if !force && p.Unsold {
		return p, fmt.Errorf("not run: %s: `resources.accelerator` is %s, and nothing on this market has it: leave it out, "+
			"ask for one that scrimp market lists, or name an engine that sells it in engines.yaml (scrimp plan --catalog says "+
			"what could be rented); with --force the job waits until something has it", filepath.Base(args[0]),
			j.Resources.Accelerator)
	}
	if !force && cliplan.Never(p) && a.JSON && len(p.Reasons) > 0 { // the plan was not printed
		return p, errors.New("not run: " + p.Reasons[0] + "; with --force it waits until something fits")
	}
	if !force && cliplan.Never(p) {
		return p, errors.New("not run: nothing on this market fits: scrimp market shows what is for sale; with --force it " +
			"waits until something does")
	}
	return p, nil
}

// agreed asks for confirmation before money is spent, if there is a terminal. An infeasible plan continues only after a
// confirmation or with force.
func (a *app) agreed(ctx context.Context, p planning.Plan, yes, force bool) error {
	_, asks := command.Terminal(a.Err)
	asks = asks && !yes && !a.JSON
	switch {
	case !p.Feasible && !force && !asks:
		why := p.Reasons
		if !a.JSON {
			why = why[:min(1, len(why))] // the plan above has the others
		}
		return &command.Verdict{Exit: command.Infeasible, Err: fmt.Errorf("not run: the plan is not feasible: %s. Change "+
			"--deadline, --budget or what the job asks for; --force runs it as it is", strings.Join(why, "; "))}
	case !p.Feasible && !force:
		if !a.Confirmed(ctx, "It is not feasible. Run it all the same? [y/N] ", false) {
			return &command.Verdict{Exit: command.Infeasible, Err: errors.New("not run: the plan is not feasible")}
		}
	case asks && !a.Confirmed(ctx, "Run it? [Y/n] ", true):
		return errors.New("not run")
	}
	return nil
}
