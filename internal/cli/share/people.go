package share

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/show/account"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/identity"
	"scrimp/internal/lib/size"
	"scrimp/internal/view/convert"
)

func (a *app) usersCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "users", Short: "List who may use the server, and make users", Args: command.Takes(),
		GroupID: command.GroupShare,
		Long: "Lists the users of the server and their roles. A viewer sees a team's jobs and costs; a submitter also " +
			"submits jobs and ends their own; an operator also ends and changes those of others; an admin of all " +
			"teams also says who may do what." + command.PlainExit,
		RunE: a.With(func(ctx context.Context, c *command.Client, _ []string) error {
			var list []api.User
			if err := c.Do(ctx, http.MethodGet, "/v1/users", nil, &list); err != nil {
				return err
			}
			return command.ShowEach(a.App, list, account.Users(list, a.Place()))
		})}
	var grants []string
	var email string
	var off, on bool
	var set *cobra.Command
	set = &cobra.Command{Use: "set NAME", Short: "Make a user, or change one", Args: command.Takes("NAME"),
		Long: "Makes a user, or changes one. Grants replace those that the user had. --off revokes all tokens " +
			"and sessions of the user, who may do nothing until --on and a new token; what they did stays on record " +
			"(scrimp users erase forgets who it was). " +
			"With --email the user can sign in to the dashboard by the identity " +
			"provider of the server." + command.PlainExit,
		Example: "  scrimp users set ann --grant admin --email ann@example.com\n" +
			"  scrimp users set bob --grant vision=submitter --grant text=viewer\n  scrimp users set bob --off",
		RunE: a.With(func(ctx context.Context, c *command.Client, args []string) error {
			var s api.SetUser
			for _, g := range grants {
				grant, err := identity.ParseGrant(g)
				if err != nil {
					return err
				}
				s.Grants = append(s.Grants, convert.To[api.Grant](grant))
			}
			if on && off {
				return errors.New("--on and --off exclude each other: leave one out")
			}
			if on || off {
				s.Off = &off
			}
			if set.Flags().Changed("email") {
				s.Email = &email
			}
			var u api.User
			if err := c.Do(ctx, http.MethodPut, "/v1/users/"+url.PathEscape(args[0]), s, &u); err != nil {
				return err
			}
			if off {
				a.Notef("All tokens of %s are revoked. After --on: scrimp tokens new %s\n", u.Name, u.Name)
			}
			return command.ShowEach(a.App, []api.User{u}, account.Users([]api.User{u}, a.Place()))
		})}
	set.Flags().StringArrayVar(&grants, "grant", nil,
		"`TEAM=ROLE`, or a ROLE for all teams; may be repeated (default: as they are)")
	set.Flags().StringVar(&email, "email", "", "`address` by which the identity provider knows the user; \"\" "+
		"removes it (default: as it is)")
	set.Flags().BoolVar(&off, "off", false, "let the user do nothing, and revoke all their tokens (default: as it is)")
	set.Flags().BoolVar(&on, "on", false, "let the user work again, with new tokens (default: as it is)")
	cmd.AddCommand(set, a.eraseCmd())
	return cmd
}

func (a *app) teamsCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "teams", Short: "List teams and their projects, and make them", Args: command.Takes(),
		GroupID: command.GroupShare,
		Long:    "Lists the teams that you see. Each job belongs to a team, and to a project of it." + command.PlainExit,
		RunE: a.With(func(ctx context.Context, c *command.Client, _ []string) error {
			var list []api.Team
			if err := c.Do(ctx, http.MethodGet, "/v1/teams", nil, &list); err != nil {
				return err
			}
			return command.ShowEach(a.App, list, account.Teams(list, a.Place()))
		})}
	var projects []string
	var room string
	set := &cobra.Command{Use: "set NAME", Short: "Make a team, or change its projects", Args: command.Takes("NAME"),
		Long: "Makes a team, or changes its projects: those that are given replace the others, and with none given " +
			"they stay; --project \"\" lets the team have any again. A team that has projects " +
			"takes jobs of these alone. With --disk it also limits what the team's jobs may have on the server's disk: work " +
			"folders, kept outputs, checkpoints in the server's own store, and output. What they share counts once. At the " +
			"limit a submission with a folder is refused, and output and checkpoints wait on machines." + command.PlainExit,
		Example: "  scrimp teams set vision --project lanes --disk 200GiB",
		RunE: a.With(func(ctx context.Context, c *command.Client, args []string) error {
			var t api.Team
			s := api.SetTeam{Projects: projects}
			if slices.Equal(projects, []string{""}) {
				s.Projects = []string{}
			}
			if room != "" {
				n, err := diskLimit(room)
				if err != nil {
					return err
				}
				s.Disk = &n
			}
			if err := c.Do(ctx, http.MethodPut, "/v1/teams/"+url.PathEscape(args[0]), s, &t); err != nil {
				return err
			}
			return command.ShowEach(a.App, []api.Team{t}, account.Teams([]api.Team{t}, a.Place()))
		})}
	set.Flags().StringArrayVar(&projects, "project", nil, "`name` of a project; may be repeated, and \"\" is "+
		"any (default: as they are)")
	set.Flags().StringVar(&room, "disk", "", "`size` that its jobs may have on the server's disk, such as 200GiB, or "+
		"none (default: as it is)")
	cmd.AddCommand(set)
	return cmd
}

// diskLimit parses a team's limit; 0 means none.
func diskLimit(text string) (int64, error) {
	if text == "none" {
		return 0, nil
	}
	n, err := size.Parse(text)
	if err == nil && n <= 0 {
		err = errors.New("write none for no limit")
	}
	if err != nil {
		return 0, fmt.Errorf("--disk %s: %w", text, err)
	}
	return int64(n), nil
}

func (a *app) tokensCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "tokens", Short: "List, make and revoke tokens", Args: command.Takes(),
		GroupID: command.GroupShare,
		Long: "Lists your tokens, and for an admin everybody's. Of a token only its hash is kept: what opens the server " +
			"is shown once, when it is made." + command.PlainExit,
		RunE: a.With(func(ctx context.Context, c *command.Client, _ []string) error {
			var list []api.Token
			if err := c.Do(ctx, http.MethodGet, "/v1/tokens", nil, &list); err != nil {
				return err
			}
			return command.ShowEach(a.App, list, account.Tokens(list, a.Place()))
		})}
	var life, most, note string
	add := &cobra.Command{Use: "new [USER]", Short: "Make a token; it is shown once", Args: command.Takes("[USER]"),
		Long: "Makes a token for USER, or for yourself, and prints it alone on a line. It is shown this once." +
			command.PlainExit,
		RunE: a.With(func(ctx context.Context, c *command.Client, args []string) error {
			n := api.NewToken{Note: note}
			if len(args) > 0 {
				n.User = args[0]
			}
			var role identity.Role
			var err error
			if most != "" {
				if role, err = identity.ParseRole(most); err != nil {
					return err
				}
			}
			n.Most = convert.To[api.Role](role)
			if n.Life, err = spec.ParseDuration(life); err != nil {
				return fmt.Errorf("--for %s: %w", life, err)
			}
			var made api.MadeToken
			if err := c.Do(ctx, http.MethodPost, "/v1/tokens", n, &made); err != nil {
				return err
			}
			if a.JSON {
				return a.Print(made)
			}
			a.Notef("Token %s of %s, good until %s.", made.ID, made.User, made.Expires.Format(time.RFC3339))
			_, _ = io.WriteString(a.Err, " Its user logs in with: scrimp login ADDRESS\n") // elsewhere: no --data of this folder
			a.Printf("%s\n", made.Text)
			return nil
		})}
	add.Flags().StringVar(&life, "for", "90d", "`time` until it expires, at most 366d")
	add.Flags().StringVar(&most, "role", "", "cut the user's role to this `role` (default: it is not cut)")
	add.Flags().StringVar(&note, "note", "", "`text` that says what it is for (default: none)")
	revoke := &cobra.Command{Use: "revoke ID", Short: "Revoke a token at once", Args: command.Takes("ID"),
		Long: "Revokes a token at once: your own, and for an admin any." + command.PlainExit,
		RunE: a.With(func(ctx context.Context, c *command.Client, args []string) error {
			if err := c.Do(ctx, http.MethodDelete, "/v1/tokens/"+url.PathEscape(args[0]), nil, nil); err != nil {
				return err
			}
			if a.JSON {
				return a.Print(map[string]string{"revoked": args[0]})
			}
			a.Printf("Token %s is revoked.\n", args[0])
			return nil
		})}
	cmd.AddCommand(add, revoke)
	return cmd
}

func (a *app) auditCmd() *cobra.Command {
	var user, since string
	cmd := &cobra.Command{Use: "audit", Short: "List who did what on the server", Args: command.Takes(),
		GroupID: command.GroupShare,
		Long: "Lists who did what, when, from where and with what outcome, oldest first: every change, and " +
			"everything that the server refused for lack of a role. The trail is part of the append-only log." +
			command.PlainExit,
		RunE: a.With(func(ctx context.Context, c *command.Client, _ []string) error {
			var begin time.Time
			if since != "" {
				d, err := spec.ParseDuration(since)
				if err != nil {
					return fmt.Errorf("--since %s: %w", since, err)
				}
				begin = a.Now().Add(-d)
			}
			var acts []api.Act
			for after, more := uint64(0), true; more; {
				var page api.Audit
				q := url.Values{"limit": {"1000"}, "after": {strconv.FormatUint(after, 10)}, "user": {user}}
				if err := c.Do(ctx, http.MethodGet, api.Path("/v1/audit", q), nil, &page); err != nil {
					return err
				}
				for _, act := range page.Acts {
					if !act.At.Before(begin) {
						acts = append(acts, act)
					}
				}
				after, more = page.Next, page.Next > 0
			}
			return command.ShowEach(a.App, acts, account.Audit(acts, a.Place()))
		})}
	cmd.Flags().StringVar(&user, "user", "", "`name` of one user (default: all)")
	cmd.Flags().StringVar(&since, "since", "", "`time` back from now, as in 24h (default: from the beginning)")
	return cmd
}
