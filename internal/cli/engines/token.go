package engines

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"os"
	"slices"

	"github.com/spf13/cobra"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/show"
	"scrimp/internal/engine"
	"scrimp/internal/engine/ssh"
	"scrimp/internal/engine/ssh/setting"
)

// joinsAs describes how an own machine joins.
type joinsAs struct {
	Engine  string `json:"engine"`
	Machine string `json:"machine"`
	Token   string `json:"token"`
	Command string `json:"command"` // to run on the machine; it prompts for the token
}

// printTokens creates tokens for machines and prints how they join.
func (a *app) printTokens(ctx context.Context, s *engine.Setting, machines []string) error {
	join := "scrimp agent join " + a.joinURL(ctx)
	for _, m := range machines {
		token, err := setting.NewToken(a.Data, s, m)
		if err != nil {
			return err
		}
		if a.JSON {
			if err := a.Print(joinsAs{s.Name, m, token, join}); err != nil {
				return err
			}
			continue
		}
		a.Printf("On %s run this, as root or as the user whom programs are to have, and give it the token, which is shown "+
			"once:\n  %s\n  %s\nWith sudo and --install it becomes a unit of systemd.\n", m, join, token)
	}
	return nil
}

// joinURL returns the server's URL as the machines see it, as far as it is known.
func (a *app) joinURL(ctx context.Context) string {
	u, err := url.Parse(a.listens(ctx))
	if err != nil || u.Host == "" {
		return "https://SERVER:7077"
	}
	if host := u.Hostname(); host == "0.0.0.0" || host == "::" || host == "localhost" { // it listens everywhere
		if name, err := os.Hostname(); err == nil {
			u.Host = name + ":" + u.Port()
		}
	}
	return u.String()
}

func (a *app) engineTokenCmd() *cobra.Command {
	return &cobra.Command{Use: "token ENGINE MACHINE", Short: "Make a new token for a machine to join with",
		Args: command.Takes("ENGINE", "MACHINE"),
		Long: "Makes a token with which scrimp agent join lets this server use a machine that stands under hosts of the " +
			"engine as {join: MACHINE}. It is good for that alone. The token that the machine had before is revoked: what " +
			"joined with it is cut off within seconds; its programs go on for as long as their jobs may." + command.PlainExit,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.owns(); err != nil {
				return err
			}
			s, err := a.settingOf(args[0])
			if err != nil {
				return err
			}
			if s.Kind != ssh.Kind {
				return errors.New("only machines of an engine of kind ssh join")
			}
			return a.printTokens(cmd.Context(), s, args[1:])
		}}
}

// settingOf returns the engine with the given name.
func (a *app) settingOf(name string) (*engine.Setting, error) {
	settings, err := engine.Settings(a.Data)
	if err != nil {
		return nil, err
	}
	n := slices.IndexFunc(settings, func(s engine.Setting) bool { return s.Name == name })
	if n < 0 {
		return nil, errors.New("engine " + name + " is not known: scrimp engine list shows those that are")
	}
	return &settings[n], nil
}

// findings returns the running server's findings about an engine whose machines join, because only the server reaches
// them. It returns false if the engine has no such machines or no server that knows it runs.
func (a *app) findings(ctx context.Context, s *engine.Setting) (list []show.Check, ok bool) {
	if s.Kind != ssh.Kind {
		return nil, false
	}
	if joins, err := setting.Joins(s); err != nil || len(joins) == 0 {
		return nil, false
	}
	c, err := a.Open(ctx)
	if err != nil {
		return nil, false
	}
	var found []api.Finding
	if err := c.Do(ctx, http.MethodGet, "/v1/engines/"+url.PathEscape(s.Name)+"/findings", nil, &found); err != nil {
		return nil, false
	}
	for _, f := range found {
		list = append(list, show.Check{Name: f.Name, OK: f.OK, Text: f.Text})
	}
	return list, true
}
