package share

import (
	"context"
	"errors"
	"net/http"

	"github.com/spf13/cobra"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/show"
)

// aboutIncarnations is a help paragraph of both commands.
const aboutIncarnations = "A log that was restored from a backup or copied begins a new incarnation. Machines that " +
	"the incarnation " +
	"before it rented may still be used by the server that it was taken from, so this server neither ends nor " +
	"uses them, and launches nothing, until somebody decides. "

func (a *app) adoptCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "adopt [INSTANCE]", Short: "Go on with machines that a restored log knows of",
		Args: command.Takes("[INSTANCE]"), GroupID: command.GroupShare,
		Long: aboutIncarnations + "Adopt a machine where the other server is gone for good: its job goes on there. " +
			"Without an INSTANCE " +
			"or --all it lists the machines that wait. It takes an admin of all teams." + command.PlainExit,
		Example: "  scrimp adopt\n  scrimp adopt --all",
	}
	return a.decides(cmd, true)
}

func (a *app) releaseCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "release [INSTANCE]",
		Short: "Leave machines that a restored log knows of to another server",
		Args:  command.Takes("[INSTANCE]"), GroupID: command.GroupShare,
		Long: aboutIncarnations + "Release a machine that the other server uses: it goes on there, it costs nothing here " +
			"from then on, " +
			"and its job tries again on another machine. Without an INSTANCE or --all it lists the machines that wait. " +
			"It takes an admin of all teams." + command.PlainExit,
		Example: "  scrimp release\n  scrimp release i-0123",
	}
	return a.decides(cmd, false)
}

// decides makes a command decide about the machines that it names.
func (a *app) decides(cmd *cobra.Command, adopt bool) *cobra.Command {
	var all bool
	cmd.Flags().BoolVar(&all, "all", false, "all machines that wait (default: the one that is named)")
	cmd.RunE = a.With(func(ctx context.Context, c *command.Client, args []string) error {
		b := api.Ownership{Adopt: adopt}
		switch {
		case all && len(args) > 0:
			return errors.New("give an INSTANCE or --all, not both")
		case len(args) > 0 && args[0] == "":
			return errors.New("the INSTANCE is empty: name one, or give --all for all that wait")
		case len(args) > 0:
			b.Instance = args[0]
		case !all:
			return a.undecided(ctx, c)
		}
		return a.decide(ctx, c, b)
	})
	return cmd
}

// undecided lists the machines that wait for a decision.
func (a *app) undecided(ctx context.Context, c *command.Client) error {
	var list []api.Undecided
	if err := c.Do(ctx, http.MethodGet, "/v1/instances/undecided", nil, &list); err != nil {
		return err
	}
	if !a.JSON {
		a.Printf("%s", show.Undecided(list, a.Place()))
		return nil
	}
	return a.each(list)
}

func (a *app) decide(ctx context.Context, c *command.Client, b api.Ownership) error {
	var list []api.Undecided
	if err := c.Do(ctx, http.MethodPost, "/v1/instances/decide", b, &list); err != nil {
		return err
	}
	if a.JSON {
		return a.each(list)
	}
	a.Printf("%s", show.Decided(list, b.Adopt, a.Place()))
	return nil
}

func (a *app) each(list []api.Undecided) error {
	return command.PrintEach(a, list)
}
