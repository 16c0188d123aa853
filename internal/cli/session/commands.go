package session

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/spf13/cobra"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/show"
	"scrimp/internal/cli/terminal"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
)

const about = "\n\nA session is a job of its own: budgets, approvals, quotas and spot hold for it as for every job, " +
	"and the ledger has it under its owner. Its work folder is its checkpoint: scrimp saves it while the session runs, " +
	"and when it ends for whatever reason. The session ends after --idle without use: nobody types, no program " +
	"of it uses a processor or a GPU, no kernel is busy, and no forwarded port has a connection. Where the " +
	"machine is interrupted it goes on elsewhere with its files, and this command connects to it again; what " +
	"ran in it has to be started again."

func (a *app) shellCmd() *cobra.Command {
	var f flags
	cmd := &cobra.Command{Use: "shell [JOB]", Short: "Begin or enter a session: a shell on a machine, within a budget",
		Args: command.Takes("[JOB]"), GroupID: command.GroupRun, ValidArgsFunction: a.CompleteJob(liveSession),
		Long: "Begins a session with a shell in a copy of this folder on the cheapest machine that fits, and enters it; or " +
			"enters the session that is named. Ctrl-] leaves it running, and several terminals may be in it at once; " +
			"exit saves its files and ends it. --resume goes on with a session that has ended, with the same " +
			"files." + about + "\n\nExit status: 0 ended or left running, 1 error, 3 the session failed.",
		Example: "  scrimp shell --budget '$2' --idle 20m\n  scrimp shell --gpu T4 --budget '$2'\n" +
			"  scrimp shell shell-2\n  scrimp shell --resume shell-2",
		RunE: func(cmd *cobra.Command, args []string) error {
			screen, err := terminal.Of(a.In)
			switch {
			case a.JSON && !f.detach:
				return errors.New("a terminal has no --json: leave it out, or begin the session with --detach")
			case err != nil && !f.detach:
				return fmt.Errorf("%w: scrimp shell needs one, or --detach", err)
			}
			c, j, err := a.begin(cmd.Context(), &f, shell, args)
			if err != nil {
				return err
			}
			if f.detach {
				return a.begun(j)
			}
			return a.enter(cmd.Context(), c, j.ID, screen)
		}}
	a.addFlags(&f, cmd)
	return cmd
}

// begun prints a session that the command does not enter.
func (a *app) begun(j api.Job) error {
	if a.JSON {
		if err := a.Print(j); err != nil || j.Finished == nil {
			return err
		}
		return command.JobFailed
	}
	if j.Finished != nil {
		a.Notef("%s", draw.Wrap("", fmt.Sprintf("%s is %s: %s", j.ID, j.State, reason(j)), a.Place().Columns()))
		return command.JobFailed
	}
	state := j.State
	if state == "running" && !works(j) {
		state = "starting: its machine is not ready yet"
	}
	a.Printf("%s is %s. scrimp %s %s enters it, scrimp sessions lists it.\n", j.ID, state, j.Session, j.ID)
	return nil
}

func liveSession(j api.Job) bool { return isSession(j) && !j.Closed }

func (a *app) sessionsCmd() *cobra.Command {
	var every bool
	cmd := &cobra.Command{Use: "sessions", Short: "List sessions with their cost, and when they end",
		Args: command.Takes(), GroupID: command.GroupLook,
		Long: "Lists the sessions that wait or run, the oldest first. SPENT is what the ledger holds, IDLE how long nobody " +
			"has used it, and ENDS when it is saved and ended if nobody uses it any more, and whether that is because it is " +
			"idle or because its budget is spent." + command.PlainExit,
		Example: "  scrimp sessions\n  scrimp sessions --all --json",
		RunE: a.With(func(ctx context.Context, c *command.Client, _ []string) error {
			return a.list(ctx, c, every)
		})}
	cmd.Flags().BoolVar(&every, "all", false, "list those that are over too (default: those that wait or run)")
	return cmd
}

// listed is a session with the time of its end.
type listed struct {
	api.Job
	EndsAt  *time.Time `json:"ends_at"`  // if nobody uses it any more; null: unknown or over
	EndsFor string     `json:"ends_for"` // what ends it then: idle or budget; empty: unknown or over
}

// pageSize is how many sessions a request asks for.
const pageSize = 1000

func (a *app) list(ctx context.Context, c *command.Client, every bool) error {
	var all []listed
	for at, more := "", true; more; more = at != "" {
		q := url.Values{"session": {"1"}, "limit": {fmt.Sprint(pageSize)}, "after": {at}}
		if !every {
			q.Set("live", "1")
		}
		page, next, err := c.JobsPage(ctx, q)
		if err != nil {
			return err
		}
		for _, j := range page {
			l := listed{Job: j}
			if end, what, ok := endsAt(j, a.Now()); ok {
				l.EndsAt, l.EndsFor = &end, what
			}
			all = append(all, l)
		}
		at = next
	}
	return command.ShowEach(a.App, all, table(all, a.Place(), a.Now()))
}

// table formats the list of sessions.
func table(all []listed, p show.Place, now time.Time) string {
	if len(all) == 0 {
		return draw.Wrap("", "No sessions. scrimp shell begins one.", p.Columns())
	}
	var rows [][]string
	several := slices.ContainsFunc(all, func(l listed) bool { return l.User != all[0].User })
	for _, l := range all {
		rate, budget, idle, ends := "-", "-", "-", "-"
		if l.Rate != nil {
			rate = show.PerHour(*l.Rate, l.Currency)
		}
		if l.Budget != nil {
			budget = money.Short(*l.Budget, l.Currency)
		}
		if l.IdleSince != nil {
			idle = draw.Span(now.Sub(*l.IdleSince).Round(time.Second))
		}
		if l.EndsAt != nil {
			ends = p.Until(*l.EndsAt) + ", " + l.EndsFor
		}
		row := []string{l.ID, l.Session, l.State, money.Short(l.Spent, l.Currency), budget, rate, idle, ends}
		if several {
			row = slices.Insert(row, 1, show.Clean(show.OrDash(l.User)))
		}
		rows = append(rows, row)
	}
	columns := []draw.Column{{Name: "ID", Key: true}, {Name: "KIND", Leaves: 1}, {Name: "STATE"},
		{Name: "SPENT", Right: true}, {Name: "BUDGET", Right: true, Leaves: 2}, {Name: "RATE", Right: true},
		{Name: "IDLE", Right: true}, {Name: "ENDS"}}
	if several {
		columns = slices.Insert(columns, 1, draw.Column{Name: "BY", Least: 6})
	}
	return draw.Grid(columns, rows, p.Columns())
}
