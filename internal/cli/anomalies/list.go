package anomalies

import (
	"context"

	"github.com/spf13/cobra"

	"scrimp/internal/cli/command"
	"scrimp/internal/cli/show/spending"
)

func (a *app) listCmd() *cobra.Command {
	var team, since string
	var all bool
	cmd := &cobra.Command{Use: "anomalies", Short: "List what went wrong with spending", Args: command.Takes(),
		GroupID: command.GroupMoney,
		Long: "Lists incidents: machines without a task, storms of retries, groups that begin too many jobs, prices " +
			"that jump, fall-backs to on-demand, storms of transfer, volumes whose machine is gone, recurring jobs on another " +
			"machine, that run longer, or cost more from run to run, missing prices, and spending that no other rule " +
			"explains. Each has since when, what it has cost beyond the usual (an estimate), and which job, machine or price " +
			"it is about. scrimp compares a team with its own last two weeks, and says little about the first five days.\n\n" +
			"It reports rises only: spending or prices that fall are no incident. It leaves out jobs that somebody " +
			"approved, jobs with the tag planned, and what scrimp anomalies planned covers.\n\n" +
			"Each incident has a name, for scrimp anomalies snooze, dismiss and confirm, and the threshold that it met. " +
			"Dismissed and confirmed incidents move the threshold of their kind in their team; scrimp lists the thresholds " +
			"that differ from the standard, with the reason." + command.PlainExit,
		Example: "  scrimp anomalies\n  scrimp anomalies --team vision --since 30d --json",
		RunE: a.With(func(ctx context.Context, c *command.Client, _ []string) error {
			read := c.Anomalies
			if all {
				read = c.AllAnomalies
			}
			v, err := read(ctx, team, since)
			if err != nil {
				return c.Said(ctx, err)
			}
			return command.ShowEach(a.App, v.Anomalies, spending.Anomalies(v, a.Place()))
		})}
	cmd.Flags().StringVar(&team, "team", "", "incidents of this `team` (default: of all that you may see)")
	cmd.Flags().StringVar(&since, "since", "7d", "`span` until now, as in 24h or 30d")
	cmd.Flags().BoolVar(&all, "all", false, "list planned, dismissed and snoozed incidents too (default: only count "+
		"them)")
	return cmd
}
