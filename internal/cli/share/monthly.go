package share

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"scrimp/internal/cli/command"
	"scrimp/internal/cli/show/spending"
)

func (a *app) monthlyCmd() *cobra.Command {
	var months int
	var team, project string
	cmd := &cobra.Command{Use: "monthly", Short: "Show what a month of each kind of workload costs",
		Args: command.Takes(),
		Long: "Shows, from the history of the ledger, what training, searches, stages of pipelines, sessions, " +
			"inference and data jobs cost: the mean of the whole months, the cost of a GPU-hour beside that of the same " +
			"machines on-demand, and, of the runs that began and ended in these months, the median, the cost that 90 % " +
			"of them do not exceed, and the cost by successful run, failed runs included. A trial of a search and a " +
			"stage of a pipeline is one run.\n\n" +
			"The second table has each month; * marks those that are not whole, this month and the one in which " +
			"the ledger begins.\n\n" +
			"--json prints an object for each workload and currency, with null for what is unknown." + command.PlainExit,
		Example: "  scrimp costs monthly\n  scrimp costs monthly --months 3 --team vision --json",
		PreRunE: func(*cobra.Command, []string) error {
			if months < 1 || months > 120 {
				return fmt.Errorf("--months %d: write 1 to 120", months)
			}
			return nil
		},
		RunE: a.With(func(ctx context.Context, c *command.Client, _ []string) error {
			v, err := c.MonthlyCosts(ctx, months, team, project)
			if err != nil {
				return c.Said(ctx, err)
			}
			if a.JSON {
				return command.PrintEach(a.App, v.Workloads)
			}
			a.Printf("%s", spending.Monthly(v, a.Place()))
			return nil
		})}
	cmd.Flags().IntVar(&months, "months", 12, "this month and those before it, as `many` in all")
	cmd.Flags().StringVar(&team, "team", "", "only the costs of this `team` (default: all that you may see)")
	cmd.Flags().StringVar(&project, "project", "", "only the costs of this `project` (default: all)")
	return cmd
}
