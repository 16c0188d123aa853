package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"scrimp/internal/agent"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/engines"
	"scrimp/internal/cli/serve"
	"scrimp/internal/job/spec"
	"scrimp/internal/server"
)

func (a *app) serveCmd() *cobra.Command {
	o := server.Options{}
	var logJSON bool
	var retain, retainOutputs string
	cmd := &cobra.Command{Use: "serve", Short: "Serve a team, in the foreground", Args: command.Takes(),
		GroupID: command.GroupShare,
		Long: "Serves the data folder to everybody who has a token, until Ctrl-C or SIGTERM; jobs go " +
			"on, and the next server adopts them. It takes over from a server that a command started in the folder. " +
			"Whoever can read the data folder is its owner and needs no token: make " +
			"users and tokens there.\n\n" +
			"With --db the log lies in PostgreSQL. Of several servers on one database and one data folder, one leads; the " +
			"others wait and take over within seconds. Addresses that other machines reach need TLS, or --insecure.\n\n" +
			"With --oidc-issuer, --oidc-client and --oidc-secret-file people also sign in to the dashboard by an identity " +
			"provider. Register https://HOST/oidc/callback there.\n\nExit status: 0 ended, 1 error.",
		Example: "  scrimp serve\n  scrimp serve --listen 0.0.0.0:7077 --tls-cert cert.pem --tls-key key.pem\n" +
			"  scrimp serve --db postgres://scrimp@db/scrimp",
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := filepath.Abs(a.Data)
			if err := errors.Join(err, closeMemory(), inherited()); err != nil {
				return err
			}
			o.Dir, o.Version, o.Build, o.Kinds = dir, Version, command.Build(), engines.Kinds
			o.Log = slog.New(slog.NewTextHandler(a.Err, nil))
			if o.Retain, err = retainedFor("--retain", retain); err != nil {
				return err
			}
			if o.RetainOutputs, err = retainedFor("--retain-outputs", retainOutputs); err != nil {
				return err
			}
			if logJSON {
				o.Log = slog.New(slog.NewJSONHandler(a.Err, nil))
			}
			if err := serve.Check(&o); err != nil {
				return err
			}
			if namesPassword(o.DB) {
				o.Log.Warn("everybody on this machine can read the password of the database in the list of processes: leave it " +
					"out of --db, and put it in PGPASSWORD or ~/.pgpass")
			}
			o.DB = cmp.Or(o.DB, os.Getenv("SCRIMP_DB"))
			o.Replace = func(ctx context.Context) error { return a.Replace(ctx, dir) }
			o.Ready = func(address string) { a.serving(&o, address) }
			return server.Serve(cmd.Context(), o)
		}}
	f := cmd.Flags()
	f.StringVar(&o.Listen, "listen", "127.0.0.1:7077", "`address` to serve on; port 0 is any that is free")
	f.StringVar(&o.DB, "db", "", "PostgreSQL `address`, postgres://… (environment: SCRIMP_DB; default: SQLite in the "+
		"data folder)")
	f.StringVar(&o.Engines, "engines", "", "`file` that names the engines (default: engines.yaml in the data folder)")
	f.StringVar(&o.AdminToken, "admin-token", "", "`file` with the token of the user admin, who may do everything; "+
		"another token in it replaces the first (default: none)")
	serve.SignInFlags(f, &o.OIDC)
	f.StringVar(&o.TLSCert, "tls-cert", "", "certificate `file` in PEM (default: plain HTTP)")
	f.StringVar(&o.TLSKey, "tls-key", "", "key `file` in PEM (default: plain HTTP)")
	f.BoolVar(&o.Insecure, "insecure", false, "serve plain HTTP where others reach it (default: refuse)")
	f.StringVar(&o.Market, "market", "", "market `file`, or calm or stormy, for a data folder that has none yet "+
		"(default calm)")
	f.IntVar(&o.Rate, "rate", 500, "requests a second that one user, machine or attempt may send")
	f.IntVar(&o.Running, "running", 4, "jobs that hold a machine at once")
	f.Var(serve.Span(&o.PreemptAfter, 10*time.Minute), "preempt-after", "`time` that a program runs before a critical "+
		"job may preempt it")
	f.StringVar(&retain, "retain", "90d", "`time` for which the work folder, the output and the older checkpoints of a "+
		"job are kept once it is over, or ever")
	f.StringVar(&retainOutputs, "retain-outputs", "ever", "`time` for which its kept outputs and its newest checkpoint "+
		"are kept, or ever")
	f.StringSliceVar(&o.HookHosts, "hook-hosts", nil,
		"`hosts` inside this network that webhooks may be on, as HOST or HOST:PORT (default none)")
	serve.MailFlags(f, &o.Mail)
	f.StringArrayVar(&o.Stores, "stores", nil, "`address` of a store that job files may name in checkpoint.store, such "+
		"as s3://BUCKET?region=NAME or gs://BUCKET; may be repeated (default none)")
	f.BoolVar(&logJSON, "log-json", false, "write the log as JSON (default: as text)")
	_ = cmd.RegisterFlagCompletionFunc("market", command.CompleteMarket)
	return cmd
}

// inherited returns an error if the server's local agents cannot read what they inherit from its environment: each of
// them would end without a message, on a machine that costs money.
func inherited() error {
	return agent.CheckDisk(os.Getenv("SCRIMP_FREE_DISK"), os.Getenv("SCRIMP_CACHE"))
}

// serving says where the server answers, and keeps its settings for a server that a command starts.
func (a *app) serving(o *server.Options, address string) {
	serve.Keep(o)
	if !a.JSON {
		a.Printf("Serving %s on %s\nA first user:  scrimp --data %s users set NAME --grant admin && scrimp --data %s "+
			"tokens new NAME\n", o.Dir, address, o.Dir, o.Dir)
		return
	}
	_ = a.Print(map[string]string{"address": address, "folder": o.Dir})
}

// namesPassword reports whether a database address contains a password.
func namesPassword(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.User == nil {
		return strings.Contains(address, "password")
	}
	_, has := u.User.Password()
	return has || u.Query().Has("password")
}

// retainedFor parses a retention time; a negative result means forever.
func retainedFor(flag, text string) (time.Duration, error) {
	if text == "ever" {
		return -1, nil
	}
	span, err := spec.ParseDuration(text)
	if err == nil && span < time.Hour {
		err = errors.New("write ever, or a span of at least an hour")
	}
	if err != nil {
		return 0, fmt.Errorf("%s %s: %w", flag, text, err)
	}
	return span, nil
}
