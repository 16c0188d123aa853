// Package queue holds the commands that set and list the shares of teams in the queue.
package queue

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/show/spending"
	"scrimp/internal/decide/fair"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/money"
)

// app gives the commands of this package their shared environment.
type app struct{ *command.App }

// Commands returns the commands below scrimp queue.
func Commands(shared *command.App) []*cobra.Command {
	a := &app{shared}
	return []*cobra.Command{a.queueSetCmd(), a.queueSharesCmd()}
}

// shareFlags holds the setting of a team as the user wrote it.
type shareFlags struct {
	team, weight, guarantee, borrow, halfLife string
	off                                       bool
}

func (x *shareFlags) add(f *pflag.FlagSet) {
	f.StringVar(&x.team, "team", "", "`name` of the team (default: none, for --half-life alone)")
	f.StringVar(&x.weight, "weight", "", "`number` from 0.001 to 1000: a team of weight 2 gets twice the dollars of a "+
		"team of weight 1 (default: as it is; 1 for a new team)")
	f.StringVar(&x.guarantee, "guarantee", "", "`dollars` an hour that the team may have running before others get "+
		"beyond their share; 0 or none for none (default: as it is)")
	f.StringVar(&x.borrow, "borrow", "", "`dollars` an hour beyond its share at which no job of the team starts, or "+
		"none for no limit (default: as it is)")
	f.StringVar(&x.halfLife, "half-life", "", "`span` in which what teams spent counts half, 1h to 365d (default: as "+
		"it is; 7d at first)")
	f.BoolVar(&x.off, "off", false, "remove the setting of the team (default: change it)")
}

func (a *app) queueSetCmd() *cobra.Command {
	var x shareFlags
	var cmd *cobra.Command
	cmd = &cobra.Command{Use: "set", Short: "Set the share of a team in the queue", Args: command.Takes(),
		Long: "Sets how much of the dollars a team gets while jobs of several teams of one priority wait. The first " +
			"setting turns the shares on, for all teams: a team without a setting has the weight 1. Before that, and once " +
			"the last setting is removed, the queue does not regard teams. It needs the role admin of all teams." +
			command.PlainExit,
		Example: "  scrimp queue set --team vision --weight 2\n" +
			"  scrimp queue set --team vision --guarantee 5 --borrow 10\n  scrimp queue set --half-life 3d\n" +
			"  scrimp queue set --team vision --off",
		RunE: a.With(func(ctx context.Context, c *command.Client, _ []string) error {
			b, done, err := x.change(cmd.Flags().Changed)
			if err != nil {
				return err
			}
			if err := c.Do(ctx, http.MethodPut, "/v1/queue/shares", b, nil); err != nil {
				return command.InFlags(err, shareFields)
			}
			done += withoutTeams(ctx, c, b)
			return a.Showf(map[string]string{"done": done}, "%s\n", done)
		})}
	x.add(cmd.Flags())
	return cmd
}

// shareFields are the flags of the fields that the server's errors name.
var shareFields = map[string]string{"team": "--team", "weight": "--weight", "guarantee": "--guarantee",
	"borrow": "--borrow", "half_life_ns": "--half-life", "off": "--off"}

// withoutTeams returns a sentence for a server that has no team: there, jobs of any team name count, so a misspelt name
// goes unnoticed.
func withoutTeams(ctx context.Context, c *command.Client, b api.SetQueueShare) string {
	var list []api.Team
	if b.Team == "" || b.Off || c.Do(ctx, http.MethodGet, "/v1/teams", nil, &list) != nil || len(list) > 0 {
		return ""
	}
	return " This server has no teams yet: the share is for jobs whose file says team: " + b.Team +
		". scrimp teams set " + b.Team + " makes the team."
}

// change returns the change that the given flags describe, and the sentence that says that it is done.
func (x *shareFlags) change(given func(flag string) bool) (b api.SetQueueShare, done string, err error) {
	if err := x.empty(given); err != nil {
		return b, "", err
	}
	if b, err = x.parse(); err != nil {
		return b, "", err
	}
	if err := x.together(); err != nil {
		return b, "", err
	}
	switch {
	case x.off:
		done = "The setting of team " + x.team + " is removed."
	case x.team == "":
		done = "What teams spent counts half after " + x.halfLife + "."
	default:
		done = "The share of team " + x.team + " is set. scrimp queue shares lists all."
	}
	return b, done, nil
}

// together returns an error for flags that set nothing, or do not go together.
func (x *shareFlags) together() error {
	some := x.weight != "" || x.guarantee != "" || x.borrow != ""
	switch {
	case x.team == "" && (some || x.off):
		return errors.New("--team is missing: name the team, as scrimp teams lists them")
	case x.team == "" && x.halfLife == "":
		return errors.New("nothing is set: write --team and --weight, or --half-life")
	case x.off && (some || x.halfLife != ""):
		return errors.New("--off removes the whole setting: leave the other flags out")
	case x.off, x.team == "", some:
		return nil
	case x.halfLife != "":
		return errors.New("--half-life is for all teams: leave --team out, or add its --weight")
	}
	return fmt.Errorf("nothing is set for team %s: write --weight 1 for the share of a team without a setting, "+
		"or --guarantee or --borrow", x.team)
}

// empty returns an error for a flag with an empty value, such as the --weight "$WEIGHT" of a script whose variable is
// not set.
func (x *shareFlags) empty(given func(flag string) bool) error {
	for _, f := range []struct{ flag, text, write string }{
		{"team", x.team, "the name of a team, as scrimp teams lists them"},
		{"weight", x.weight, fmt.Sprintf("a number from %g to %g", fair.LeastWeight, fair.MostWeight)},
		{"guarantee", x.guarantee, "dollars an hour, as in 5 or 12.50, or none"},
		{"borrow", x.borrow, "dollars an hour, as in 5 or 12.50, or none for no limit"},
		{"half-life", x.halfLife, "a span, as in 36h or 7d"},
	} {
		if given(f.flag) && strings.TrimSpace(f.text) == "" {
			return fmt.Errorf("--%s is empty: write %s", f.flag, f.write)
		}
	}
	return nil
}

func (x *shareFlags) parse() (b api.SetQueueShare, err error) {
	b.Team, b.Off = x.team, x.off
	if x.weight != "" {
		weight, err := strconv.ParseFloat(x.weight, 64)
		if err != nil || !(weight >= fair.LeastWeight && weight <= fair.MostWeight) {
			return b, fmt.Errorf("--weight %s is not a weight: write a number from %g to %g", x.weight, fair.LeastWeight,
				fair.MostWeight)
		}
		b.Weight = &weight
	}
	if x.guarantee == "none" {
		b.Guarantee = new(money.Rate)
	} else if b.Guarantee, err = rateFlag("guarantee", x.guarantee); err != nil {
		return b, err
	}
	if b.NoBorrow = x.borrow == "none"; !b.NoBorrow {
		if b.Borrow, err = rateFlag("borrow", x.borrow); err != nil {
			return b, err
		}
	}
	if x.halfLife != "" {
		d, err := spec.ParseDuration(x.halfLife)
		if err == nil && (d < fair.LeastHalfLife || d > fair.MostHalfLife) {
			err = errors.New("it is out of bounds")
		}
		if err != nil {
			return b, fmt.Errorf("--half-life %s: %w: write 1h to 365d, as in 36h or 7d", x.halfLife, err)
		}
		b.HalfLife = &d
	}
	return b, nil
}

// rateFlag parses dollars an hour, with or without the sign of dollars; nil: the flag is not given.
func rateFlag(flag, text string) (*money.Rate, error) {
	switch text {
	case "":
		return nil, nil
	case "none":
		return new(money.Rate(0)), nil
	}
	rate, err := spec.ParsePrice(text)
	if err == nil && (rate < 0 || rate.Float() > 1e6) {
		err = errors.New("it is not from 0 to 1000000")
	}
	if err != nil {
		return nil, fmt.Errorf("--%s %s: %w: write dollars an hour, as in 5 or 12.50, or none", flag, text, err)
	}
	return &rate, nil
}

func (a *app) queueSharesCmd() *cobra.Command {
	return &cobra.Command{Use: "shares", Short: "List the share of each team in the queue", Args: command.Takes(),
		Long: "Lists the teams that you see. WANTED is a team's part of the weights; HAD is its part of what all teams " +
			"have spent lately, with decay, and of what their running jobs are expected to cost; BURNS is dollars an hour " +
			"of what runs now. The team with the smallest HAD for its weight starts the next job." + command.PlainExit,
		Example: "  scrimp queue shares\n  scrimp queue shares --json",
		RunE: a.With(func(ctx context.Context, c *command.Client, _ []string) error {
			var v api.QueueShares
			if err := c.Do(ctx, http.MethodGet, "/v1/queue/shares", nil, &v); err != nil {
				return err
			}
			if a.JSON {
				return a.Print(v)
			}
			a.Printf("%s", spending.Shares(v, a.Place()))
			return nil
		})}
}
