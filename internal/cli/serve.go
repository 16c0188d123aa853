package cli

import (
	"log/slog"
	"path/filepath"

	"github.com/spf13/cobra"

	"scrimp/internal/cli/command"
	"scrimp/internal/server"
)

func (a *app) serveCmd() *cobra.Command {
	o := server.Options{}
	var logJSON bool
	cmd := &cobra.Command{Use: "serve", Short: "Serve several people, in the foreground", Args: command.Takes(),
		GroupID: command.GroupShare,
		Long: "Serves the data folder to everybody who has a token, until it is ended with Ctrl-C or SIGTERM; jobs go " +
			"on, and the next server adopts them. Whoever can read the data folder is its owner and needs no token: make " +
			"users and tokens there.\n\n" +
			"With --db the log lies in PostgreSQL. Of several servers on one database and one data folder, one leads; the " +
			"others wait and take over within seconds. Addresses that other machines reach need TLS, or --insecure.\n\nExit " +
			"status: 0 ended, 1 error.",
		Example: "  scrimp serve\n  scrimp serve --listen 0.0.0.0:7077 --tls-cert cert.pem --tls-key key.pem\n" +
			"  scrimp serve --db postgres://scrimp@db/scrimp",
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := filepath.Abs(a.Data)
			if err != nil {
				return err
			}
			o.Dir, o.Version, o.Build, o.Kinds = dir, Version, command.Build(), kinds
			o.Log = slog.New(slog.NewTextHandler(a.Err, nil))
			if logJSON {
				o.Log = slog.New(slog.NewJSONHandler(a.Err, nil))
			}
			o.Ready = func(address string) {
				if !a.JSON {
					a.Printf("Serving %s on %s\nA first user:  scrimp --data %s users set NAME --grant admin && scrimp --data %s "+
						"tokens new NAME\n", dir, address, dir, dir)
					return
				}
				_ = a.Print(map[string]string{"address": address, "folder": dir})
			}
			return server.Serve(cmd.Context(), o)
		}}
	f := cmd.Flags()
	f.StringVar(&o.Listen, "listen", "127.0.0.1:7077", "`address` to serve on; port 0 is any that is free")
	f.StringVar(&o.DB, "db", "", "PostgreSQL `address`, postgres://… (default: SQLite in the data folder)")
	f.StringVar(&o.TLSCert, "tls-cert", "", "certificate `file` in PEM (default: plain HTTP)")
	f.StringVar(&o.TLSKey, "tls-key", "", "key `file` in PEM (default: plain HTTP)")
	f.BoolVar(&o.Insecure, "insecure", false, "serve plain HTTP where others reach it (default: refuse)")
	f.StringVar(&o.Market, "market", "", "market `file`, or calm or stormy, for a data folder that has none yet "+
		"(default calm)")
	f.IntVar(&o.Rate, "rate", 500, "requests a second that one token may send")
	f.IntVar(&o.Running, "running", 4, "jobs that hold a machine at once")
	f.StringSliceVar(&o.HookHosts, "hook-hosts", nil,
		"`hosts` inside this network that webhooks may be on, as HOST or HOST:PORT (default none)")
	f.BoolVar(&logJSON, "log-json", false, "write the log as JSON (default: as text)")
	_ = cmd.RegisterFlagCompletionFunc("market", command.CompleteMarket)
	return cmd
}
