package share

import (
	"context"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/show/account"
)

// eraseCmd erases a user.
func (a *app) eraseCmd() *cobra.Command {
	yes := false
	cmd := &cobra.Command{Use: "erase NAME", Short: "Forget the name and the address of a user for ever",
		Args: command.Takes("NAME"),
		Long: "Forgets the name and the email address of a user for ever, and revokes all tokens and sessions of the user. " +
			"Costs, jobs and the audit trail stay, as those of erased-1, erased-2 and so on; another user may have the name " +
			"then. Without --yes it only says what would happen. Texts that people wrote stay: job files, names of jobs, " +
			"tags, notes of tokens. It takes an admin of all teams." + command.PlainExit,
		Example: "  scrimp users erase bob\n  scrimp users erase bob --yes",
		RunE: a.With(func(ctx context.Context, c *command.Client, args []string) error {
			var v api.Erasure
			path := "/v1/users/" + url.PathEscape(args[0]) + "/erase"
			if err := c.Do(ctx, http.MethodPost, path, api.EraseUser{DryRun: !yes}, &v); err != nil {
				return err
			}
			if a.JSON {
				return a.Print(v)
			}
			a.Printf("%s", account.Erasure(args[0], v, a.Place()))
			return nil
		})}
	cmd.Flags().BoolVar(&yes, "yes", false, "do it (default: only say what would happen)")
	return cmd
}
