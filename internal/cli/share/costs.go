package share

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/show/spending"
)

func (a *app) costsCmd() *cobra.Command {
	var by, since string
	cmd := &cobra.Command{Use: "costs", Short: "Show costs by team, project, user, job, tag or what was bought",
		Args:    command.Takes(),
		GroupID: command.GroupMoney,
		Long: "Shows what was spent up to this second, running machines included, by use: useful work, lost work, " +
			"start-up, idle, and open, which is time whose use is not known yet. The amounts are those of the ledger. " +
			"For jobs that succeeded it also shows the first estimate beside the actual cost, and the saving against " +
			"on-demand, where these are known.\n\n" +
			"--since sums what the ledger booked in that time. It books at each checkpoint and at the end of a machine. Time " +
			"that was booked as open earlier and has proved useful since moves from open to useful, so that open can be " +
			"below zero.\n\n" +
			"The text below the table divides the total: billed by the providers, booked and not billed yet (accrued), and " +
			"estimated since the last booking of each running machine. If you see all teams, it also names the fixed costs " +
			"of this month (scrimp costs add), which the table leaves out.\n\n" +
			"--json prints an object for each line of the table." + command.PlainExit,
		Example: "  scrimp costs\n  scrimp costs --by project --since 30d\n  scrimp costs --by tag:ticket --json",
		RunE: a.With(func(ctx context.Context, c *command.Client, _ []string) error {
			var v api.Costs
			q := url.Values{"by": {by}, "since": {since}}
			if err := c.Do(ctx, http.MethodGet, api.Path("/v1/costs", q), nil, &v); err != nil {
				return err
			}
			if a.JSON {
				return command.PrintEach(a, v.Lines)
			}
			fees, err := c.Fees(ctx)
			if p, is := errors.AsType[*api.Problem](err); is && p.Status == http.StatusForbidden {
				err = nil // those who see one team do not see shared costs
			}
			if err != nil {
				return c.Said(ctx, err)
			}
			a.Printf("%s%s", spending.Costs(v, a.Place()), spending.Fixed(fees, a.Now(), a.Place()))
			return nil
		})}
	cmd.Flags().StringVar(&by, "by", "team", "one line each `what`: team, project, user, kind, environment, "+
		"model_version, provider, region, sku, category, job or tag:KEY")
	cmd.Flags().StringVar(&since, "since", "", "`span` until now, as in 7d (default: from the beginning)")
	cmd.AddCommand(a.addCmd(), a.monthlyCmd())
	return cmd
}
