package share

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/show/account"
)

func (a *app) loginCmd() *cobra.Command {
	var fromInput bool
	var ca, as string
	cmd := &cobra.Command{Use: "login URL", Short: "Use a shared server", Args: command.Takes("URL"),
		GroupID: command.GroupShare,
		Long: "Keeps the address of a server and your token in the data folder, in a file that you alone can read: " +
			"from then on every command works against that server. The token is asked for, or taken from the environment " +
			"variable SCRIMP_TOKEN; an admin makes it with scrimp tokens new. With --as the login gets a name, and " +
			"only commands with --server NAME use it." + command.PlainExit,
		Example: "  scrimp login https://scrimp.example.com\n  scrimp login http://127.0.0.1:7077 --token-stdin < token\n" +
			"  scrimp login https://scrimp.example.com --as prod",
		RunE: func(cmd *cobra.Command, args []string) error {
			u, err := command.ParseAddress(args[0])
			if err != nil {
				return err
			}
			if u.Scheme == "http" && !command.IsLoopback(u) {
				a.Notef("Warning: the token passes in the clear to %s. Take https where you can.\n", u.Hostname())
			}
			l := command.Login{Server: u.String(), Token: os.Getenv("SCRIMP_TOKEN")}
			if fromInput || l.Token == "" {
				if !fromInput {
					a.Notef("Token: ")
				}
				line, err := bufio.NewReader(a.In).ReadString('\n')
				if l.Token = strings.TrimSpace(line); l.Token == "" {
					return fmt.Errorf("no token was given (%w): an admin makes one with scrimp tokens new USER", err)
				}
			}
			if ca != "" {
				text, err := os.ReadFile(ca)
				if err != nil {
					return fmt.Errorf("read the certificates: %w", err)
				}
				l.CA = string(text)
			}
			return a.login(cmd.Context(), l, cmp.Or(as, a.Server))
		}}
	cmd.Flags().BoolVar(&fromInput, "token-stdin", false, "read the token from the input (default: ask for it)")
	cmd.Flags().StringVar(&ca, "ca", "", "`file` of certificates in PEM to trust (default: the system's alone)")
	cmd.Flags().StringVar(&as, "as", "", "`name` of this login, for --server (default: none, for all commands)")
	_ = cmd.RegisterFlagCompletionFunc("as", cobra.NoFileCompletions)
	_ = cmd.RegisterFlagCompletionFunc("ca", command.Files("pem", "crt"))
	return cmd
}

// login stores a login under a name, or without one, after the server has accepted it.
func (a *app) login(ctx context.Context, l command.Login, name string) error {
	dir, err := filepath.Abs(a.Data)
	if err != nil {
		return err
	}
	path, err := command.LoginFile(dir, name)
	if err != nil {
		return fmt.Errorf("--as %w", err)
	}
	c, err := l.Client(dir)
	if err != nil {
		return err
	}
	var me api.Me
	if err := c.Do(ctx, http.MethodGet, "/v1/me", nil, &me); err != nil {
		if p, ok := errors.AsType[*api.Problem](err); ok && p.Status == http.StatusUnauthorized {
			return fmt.Errorf("log in to %s: the server does not accept this token: it was mistyped, revoked or is of another "+
				"server; an admin there makes a new one with scrimp tokens new USER", l.Server)
		}
		return fmt.Errorf("log in to %s: %w", l.Server, err)
	}
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make data folder: %w: give another with --data", err)
	}
	_ = os.Remove(path) // the new file must not keep an old one's permissions
	if err := os.WriteFile(path, append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("keep the token: %w", err)
	}
	return a.Show(me, account.Me(l.Server, me, a.Place()))
}

func (a *app) logoutCmd() *cobra.Command {
	return &cobra.Command{Use: "logout", Short: "Forget the server and the token", Args: command.Takes(),
		GroupID: command.GroupShare,
		Long: "Revokes the token at its server, if that answers, and forgets both. Commands work with the data folder's " +
			"own server again." + command.PlainExit,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.LoggedIn(a.Data)
			if c == nil && err == nil {
				return errors.New("you are not logged in: use scrimp login URL")
			}
			revoked := false
			if c != nil {
				var me api.Me
				if c.Do(cmd.Context(), http.MethodGet, "/v1/me", nil, &me) == nil && me.Token != "" {
					revoked = c.Do(cmd.Context(), http.MethodDelete, "/v1/tokens/"+me.Token, nil, nil) == nil
				}
			}
			file, err := command.LoginFile(a.Data, a.Server)
			if err == nil {
				err = os.Remove(file)
			}
			if err != nil {
				return fmt.Errorf("forget the token: %w", err)
			}
			if a.JSON {
				return a.Print(map[string]bool{"logged_in": false, "revoked": revoked})
			}
			if revoked {
				a.Printf("Logged out. The token is revoked.\n")
			} else {
				a.Printf("Logged out. The token was not revoked: the server did not answer, or no longer knows it.\n")
			}
			return nil
		}}
}
