package bill

import (
	"context"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"scrimp/internal/cli/command"
	"scrimp/internal/cli/show/spending"
	"scrimp/internal/work/recommend"
)

func (a *app) recommendCmd() *cobra.Command {
	var team, target string
	cmd := &cobra.Command{Use: "recommend", Short: "Rank what would lower spending, up to a target",
		Args: command.Takes(), GroupID: command.GroupMoney,
		Long: "Ranks what a team can do to spend less, and says how far that leads towards the target. scrimp " +
			"computes each saving from the costs of the last 30 days: idle stop (machines that waited), smaller " +
			"machine (from scrimp waste), spot share (at the team's own cost of useful work on spot), checkpoint " +
			"interval (measured saves and interruptions), window (the cheapest 8 hours of the day), retention " +
			"(volumes without a machine), smaller reservation and commitment.\n\n" +
			"SAVES counts what the recommendations above it leave, so that no dollar counts twice. ALONE is the " +
			"saving if you follow only that one. \"-\" means unknown. The list is sorted by saving, then " +
			"confidence, then effort. Savings are for the last 30 days." + command.PlainExit,
		Example: "  scrimp recommend --target 25%\n  scrimp recommend --target 25% --team vision --json",
		RunE: a.With(func(ctx context.Context, c *command.Client, _ []string) error {
			var list []recommend.Plan
			q := url.Values{"team": {team}, "target": {target}}
			if err := c.Do(ctx, http.MethodGet, "/v1/recommend?"+q.Encode(), nil, &list); err != nil {
				return c.Said(ctx, err)
			}
			if !a.JSON {
				a.Printf("%s", spending.Recommend(list, a.Place()))
				return nil
			}
			for _, p := range list {
				if err := a.Print(p); err != nil {
					return err
				}
			}
			return nil
		})}
	cmd.Flags().StringVar(&team, "team", "", "costs of this `team` alone (default: of all that you may see)")
	cmd.Flags().StringVar(&target, "target", "25%", "`share` of the spending to save, 1% to 99%")
	return cmd
}
