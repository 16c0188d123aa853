package jobs

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"scrimp/internal/cli/show/utilization"

	"github.com/spf13/cobra"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/follow"
	"scrimp/internal/cli/groups"
	"scrimp/internal/cli/page"
	"scrimp/internal/cli/show"
	"scrimp/internal/cli/show/artifacts"
	"scrimp/internal/cli/show/planning"
	"scrimp/internal/decide/receipt"
)

func (a *app) statusCmd() *cobra.Command {
	return &cobra.Command{Use: "status [JOB]", Short: "Show one job, or all that wait or run",
		Args:    command.Takes("[JOB]"),
		GroupID: command.GroupLook, ValidArgsFunction: a.CompleteJob(command.Every),
		Long: "Shows one job: where it runs, how far it is, what it has spent, its odds, its metrics. Without a JOB it " +
			"lists the jobs that wait or run, as scrimp queue does. Amounts are in the job's currency, spans are " +
			"those of the market's clock." + command.PlainExit,
		RunE: a.With(func(ctx context.Context, c *command.Client, args []string) error {
			if len(args) == 0 {
				few := listing{open: true, limit: shownJobs}
				if a.JSON {
					few.limit = 0
				}
				return a.list(ctx, c, few)
			}
			a.Waiting(ctx, c)
			j, err := c.Job(ctx, args[0])
			if err != nil {
				return groups.Or(ctx, c, args[0], err, func(g api.Group) error { return groups.Print(a.App, g) })
			}
			if a.JSON {
				return a.Print(j)
			}
			a.Printf("%s%s", show.Job(j, a.Place()), a.useOf(ctx, c, j.ID))
			return nil
		})}
}

func (a *app) attachCmd() *cobra.Command {
	return &cobra.Command{Use: "attach JOB", Short: "Show a job's progress until it is over; Ctrl-C detaches",
		Args: command.Takes("JOB"), GroupID: command.GroupLook, ValidArgsFunction: a.CompleteJob(command.Live),
		Long: "Shows a job's progress until it is over, and then its receipt, as scrimp run does. Progress goes to " +
			"stderr, the receipt to stdout. Ctrl-C detaches; the job goes on.\n\nExit status: 0 succeeded or " +
			"detached, 1 error, 3 the job failed or was stopped.",
		RunE: a.With(func(ctx context.Context, c *command.Client, args []string) error {
			_, err := c.Job(ctx, args[0])
			if err == nil {
				return follow.Job(ctx, a.App, c, args[0])
			}
			return groups.Or(ctx, c, args[0], err, func(api.Group) error { return groups.Follow(ctx, a.App, c, args[0]) })
		})}
}

func (a *app) endCmd(use, short, long string, save bool) *cobra.Command {
	return &cobra.Command{Use: use + " JOB ...", Short: short, Long: long + command.SeveralJobs + command.PlainExit,
		Args: command.Takes("JOB", "[JOB ...]"), GroupID: command.GroupRun, ValidArgsFunction: a.CompleteJobs(command.Live),
		Example: "  scrimp " + use + " train-lm\n  scrimp " + use + " train-lm train-lm-2 sweep-7",
		RunE: a.With(func(ctx context.Context, c *command.Client, args []string) error {
			return a.Each(ctx, args, func(job string) error { return a.end(ctx, c, job, save) })
		})}
}

// end ends a job or a group.
func (a *app) end(ctx context.Context, c *command.Client, name string, save bool) error {
	return groups.Changing(ctx, c, name, func() error { return a.endJob(ctx, c, name, save) },
		func() error { return groups.End(ctx, a.App, c, name, save) })
}

func (a *app) endJob(ctx context.Context, c *command.Client, job string, save bool) error {
	var j api.Job
	if err := c.Do(ctx, http.MethodPost, command.OfJob(job, "/end"), api.End{Save: save}, &j); err != nil {
		return err
	}
	if a.JSON {
		return a.Print(j)
	}
	file, err := c.Spec(ctx, j.ID)
	a.Printf("%s", artifacts.Ending(j, save, err == nil && file.Checkpoint.Dir != "", a.Place()))
	return nil
}

func (a *app) cancelCmd() *cobra.Command {
	return a.endCmd("cancel", "End jobs at once, without a checkpoint",
		"Ends a job at once: the work since its last checkpoint is lost and its machine is given back. scrimp stop saves "+
			"first.", false)
}

func (a *app) stopCmd() *cobra.Command {
	return a.endCmd("stop", "Save a checkpoint of each job, then end it",
		"Asks the program to save, uploads and verifies the checkpoint, keeps the outputs, gives the machine back and "+
			"ends the job. Between the signal and the kill is the grace of the job file (default 20s, in real time).", true)
}

func (a *app) receiptCmd() *cobra.Command {
	var file string
	var force bool
	cmd := &cobra.Command{Use: "receipt JOB", Short: "Show what a job cost, why, and what it would cost on-demand",
		Args: command.Takes("JOB"), GroupID: command.GroupMoney, ValidArgsFunction: a.CompleteJob(command.Every),
		Long: "Shows what a job has cost so far or in all, in its currency: useful, start-up, lost and idle time, each " +
			"attempt and interruption, and what the same work costs on-demand. Amounts in --json are decimal " +
			"strings.\n\n--html FILE writes the receipt as a page. The folder must exist. The page replaces an earlier " +
			"receipt, and any other file only with --force." + command.PlainExit,
		RunE: a.With(func(ctx context.Context, c *command.Client, args []string) error {
			if file != "" {
				if err := page.MayWrite(file, receipt.PageBegin, "receipt", force); err != nil {
					return err
				}
			}
			r, err := c.Receipt(ctx, args[0])
			if err != nil && file == "" {
				return groups.Or(ctx, c, args[0], err, func(api.Group) error { return groups.Receipt(ctx, a.App, c, args[0]) })
			}
			if err != nil {
				return err
			}
			if file != "" {
				b, err := r.HTML()
				if err != nil {
					return err
				}
				if err := page.Write(file, receipt.PageBegin, "receipt", force, b); err != nil {
					return err
				}
				a.Notef("The receipt is in %s\n", file)
			}
			switch {
			case a.JSON:
				return a.Print(r)
			case file == "":
				a.Printf("%s", r.Text(a.Place().Width))
			}
			return nil
		})}
	cmd.Flags().StringVar(&file, "html", "", "write it as one page to this `file` (default: print it as text)")
	cmd.Flags().BoolVar(&force, "force", false, "let --html replace a file that is not a receipt (default: refuse)")
	_ = cmd.RegisterFlagCompletionFunc("html", command.Files("html"))
	return cmd
}

func (a *app) explainCmd() *cobra.Command {
	return &cobra.Command{Use: "explain JOB", Short: "Say why each decision was taken, and each option rejected",
		Args: command.Takes("JOB"), GroupID: command.GroupMoney, ValidArgsFunction: a.CompleteJob(command.Every),
		Long: "Lists each decision of a job: what was taken at which price an hour, why, and why each other offer was " +
			"not; and why each attempt after the first began. Of a waiting job, why it waits and when it is expected " +
			"to start. Times are in UTC." + command.PlainExit,
		RunE: a.With(func(ctx context.Context, c *command.Client, args []string) error {
			a.Waiting(ctx, c)
			var list []api.Decision
			if err := c.Do(ctx, http.MethodGet, command.OfJob(args[0], "/explain"), nil, &list); err != nil {
				return groups.OfMember(ctx, c, args[0], "explain", err)
			}
			if !a.JSON {
				j, err := c.Job(ctx, args[0])
				if err != nil {
					return err
				}
				a.Printf("%s%s", planning.Clock(j.Speed), planning.Explain(list, j.Currency, a.Place()))
				a.Printf("%s", show.Waits(j, len(list) == 0, a.Place()))
				a.Printf("%s%s", show.Preemptions(j, a.Place()), show.Notices(j, a.Place()))
				if j.Attempts < 2 {
					return nil
				}
				r, err := c.Receipt(ctx, args[0])
				if err == nil {
					a.Printf("%s", planning.Began(r, a.Place()))
				}
				return err
			}
			if len(list) == 0 { // it prints decisions alone, so that nothing would say why there is none
				a.Notef("note: no decision yet: scrimp status --json %s says why it waits\n", args[0])
			}
			return command.PrintEach(a.App, list)
		})}
}

// useOf returns the utilization of a job's machines, for the job's page, or "" if it is unknown.
func (a *app) useOf(ctx context.Context, c *command.Client, job string) string {
	t, err := c.Telemetry(ctx, job, time.Minute, 0)
	if err != nil {
		a.Notef("note: %v\n", fmt.Errorf("what its machines do is not known: %w", err))
		return ""
	}
	return utilization.InUse(t, a.Place())
}
