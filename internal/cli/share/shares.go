package share

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

// Queue returns the commands below scrimp queue that set and list the shares of teams.
func Queue(shared *command.App) []*cobra.Command {
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
	cmd := &cobra.Command{Use: "set", Short: "Set the share of a team in the queue", Args: command.Takes(),
		Long: "Sets how much of the dollars a team gets while jobs of several teams of one priority wait. The first " +
			"setting turns the shares on, for all teams: a team without a setting has the weight 1. Before that, and once " +
			"the last setting is removed, the queue does not regard teams. It needs the role admin of all teams." +
			command.PlainExit,
		Example: "  scrimp queue set --team vision --weight 2\n" +
			"  scrimp queue set --team vision --guarantee 5 --borrow 10\n  scrimp queue set --half-life 3d\n" +
			"  scrimp queue set --team vision --off",
		RunE: a.With(func(ctx context.Context, c *command.Client, _ []string) error {
			b, done, err := x.change()
			if err != nil {
				return err
			}
			if err := c.Do(ctx, http.MethodPut, "/v1/queue/shares", b, nil); err != nil {
				return command.InFlags(err, "half_life_ns", "half-life", "team", "team", "weight", "weight", "guarantee",
					"guarantee", "borrow", "borrow", "off", "off")
			}
			if a.JSON {
				return a.Print(map[string]string{"done": done})
			}
			a.Printf("%s\n", done)
			return nil
		})}
	x.add(cmd.Flags())
	return command.NoEmptyFlags(cmd)
}

// change returns the change that the flags describe, and the sentence that says that it is done.
func (x *shareFlags) change() (b api.SetQueueShare, done string, err error) {
	if b, err = x.parse(); err != nil {
		return b, "", err
	}
	some := x.weight != "" || x.guarantee != "" || x.borrow != ""
	switch {
	case x.team == "" && (some || x.off):
		return b, "", errors.New("--team is missing: name the team, as scrimp teams lists them")
	case x.team == "" && x.halfLife == "":
		return b, "", errors.New("nothing is set: write --team and --weight, or --half-life")
	case x.off && (some || x.halfLife != ""):
		return b, "", errors.New("--off removes the whole setting: leave the other flags out")
	case x.off:
		return b, "The setting of team " + x.team + " is removed.", nil
	case x.team != "" && !some && x.halfLife == "":
		return b, "", errors.New("nothing is set for team " + x.team + ": write --weight, --guarantee or --borrow, or --off")
	case x.team == "":
		return b, "What teams spent counts half after " + x.halfLife + ".", nil
	}
	return b, "The share of team " + x.team + " is set. scrimp queue shares lists all.", nil
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
	if b.Guarantee, err = rateFlag("guarantee", x.guarantee); err != nil {
		return b, err
	}
	if b.NoBorrow = x.borrow == "none"; !b.NoBorrow {
		if b.Borrow, err = rateFlag("borrow", x.borrow); err != nil {
			return b, err
		}
	}
	if x.halfLife != "" {
		d, err := spec.ParseDuration(strings.TrimPrefix(x.halfLife, "-"))
		if err != nil {
			return b, fmt.Errorf("--half-life %s: %w: write it as in 36h or 7d", x.halfLife, err)
		}
		if x.halfLife[0] == '-' || d < fair.LeastHalfLife || d > fair.MostHalfLife {
			return b, fmt.Errorf("--half-life %s is out of bounds: write 1h to 365d", x.halfLife)
		}
		b.HalfLife = &d
	}
	return b, nil
}

// rateFlag parses dollars an hour; nil: the flag is not given.
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
		return nil, fmt.Errorf("--%s %s: %w: write dollars an hour, as in 5 or 12.50", flag, text, err)
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
