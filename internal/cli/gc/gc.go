// Package gc holds the commands that show what the server keeps and give disk back.
package gc

import (
	"context"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/show/artifacts"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/size"
)

// app gives the commands of this package their shared environment.
type app struct{ *command.App }

// Commands returns the commands of this package.
func Commands(shared *command.App) []*cobra.Command {
	a := &app{shared}
	return []*cobra.Command{a.gcCmd()}
}

func (a *app) gcCmd() *cobra.Command {
	var b api.GC
	var older, fit string
	cmd := &cobra.Command{Use: "gc", Short: "Give disk back: remove what jobs that are over have left",
		Args: command.Takes(), GroupID: command.GroupRest,
		Long: "Removes from the server's disk what is older than the server keeps it (scrimp doctor says how long), as the " +
			"server does by itself once an hour, or what is older than --older-than: work folders, output, kept outputs and " +
			"checkpoints of jobs that are over, what ended machines of this computer have left, and contents that no work " +
			"folder needs. A job that waits, runs or is paused loses nothing. The newest checkpoint of a job stays unless " +
			"--newest-checkpoints asks for it, and what a job file keeps in another store stays. Receipts, costs and " +
			"decisions are not touched. A job without its work folder cannot be resumed or run again. It takes an admin of " +
			"all teams.\n\nWith --fit only outputs of pipeline stages go: those of least value per byte, until the others fit " +
			"(scrimp pipeline cache lists them). What a pipeline that is not over may read stays, even if " +
			"it does not fit." + command.PlainExit,
		Example: "  scrimp gc --dry-run\n  scrimp gc --older-than 30d --only work,machines\n" +
			"  scrimp gc --older-than 1h --keep train-lm\n  scrimp gc --fit 20GB --dry-run",
		RunE: a.With(func(ctx context.Context, c *command.Client, _ []string) error {
			if older != "" {
				span, err := spec.ParseDuration(older)
				if err != nil {
					return fmt.Errorf("--older-than: %w", err)
				}
				if span <= 0 {
					return fmt.Errorf("--older-than %s: write a time of more than 0, such as 1s, or leave it out for the server's "+
						"own rule", older)
				}
				b.OlderThan = span
			}
			if fit != "" {
				n, err := size.Parse(fit)
				if err != nil || n < 0 {
					return fmt.Errorf("--fit %s: write a size such as 20GB, or 0B", fit)
				}
				b.Fit = new(int64(n))
			}
			var done api.GCDone
			if err := c.Do(ctx, http.MethodPost, "/v1/gc", b, &done); err != nil {
				return err
			}
			return command.ShowEach(a.App, done.Items, artifacts.GC(done, a.Place()))
		})}
	f := cmd.Flags()
	f.StringVar(&older, "older-than", "", "`time` since the job was over, such as 30d (default: as the server keeps it)")
	f.StringVar(&fit, "fit", "", "`size` that outputs of pipeline stages may take together, such as 20GB (default: any)")
	f.StringSliceVar(&b.Only, "only", nil, "`kinds`: work, logs, outputs, checkpoints, machines, unused (default: all)")
	f.StringSliceVar(&b.Keep, "keep", nil, "`jobs` of which nothing is removed (default: none)")
	f.BoolVar(&b.NewestCheckpoints, "newest-checkpoints", false,
		"remove the newest checkpoint of each job too (default: it stays)")
	for _, name := range []string{"older-than", "only", "newest-checkpoints"} {
		cmd.MarkFlagsMutuallyExclusive("fit", name)
	}
	f.BoolVar(&b.DryRun, "dry-run", false, "list what would go, and remove nothing (default: it is removed)")
	return cmd
}
