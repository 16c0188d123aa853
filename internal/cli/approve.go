package cli

import (
	"context"
	"errors"
	"net/http"

	"github.com/spf13/cobra"

	api "scrimp/client"
	"scrimp/internal/cli/show"
)

func (a *app) approveCmd() *cobra.Command {
	var reason string
	cmd := &cobra.Command{Use: "approve [JOB]", Short: "Let a job run that waits for approval", Args: takes("[JOB]"),
		GroupID: groupShare, ValidArgsFunction: a.completeJob(isHeld),
		Long: "Approves a job that can cost more than a budget lets jobs cost without approval (scrimp budgets set " +
			"--approve). It takes an operator of the job's team other than its submitter, or an admin; an operator of all " +
			"teams where the budget is of all jobs. " +
			"The budgets are weighed again: the job took nothing while it waited. Without a JOB it lists the jobs " +
			"that wait." + plainExit,
		Example: "  scrimp approve\n  scrimp approve train-lm-2 --reason \"for the paper\"",
	}
	cmd.Flags().StringVar(&reason, "reason", "", "`text` for the audit trail (default: none)")
	cmd.RunE = a.with(func(ctx context.Context, c *client, args []string) error {
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
		Args: takes("JOB"), GroupID: groupShare, ValidArgsFunction: a.completeJob(isHeld),
		Long: "Ends a job that waits for approval. Its submitter finds the reason in scrimp status. It takes an " +
			"operator of the job's team." + plainExit,
		Example: "  scrimp reject train-lm-2 --reason \"try it on a tenth of the data first\"",
	}
	cmd.Flags().StringVar(&reason, "reason", "", "`text` for its submitter (default: none, and it must be given)")
	cmd.RunE = a.with(func(ctx context.Context, c *client, args []string) error {
		if reason == "" {
			return errors.New("a rejection says why: give --reason")
		}
		return a.review(ctx, c, args[0], "reject", reason)
	})
	return cmd
}

func isHeld(j api.Job) bool { return j.State == "held" }

// held lists the jobs that wait for approval.
func (a *app) held(ctx context.Context, c *client) error {
	var list []api.Job
	if err := c.do(ctx, http.MethodGet, "/v1/jobs?state=held", nil, &list); err != nil {
		return err
	}
	if !a.json {
		a.printf("%s", show.Held(list, a.place()))
		return nil
	}
	for _, j := range list {
		if err := a.print(j); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) review(ctx context.Context, c *client, job, what, reason string) error {
	var j api.Job
	if err := c.do(ctx, http.MethodPost, ofJob(job, "/")+what, api.Review{Reason: reason}, &j); err != nil {
		return err
	}
	if a.json {
		return a.print(j)
	}
	a.printf("%s", show.Job(j, a.place()))
	return nil
}
