package jobs

import (
	"context"
	"errors"
	"net/http"

	"github.com/spf13/cobra"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/groups"
	"scrimp/internal/cli/show"
)

func (a *app) approveCmd() *cobra.Command {
	var reason string
	cmd := &cobra.Command{Use: "approve [JOB]", Short: "Approve a job that waits for approval",
		Args:    command.Takes("[JOB]"),
		GroupID: command.GroupShare, ValidArgsFunction: a.CompleteJob(isHeld),
		Long: "Approves a job that can cost more than a budget lets jobs cost without approval (scrimp budgets set " +
			"--approve). It takes an operator of the job's team other than its submitter, or an admin; an operator of all " +
			"teams where the budget is of all jobs. " +
			"The budgets are weighed again: the job took nothing while it waited. Without a JOB it lists the jobs " +
			"that wait." + command.PlainExit,
		Example: "  scrimp approve\n  scrimp approve train-lm-2 --reason \"for the paper\"",
	}
	cmd.Flags().StringVar(&reason, "reason", "", "`text` for the audit trail (default: none)")
	cmd.RunE = a.With(func(ctx context.Context, c *command.Client, args []string) error {
		if len(args) == 0 {
			return a.held(ctx, c)
		}
		return a.review(ctx, c, args[0], "approve", reason)
	})
	return cmd
}

func (a *app) rejectCmd() *cobra.Command {
	var reason string
	cmd := &cobra.Command{Use: "reject JOB --reason TEXT", Short: "End a job that waits for approval, and say why",
		Args: command.Takes("JOB"), GroupID: command.GroupShare, ValidArgsFunction: a.CompleteJob(isHeld),
		Long: "Ends a job that waits for approval. Its submitter finds the reason in scrimp status. It takes an " +
			"operator of the job's team." + command.PlainExit,
		Example: "  scrimp reject train-lm-2 --reason \"try it on a tenth of the data first\"",
	}
	cmd.Flags().StringVar(&reason, "reason", "", "`text` for its submitter (default: none, and it must be given)")
	cmd.RunE = a.With(func(ctx context.Context, c *command.Client, args []string) error {
		if reason == "" {
			return errors.New("a rejection says why: give --reason")
		}
		return a.review(ctx, c, args[0], "reject", reason)
	})
	return cmd
}

func isHeld(j api.Job) bool { return j.State == "held" }

// held lists the jobs that wait for approval.
func (a *app) held(ctx context.Context, c *command.Client) error {
	var list []api.Job
	if err := c.Do(ctx, http.MethodGet, "/v1/jobs?state=held", nil, &list); err != nil {
		return err
	}
	return command.ShowEach(a.App, list, show.Held(list, a.Place()))
}

func (a *app) review(ctx context.Context, c *command.Client, job, what, reason string) error {
	return groups.Changing(ctx, c, job, func() error {
		var j api.Job
		if err := c.Do(ctx, http.MethodPost, command.OfJob(job, "/")+what, api.Review{Reason: reason}, &j); err != nil {
			return err
		}
		return a.Show(j, show.Job(j, a.Place()))
	}, func() error { return groups.Review(ctx, a.App, c, job, what, reason) })
}
