package bill

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/show/spending"
	"scrimp/internal/lib/money"
	"scrimp/internal/work/recommend"
)

// recommendFields names the flags of the fields that the server may refuse.
var recommendFields = map[string]string{"target": "--target", "team": "--team", "name": "--take",
	"currency": "--currency"}

func (a *app) recommendCmd() *cobra.Command {
	var team, target, take, currency string
	cmd := &cobra.Command{Use: "recommend", Short: "Rank what would lower spending, up to a target",
		Args: command.Takes(), GroupID: command.GroupMoney,
		Long: "Ranks what a team can do to spend less, and says how far that leads towards the target. scrimp " +
			"computes each saving from the costs of the last 30 days: idle stop (machines that waited), smaller " +
			"machine (from scrimp waste), spot share (at the team's own cost of useful work on spot), checkpoint " +
			"interval (measured saves and interruptions), window (the cheapest 8 hours of the day), retention " +
			"(volumes without a machine), smaller reservation and commitment.\n\n" +
			"SAVES counts what the recommendations above it leave, so that no dollar counts twice. ALONE is the " +
			"saving if you follow only that one. \"-\" means unknown. The list is sorted by saving, then " +
			"confidence, then effort. Savings are for the last 30 days.\n\n" +
			"--take NAME records that the team follows a recommendation from now on, with its expected saving; that takes " +
			"an operator of the team, or without --team an admin of all teams. Below the list stands what each has saved in " +
			"the 30 days since: the earlier cost of a unit (such as an hour of useful machine time) times the units since, " +
			"less the cost since." + command.PlainExit,
		Example: "  scrimp recommend --target 25%\n  scrimp recommend --target 25% --team vision --json\n" +
			"  scrimp recommend --team vision --take \"spot share\"",
		RunE: a.With(func(ctx context.Context, c *command.Client, _ []string) error {
			if take != "" || currency != "" {
				return a.take(ctx, c, api.TakeRecommendation{Name: take, Team: team, Currency: money.Currency(currency)})
			}
			var list []recommend.Plan
			q := url.Values{"team": {team}, "target": {target}}
			if err := c.Do(ctx, http.MethodGet, api.Path("/v1/recommend", q), nil, &list); err != nil {
				return c.Said(ctx, command.InFlags(err, recommendFields))
			}
			taken, err := c.TakenRecommendations(ctx, team)
			if err != nil {
				return c.Said(ctx, err)
			}
			if !a.JSON {
				a.Printf("%s%s", spending.Recommend(list, a.Place()), spending.Taken(taken, a.Place()))
				return nil
			}
			return a.plans(list, taken)
		})}
	cmd.Flags().StringVar(&team, "team", "", "costs of this `team` alone (default: of all that you may see)")
	cmd.Flags().StringVar(&target, "target", "25%", "`share` of the spending to save, 1% to 99%")
	cmd.Flags().StringVar(&take, "take", "", "take the recommendation of this `name` (default: only list them)")
	cmd.Flags().StringVar(&currency, "currency", "", "`currency` of the recommendation to take (default: the only one of "+
		"the costs)")
	return cmd
}

// take records that a team follows a recommendation.
func (a *app) take(ctx context.Context, c *command.Client, t api.TakeRecommendation) error {
	if t.Name == "" {
		return errors.New("--currency is of the recommendation that --take names: name one, or leave --currency out")
	}
	v, err := c.TakeRecommendation(ctx, t)
	if err != nil {
		return c.Said(ctx, command.InFlags(err, recommendFields))
	}
	return a.Show(v, spending.Took(v, a.Place()))
}

// plans prints each plan with the recommendations of its currency that were taken.
func (a *app) plans(list []recommend.Plan, taken []api.TakenRecommendation) error {
	for _, p := range list {
		v := struct {
			recommend.Plan
			Taken []api.TakenRecommendation `json:"taken"`
		}{p, []api.TakenRecommendation{}}
		for _, t := range taken {
			if t.Currency == p.Currency {
				v.Taken = append(v.Taken, t)
			}
		}
		if err := a.Print(v); err != nil {
			return err
		}
	}
	return nil
}
