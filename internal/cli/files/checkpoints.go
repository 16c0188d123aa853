package files

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/show/artifacts"
)

func (a *app) checkpointsCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "checkpoints JOB", Short: "List a job's checkpoints, fetch one, or remove one",
		Args: command.Takes("JOB"), GroupID: command.GroupLook, ValidArgsFunction: a.CompleteJob(command.Every),
		Long: "Lists the checkpoints that a job has kept, newest first. The one marked newest is what the job goes on " +
			"from; checkpoint.keep in the job file says how many are kept." + command.PlainExit,
		Example: "  scrimp checkpoints train-lm\n  scrimp checkpoints get train-lm -o last\n" +
			"  scrimp checkpoints get train-lm@000002-000007\n  scrimp checkpoints rm train-lm@000001-000003",
		RunE: a.With(func(ctx context.Context, c *command.Client, args []string) error {
			var list []api.Checkpoint
			if err := c.Do(ctx, http.MethodGet, command.OfJob(args[0], "/checkpoints"), nil, &list); err != nil {
				return err
			}
			return command.ShowEach(a.App, list, artifacts.Checkpoints(args[0], list, a.Place()))
		})}
	cmd.AddCommand(a.checkpointsGetCmd(), a.checkpointsRmCmd())
	return cmd
}

func (a *app) checkpointsGetCmd() *cobra.Command {
	var to string
	cmd := &cobra.Command{Use: "get JOB[@CHECKPOINT]", Short: "Copy the files of a checkpoint here",
		Args: command.Takes("JOB[@CHECKPOINT]"), ValidArgsFunction: a.CompleteJob(command.Every),
		Long: "Copies the files of a job's newest checkpoint, or of the one that is named, here, each checked against its " +
			"hash. What is there already is replaced, file by file; scrimp get JOB --checkpoint is the same." +
			command.PlainExit,
		RunE: a.With(func(ctx context.Context, c *command.Client, args []string) error {
			job, name := cutCheckpoint(args[0])
			return a.getCheckpoint(ctx, c, job, name, to)
		})}
	cmd.Flags().StringVarP(&to, "to", "o", "", "`folder` to copy to (default JOB-checkpoint)")
	return cmd
}

func (a *app) checkpointsRmCmd() *cobra.Command {
	return &cobra.Command{Use: "rm JOB@CHECKPOINT", Short: "Remove a checkpoint of a job that is over or paused",
		Args: command.Takes("JOB@CHECKPOINT"), ValidArgsFunction: a.CompleteJob(command.Every),
		Long: "Removes a checkpoint, and the parts that no other one needs. A job that is paused keeps its newest one; " +
			"while a job runs, its agent removes old ones as checkpoint.keep says." + command.PlainExit,
		RunE: a.With(func(ctx context.Context, c *command.Client, args []string) error {
			job, name := cutCheckpoint(args[0])
			if name == newest {
				return fmt.Errorf("name the checkpoint: scrimp checkpoints rm %s@CHECKPOINT; scrimp checkpoints %s lists them", job,
					job)
			}
			if err := c.Do(ctx, http.MethodDelete, command.OfJob(job, "/checkpoints/")+url.PathEscape(name), nil,
				nil); err != nil {
				return err
			}
			return a.Showf(map[string]string{"job": job, "checkpoint": name}, "%s of %s is removed.\n", name, job)
		})}
}

// newest names a job's newest checkpoint.
const newest = "latest"

// cutCheckpoint splits JOB@CHECKPOINT; without a name it returns the newest.
func cutCheckpoint(text string) (job, name string) {
	job, name, found := strings.Cut(text, "@")
	if !found || name == "" {
		name = newest
	}
	return job, name
}
