package engines

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	api "scrimp/client"
	"scrimp/internal/agent"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/jobfile"
	"scrimp/internal/cli/show"
	"scrimp/internal/engine"
	"scrimp/internal/engine/local"
	"scrimp/internal/server/disk"
)

func (a *app) doctorCmd() *cobra.Command {
	launch, dollars, outputs, patience := false, "", "", time.Duration(0)
	cmd := &cobra.Command{Use: "doctor [ENGINE]",
		Short: "Check this machine, the data folder and the server, or an engine", Args: command.Takes("[ENGINE]"),
		GroupID: command.GroupRest,
		Long: "Checks this machine, the data folder and the server, and prints the fix of each failure. With " +
			"the name of an engine it checks that one: commands, keys, disk, clock, drivers, and the way back from its " +
			"machines to " +
			"the server. With --launch it then runs a job there that does nothing, on the cheapest machine that is not " +
			"interrupted: machine, agent and bill as every job has them, and a cost in the ledger. With --terraform it " +
			"compares settings and account with what deploy/terraform has made.\n\n" +
			"Exit status: 0 all is well, 1 a check failed.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				err := a.testEngine(cmd.Context(), args[0], false)
				if outputs != "" && (err == nil || errors.Is(err, command.Failed)) {
					err = cmp.Or(a.compareEngine(cmd.Context(), args[0], outputs), err)
				}
				if err != nil || !launch {
					return err
				}
				return a.launched(cmd.Context(), args[0], dollars, patience)
			}
			if outputs != "" {
				return errors.New("--terraform is compared with one engine: name it, as in scrimp doctor aws --terraform FILE")
			}
			if launch {
				return errors.New("--launch tries one engine: name it, as in scrimp doctor aws --launch")
			}
			checks := a.checks(cmd.Context())
			failed := false
			for _, c := range checks {
				failed = failed || !c.OK
				if a.JSON {
					if err := a.Print(c); err != nil {
						return err
					}
				}
			}
			if !a.JSON {
				a.Printf("%s", show.Doctor(checks, a.Place()))
			}
			if failed {
				return command.Failed
			}
			return nil
		}}
	cmd.Flags().BoolVar(&launch, "launch", false, "run a job that does nothing on the engine too, which costs money "+
		"(default: nothing is rented)")
	cmd.Flags().StringVar(&outputs, "terraform", "", "`file` with what terraform output -json printed, or the outputs of "+
		"the CloudFormation stack; - is standard input (default: nothing is compared)")
	cmd.Flags().DurationVar(&patience, "patience", 5*time.Minute, "how `long` the job of --launch may have no machine")
	cmd.Flags().StringVar(&dollars, "dollars", trialDollars, "most that the job of --launch may `cost`")
	return cmd
}

// compareEngine compares an engine with the Terraform outputs that describe it.
func (a *app) compareEngine(ctx context.Context, name, outputs string) error {
	text, err := os.ReadFile(outputs)
	if outputs == "-" {
		text, err = io.ReadAll(io.LimitReader(a.In, mostOutputs))
	}
	if err != nil {
		return fmt.Errorf("--terraform: %w", err)
	}
	s, err := a.settingOf(name)
	if err != nil {
		return err
	}
	e, err := a.tried(ctx, s)
	if err != nil {
		return err
	}
	if c, ok := e.Driver.(engine.Closer); ok {
		defer func() { _ = c.Close(context.WithoutCancel(ctx)) }()
	}
	d, ok := e.Driver.(engine.Comparer)
	if !ok {
		return fmt.Errorf("--terraform: engine %s is of kind %s: what is made by Terraform is for those of kind aws",
			name, s.Kind)
	}
	found, err := d.Compare(ctx, text)
	if err != nil {
		return fmt.Errorf("--terraform: %s: %w", outputs, err)
	}
	failed, err := a.printFindings(checksOf(found))
	if err == nil && failed {
		return command.Failed
	}
	return err
}

// mostOutputs bounds the bytes read from standard input; the module's outputs take one or two thousand.
const mostOutputs = 1 << 20

// checks returns the findings of scrimp doctor.
func (a *app) checks(ctx context.Context) []show.Check {
	checks := []show.Check{{Name: "program", OK: true, Text: "scrimp " + a.Version + " " + command.Build() + ", " +
		runtime.GOOS + "/" + runtime.GOARCH + ", " + flavour}, a.folderCheck(), diskCheck(a.Data, disk.Of(a.Data),
		machineFolders(a.Data)...)}
	if len(filepath.Join(a.Data, "market", "market.sock")) > 100 {
		checks = append(checks, show.Check{Name: "socket", OK: false,
			Text: "the path of the data folder is too long for a socket: give a shorter one with --data"})
	}
	c, err := a.Open(ctx)
	if err != nil {
		checks = append(checks, show.Check{Name: "server", OK: true, Text: "none runs; the next command starts one"})
	} else {
		checks = append(checks, show.Check{Name: "server", OK: true, Text: "runs"})
		if v, err := c.Server(ctx); err == nil {
			checks = append(checks, retention(v))
		}
	}
	if away, err := a.Far(a.Data); err != nil {
		checks = append(checks, show.Check{Name: "login", Text: err.Error()})
	} else {
		found := jobfile.Found(ctx, "", away != nil)
		checks = append(checks, show.Check{Name: "environment", OK: true, Text: found.Text()})
	}
	if c != nil && c.Far { // its engines are configured on the server's machine
		return checks
	}
	settings, err := engine.Settings(a.Data)
	if err != nil {
		return append(checks, show.Check{Name: "engines", Text: err.Error()})
	}
	people := 0
	if c != nil {
		people = a.people(ctx, c)
	}
	for _, s := range settings {
		if text := separation(a.Data, &s, people); text != "" {
			checks = append(checks, show.Check{Name: "users", OK: true, Text: "engine " + s.Name + ": " + text})
		}
	}
	return checks
}

// people returns the number of users who may use the server; 0 if it is unknown.
func (a *app) people(ctx context.Context, c *command.Client) (n int) {
	var list []api.User
	if err := c.Do(ctx, http.MethodGet, "/v1/users", nil, &list); err != nil {
		return 0
	}
	for _, u := range list {
		if !u.Off {
			n++
		}
	}
	return n
}

// separation returns a note on how an engine separates the programs of its users, or "" if there is nothing to note.
func separation(data string, s *engine.Setting, people int) string {
	at := local.Machines(data, s)
	for s.Kind == local.Kind && s.Users == engine.UsersAuto {
		if _, err := os.Stat(at); err == nil || at == filepath.Dir(at) {
			ok, why := agent.Apart(filepath.Join(at, "machine"))
			if ok {
				return ""
			}
			return "users: auto has no effect here, since " + why + ". Its programs run as this user, and each machine serves " +
				"one user of the server. Run the server as root with machines in a folder that others reach, " +
				"with: {machines: /var/lib/scrimp}, or write users: same"
		}
		at = filepath.Dir(at)
	}
	switch {
	case people < 2 || s.Users == engine.UsersAuto:
		return ""
	case s.Kind == local.Kind:
		return fmt.Sprintf("the programs of %d users run as this user, and can read what it can, the data folder too; each "+
			"machine serves one user of the server. Let only those submit whom you would let log in here, or run the server "+
			"as root with users: auto and with: {machines: /var/lib/scrimp} in %s (docs/security.md)", people,
			engine.SettingsName)
	case s.Users == engine.UsersSame:
		return fmt.Sprintf("the programs of %d users run as their machine's agent and could act as it, so each machine "+
			"serves one user of the server. Write users: auto in %s to keep them apart (docs/security.md)", people,
			engine.SettingsName)
	}
	return ""
}
