package run

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/follow"
	"scrimp/internal/cli/jobfile"
	"scrimp/internal/job/spec"
	"scrimp/internal/work/groups"
)

func (a *app) rerunCmd() *cobra.Command {
	var detach bool
	var from string
	var env []string
	cmd := &cobra.Command{Use: "rerun [JOB]", Short: "Run a job again as it was submitted, or from a checkpoint",
		Args: command.Takes("[JOB]"), GroupID: command.GroupRun, ValidArgsFunction: a.CompleteJob(command.Every),
		Long: "Submits a job again with the files and env of its submission, as a new job with a budget of its " +
			"own, and shows its progress as scrimp run does. It begins from nothing, or with --from from a copy of a " +
			"checkpoint of that job or of another one: what becomes of the other does not matter to it. Secrets are taken " +
			"from the environment again: they are forgotten when a job is over. To go on with the same job and its " +
			"receipt, scrimp resume it. Ctrl-C detaches; the job goes on.\n\nExit status: 0 succeeded or detached, 1 " +
			"error, 3 the job failed or was stopped.",
		Example: "  scrimp rerun train-lm\n  scrimp rerun --from train-lm --env LR=1e-4\n" +
			"  scrimp rerun --from train-lm@000002-000007\n  scrimp rerun finetune --from train-lm",
		RunE: a.With(func(ctx context.Context, c *command.Client, args []string) error {
			job, _, _ := strings.Cut(from, "@")
			if len(args) > 0 {
				job = args[0]
			}
			if job == "" {
				return errors.New("nothing to run again: name a job, or a checkpoint with --from JOB[@CHECKPOINT]")
			}
			s, err := a.again(ctx, c, job, env)
			if err != nil {
				return err
			}
			s.From = from
			j, err := c.Submit(ctx, s)
			if err != nil {
				return err
			}
			if detach {
				return follow.Detached(ctx, a.App, c, j)
			}
			return follow.Job(ctx, a.App, c, j.ID)
		})}
	cmd.Flags().BoolVarP(&detach, "detach", "d", false, "submit and return (default: show the progress)")
	cmd.Flags().StringVar(&from, "from", "", "begin from a checkpoint of this `job`, its newest or JOB@CHECKPOINT "+
		"(default: from nothing)")
	cmd.Flags().StringArrayVar(&env, "env", nil, "set `NAME=VALUE` in the program's environment (may be repeated)")
	return cmd
}

// again returns a submission of an earlier job with other variables.
func (a *app) again(ctx context.Context, c *command.Client, job string, env []string) (s api.Submission, err error) {
	s = api.Submission{Key: jobfile.Key(), Rerun: job, AcceptUnproven: true} // the server accepted it once
	if err := c.Do(ctx, http.MethodGet, command.OfJob(job, "/spec"), nil, &s.Spec); err != nil {
		return s, err
	}
	j, err := spec.Decode(s.Spec)
	if err != nil {
		return s, err
	}
	old, err := c.Job(ctx, job)
	if err != nil {
		return s, err
	}
	if old.Group != "" && old.Index != nil {
		g, err := c.Group(ctx, old.Group)
		if err != nil {
			return s, err
		}
		of := groups.Indexes{Members: g.Members}
		if g.Array != nil {
			of.From, of.Step = g.Array.From, g.Array.Step
		}
		member, err := groups.Again(groups.Kind(g.Kind), g.ID, job, of, *old.Index)
		if err != nil {
			return s, err
		}
		env = append(member, env...)
	}
	if len(env) > 0 {
		if j, err = j.WithEnv(env); err != nil {
			return s, err
		}
		text, err := json.Marshal(j)
		if err != nil {
			return s, err
		}
		s.Spec = text
	}
	if s.Secrets, err = jobfile.Secrets(j.Secrets); err != nil {
		return s, err
	}
	s.Shell, err = jobfile.Shell(j, c.Far)
	return s, err
}
