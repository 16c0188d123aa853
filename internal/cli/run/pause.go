package run

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/follow"
	"scrimp/internal/cli/submit"
	"scrimp/internal/job/spec"
)

func (a *app) pauseCmd() *cobra.Command {
	var b api.Pause
	cmd := &cobra.Command{Use: "pause JOB ...", Short: "Save a checkpoint and give the machine back, until resume",
		Args: command.Takes("JOB", "[JOB ...]"), GroupID: command.GroupRun, ValidArgsFunction: a.CompleteJobs(command.Live),
		Long: "Asks the program to save, uploads and verifies the checkpoint, and gives the machine back. The job keeps " +
			"its budget and its deadline, which runs on, and costs nothing until scrimp resume takes it up from its " +
			"checkpoint; its wall-clock budget stands still. A job that waits is paused at once." + command.SeveralJobs +
			command.PlainExit,
		Example: "  scrimp pause train-lm\n  scrimp resume train-lm",
		RunE: a.With(func(ctx context.Context, c *command.Client, args []string) error {
			return a.Each(ctx, args, func(job string) error { return a.pause(ctx, c, job, b) })
		})}
	cmd.Flags().BoolVar(&b.Force, "force", false, "pause a job that keeps no checkpoints, and lose what it has done "+
		"(default: it is refused)")
	return cmd
}

func (a *app) pause(ctx context.Context, c *command.Client, job string, b api.Pause) error {
	var j api.Job
	if err := c.Do(ctx, http.MethodPost, command.OfJob(job, "/pause"), b, &j); err != nil {
		return err
	}
	switch {
	case a.JSON:
		return a.Print(j)
	case j.State == "paused":
		a.Printf("%s is paused. scrimp resume %s takes it up.\n", j.ID, j.ID)
	default:
		a.Printf("%s: %s. scrimp attach %s shows it.\n", j.ID, j.Detail, j.ID)
	}
	return nil
}

// termFlags holds new terms of a job.
type termFlags struct{ deadline, budget, gpuHours, wallClock, priority string }

func (f *termFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.deadline, "deadline", "", "be done by this `time`, as 6h or \"2026-12-01 18:00\", "+
		"or none (default: as it is)")
	cmd.Flags().StringVar(&f.budget, "budget", "", "cost at most this `amount` in all, as $25.00, or none (default: as "+
		"it is)")
	cmd.Flags().StringVar(&f.gpuHours, "gpu-hours", "", "use at most so many `hours` of GPU time in all, or none "+
		"(default: as it is)")
	cmd.Flags().StringVar(&f.wallClock, "wall-clock", "", "take at most this `span` in all, as 12h, or none (default: as "+
		"it is)")
	cmd.Flags().StringVar(&f.priority, "priority", "", "critical, normal or low `priority` (default: as it is)")
	_ = cmd.RegisterFlagCompletionFunc("priority", cobra.FixedCompletions([]cobra.Completion{"critical", "normal", "low"},
		cobra.ShellCompDirectiveNoFileComp))
}

// changes returns the terms that were given.
func (f *termFlags) changes() (c api.Changes) {
	for _, v := range []struct {
		text string
		to   **string
	}{{f.deadline, &c.Deadline}, {f.budget, &c.Budget}, {f.gpuHours, &c.GPUHours}, {f.wallClock, &c.WallClock},
		{f.priority, &c.Priority}} {
		if v.text != "" {
			*v.to = &v.text
		}
	}
	if c.Deadline != nil {
		local := spec.LocalDeadline(*c.Deadline, time.Local)
		c.Deadline = &local
	}
	return c
}

func (a *app) updateCmd() *cobra.Command {
	var f termFlags
	var force bool
	cmd := &cobra.Command{Use: "update JOB", Short: "Change the deadline, budget or priority of a job",
		Args: command.Takes("JOB"), GroupID: command.GroupRun, ValidArgsFunction: a.CompleteJob(command.Live),
		Long: "Changes the terms of a job that waits, runs or is paused; scrimp decides again with them at once. A larger " +
			"budget must fit into the budgets of its team, and where a cost this high needs approval it is refused: stop the " +
			"job, and resume it with the new budget. The job file stays as it was submitted. A deadline that " +
			"the job misses at its pace is refused, unless --force: it would move to on-demand machines.\n\n" +
			"Exit status: 0 done, 1 error, 2 the job would miss the deadline.",
		Example: "  scrimp update train-lm --deadline \"in 6h\" --budget $40\n  scrimp update train-lm --budget none",
		RunE: a.With(func(ctx context.Context, c *command.Client, args []string) error {
			b := f.changes()
			b.AcceptLate = force
			if b == (api.Changes{AcceptLate: force}) {
				return errors.New("nothing to change: give --deadline, --budget, --gpu-hours, --wall-clock or --priority")
			}
			var j api.Job
			err := c.Do(ctx, http.MethodPatch, command.OfJob(args[0], ""), b, &j)
			if p, ok := errors.AsType[*api.Problem](err); ok && p.Field == "accept_late" {
				a.Notef("not changed: %s; with --force it is\n", p.Title)
				return command.Infeasible
			}
			if err != nil {
				return err
			}
			return a.Showf(j, "%s has its new terms. scrimp status %s shows them.\n", j.ID, j.ID)
		})}
	f.add(cmd)
	cmd.Flags().BoolVar(&force, "force", false, "accept a deadline that the job misses at its pace "+
		"(default: refuse it)")
	return cmd
}

func (a *app) resumeCmd() *cobra.Command {
	var f termFlags
	var env []string
	var detach bool
	cmd := &cobra.Command{Use: "resume JOB ...", Short: "Resume jobs that are paused, stopped, cancelled or failed",
		Args: command.Takes("JOB", "[JOB ...]"), GroupID: command.GroupRun, ValidArgsFunction: a.CompleteJobs(resumable),
		Long: "Takes a job up again from its newest checkpoint, as the same job with one receipt. One that is over is let " +
			"in anew: budgets are weighed, and it may wait for approval. One that ran out of budget or time needs more of " +
			"it. Secrets of a job that was over are taken from the environment again: they were forgotten then. It shows " +
			"the job's progress as scrimp run does; Ctrl-C detaches, and the job goes on. Several jobs are taken up, what " +
			"fails is said, and it returns at once. A job that has succeeded is not " +
			"resumed: scrimp rerun --from begins a new one from its checkpoint.\n\nExit status: 0 succeeded or detached, 1 " +
			"error, 3 the job failed or was stopped.",
		Example: "  scrimp resume train-lm --budget $40\n  scrimp resume train-lm --env BATCH=16 --detach",
		RunE: a.With(func(ctx context.Context, c *command.Client, args []string) error {
			return a.Each(ctx, args, func(job string) error {
				j, err := submit.Resume(ctx, c, job, api.Resume{Changes: f.changes(), Env: env})
				switch {
				case err != nil:
					return err
				case detach || len(args) > 1:
					return follow.Detached(ctx, a.App, c, j)
				}
				return follow.Job(ctx, a.App, c, j.ID)
			})
		})}
	f.add(cmd)
	cmd.Flags().StringArrayVar(&env, "env", nil, "set `NAME=VALUE` in the program's environment (may be repeated)")
	cmd.Flags().BoolVarP(&detach, "detach", "d", false, "return at once (default: show the progress)")
	return cmd
}

func resumable(j api.Job) bool {
	return j.State == "paused" || j.State == "stopped" || j.State == "failed" || j.State == "cancelled"
}
