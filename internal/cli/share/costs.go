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
		Long: "Shows costs up to this second, running machines included: useful work, lost work, start-up, " +
			"idle, and time that is still open. The sums are those of the ledger. Of jobs that succeeded it shows the first " +
			"estimate beside the actual cost, and the saving against on-demand, where these are known. " +
			"With --since it shows what was booked since, a checkpoint or an end of a machine at the latest: what was " +
			"booked before and became useful since stands as useful, and below zero under open.\n\n" +
			"Below the table it says how much is billed by the providers, how much is accrued (booked and not billed yet), " +
			"and what running machines are estimated to have cost since their last booking.\n\n" +
			"A sentence names fixed costs (scrimp costs " +
			"add) of this month, which the table leaves out, if you see all teams.\n\nWith --json one line of " +
			"the table is one object." + command.PlainExit,
		Example: "  scrimp costs\n  scrimp costs --by project --since 30d\n  scrimp costs --by tag:ticket --json",
		RunE: a.With(func(ctx context.Context, c *command.Client, _ []string) error {
			var v api.Costs
			if err := c.Do(ctx, http.MethodGet, "/v1/costs?by="+url.QueryEscape(by)+"&since="+url.QueryEscape(since), nil,
				&v); err != nil {
				return err
			}
			if a.JSON {
				return lined(a, v.Lines, nil)
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
	cmd.AddCommand(a.addCmd())
	return cmd
}
