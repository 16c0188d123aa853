package cli

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/server/workdir"
)

func (a *app) checkpointsCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "checkpoints JOB", Short: "List a job's checkpoints, fetch one, or remove one",
		Args: takes("JOB"), GroupID: groupLook, ValidArgsFunction: a.completeJob(every),
		Long: "Lists the checkpoints that a job has kept, newest first. The one marked newest is what the job goes on " +
			"from; checkpoint.keep in the job file says how many are kept." + plainExit,
		Example: "  scrimp checkpoints train-lm\n  scrimp checkpoints get train-lm -o last\n" +
			"  scrimp checkpoints get train-lm@000002-000007\n  scrimp checkpoints rm train-lm@000001-000003",
		RunE: a.with(func(ctx context.Context, c *client, args []string) error {
			var list []api.Checkpoint
			if err := c.do(ctx, http.MethodGet, ofJob(args[0], "/checkpoints"), nil, &list); err != nil {
				return err
			}
			if !a.json {
				a.printf("%s", show.Checkpoints(args[0], list, a.place()))
				return nil
			}
			for _, l := range list {
				if err := a.print(l); err != nil {
					return err
				}
			}
			return nil
		})}
	cmd.AddCommand(a.checkpointsGetCmd(), a.checkpointsRmCmd())
	return cmd
}

func (a *app) checkpointsGetCmd() *cobra.Command {
	var to string
	cmd := &cobra.Command{Use: "get JOB[@CHECKPOINT]", Short: "Copy the files of a checkpoint here",
		Args: takes("JOB[@CHECKPOINT]"), ValidArgsFunction: a.completeJob(every),
		Long: "Copies the files of a job's newest checkpoint, or of the one that is named, here, each checked against its " +
			"hash." + plainExit,
		RunE: a.with(func(ctx context.Context, c *client, args []string) error {
			job, name := cutCheckpoint(args[0])
			if to == "" {
				to = job + "-checkpoint"
			}
			r, err := c.request(ctx, http.MethodGet, ofJob(job, "/checkpoints/")+url.PathEscape(name))
			if err != nil {
				return err
			}
			defer func() { _ = r.Body.Close() }()
			if err := os.MkdirAll(to, 0o755); err != nil {
				return fmt.Errorf("copy the checkpoint: %w", err)
			}
			if err := workdir.Unpack(r.Body, to); err != nil {
				return fmt.Errorf("copy the checkpoint: %w", err)
			}
			if a.json {
				return a.print(map[string]string{"job": job, "checkpoint": name, "folder": to})
			}
			a.printf("The checkpoint of %s is in %s\n", job, to)
			return nil
		})}
	cmd.Flags().StringVarP(&to, "to", "o", "", "`folder` to copy to (default JOB-checkpoint)")
	return cmd
}

func (a *app) checkpointsRmCmd() *cobra.Command {
	return &cobra.Command{Use: "rm JOB@CHECKPOINT", Short: "Remove a checkpoint of a job that is over or paused",
		Args: takes("JOB@CHECKPOINT"), ValidArgsFunction: a.completeJob(every),
		Long: "Removes a checkpoint, and the parts that no other one needs. A job that is paused keeps its newest one; " +
			"while a job runs, its agent removes old ones as checkpoint.keep says." + plainExit,
		RunE: a.with(func(ctx context.Context, c *client, args []string) error {
			job, name := cutCheckpoint(args[0])
			if name == newest {
				return fmt.Errorf("name the checkpoint: scrimp checkpoints rm %s@CHECKPOINT; scrimp checkpoints %s lists them", job,
					job)
			}
			if err := c.do(ctx, http.MethodDelete, ofJob(job, "/checkpoints/")+url.PathEscape(name), nil, nil); err != nil {
				return err
			}
			if a.json {
				return a.print(map[string]string{"job": job, "checkpoint": name})
			}
			a.printf("%s of %s is removed.\n", name, job)
			return nil
		})}
}

// newest names a job's newest checkpoint.
const newest = "latest"

// cutCheckpoint cuts JOB@CHECKPOINT; without a name it is the newest.
func cutCheckpoint(text string) (job, name string) {
	job, name, found := strings.Cut(text, "@")
	if !found {
		name = newest
	}
	return job, name
}
