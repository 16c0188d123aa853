package cli

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	api "scrimp/client"
	"scrimp/internal/agent"
	"scrimp/internal/agent/notice"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/engines"
	"scrimp/internal/cli/serve"
	"scrimp/internal/cli/show"
	"scrimp/internal/engine/hostd"
	"scrimp/internal/engine/local/marketd"
	"scrimp/internal/job/spec"
	"scrimp/internal/market/marketfile"
	"scrimp/internal/server"
)

// idleAfter is the time after which an unused server or market exits.
const idleAfter = 5 * time.Minute

func (a *app) serverCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "server", Short: "The server of the data folder", GroupID: command.GroupRest,
		Long: "The first command starts a server in the background; it leaves 5 minutes after the last job."}
	var marketFile string
	var ends bool
	run := &cobra.Command{Use: "run", Short: "Serve in the foreground", Args: cobra.NoArgs, Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			signal.Ignore(syscall.SIGHUP)
			dir, err := filepath.Abs(a.Data)
			if err := errors.Join(err, closeMemory()); err != nil {
				return err
			}
			if err := inherited(); err != nil && !ends { // without machines nothing inherits it
				return err
			}
			o := server.Options{
				Dir: dir, Market: marketFile, Idle: idleAfter, Ends: ends, Version: Version,
				Build: command.Build(), Kinds: engines.Kinds,
				Log: slog.New(slog.NewTextHandler(a.Err, nil)),
			}
			if err := serve.TakeOver(&o); err != nil {
				return err
			}
			return server.Serve(cmd.Context(), o)
		}}
	run.Flags().BoolVar(&ends, "ends", false, "it is there to give all machines back")
	run.Flags().StringVar(&marketFile, "market", "", "market for a folder that has none yet")
	cmd.AddCommand(run, a.serverStatusCmd(), a.serverStopCmd(), a.openapiCmd())
	return cmd
}

func (a *app) serverStatusCmd() *cobra.Command {
	return &cobra.Command{Use: "status", Short: "Show the server of the data folder", Args: command.Takes(),
		Long: "Shows the server of the data folder, its market, engines and number of jobs. It starts no server." +
			command.PlainExit,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.Open(cmd.Context())
			if errors.Is(err, command.ErrNoServer) {
				return a.Showf(map[string]bool{"running": false},
					"No server runs in %s. The next command starts one.\n", a.Data)
			}
			if err != nil {
				return err
			}
			v, err := c.Server(cmd.Context())
			if err != nil {
				return err
			}
			return a.Show(v, show.Server(v, a.Place()))
		}}
}

func (a *app) serverStopCmd() *cobra.Command {
	var now bool
	stop := &cobra.Command{Use: "stop", Short: "Stop the server; its jobs go on, and the next command adopts them",
		Args: command.Takes(),
		Long: "Stops the server. The machines and their programs go on: the next command starts a server that adopts " +
			"them. With --now every machine is given back and the market ends; work since the last checkpoint " +
			"is lost." + command.PlainExit,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.Open(cmd.Context())
			if errors.Is(err, command.ErrNoServer) {
				// Nothing ever ran here, or machines may keep running.
				if _, err := os.Stat(filepath.Join(a.Data, server.TokenName)); err != nil || !now {
					return a.stopped(0, false)
				}
				a.Ends = true
				if c, err = a.Ensure(cmd.Context(), ""); err != nil { // only a server can terminate the machines
					return err
				}
			}
			if err != nil {
				return err
			}
			if c.Far {
				return errors.New("the server is not this folder's: stop it where it was started, or scrimp logout first")
			}
			v, err := c.Server(cmd.Context())
			if err != nil {
				return err
			}
			if err := c.Do(cmd.Context(), http.MethodPost, "/v1/server/stop", api.StopServer{Now: now}, nil); err != nil {
				return err
			}
			patience := server.Leaves
			if now {
				patience += server.GivesBack
			}
			if err := command.Gone(cmd.Context(), v.PID, patience); err != nil {
				return err
			}
			return a.stopped(v.PID, now)
		}}
	stop.Flags().BoolVar(&now, "now", false, "give back every machine and end the market too (default: they go on)")
	return stop
}

// stopped reports that the server with this process ID has ended; 0 means that none ran.
func (a *app) stopped(pid int, machines bool) error {
	if a.JSON {
		return a.Print(map[string]any{"running": false, "stopped_pid": pid, "machines_given_back": machines})
	}
	switch {
	case pid == 0:
		a.Printf("No server runs in %s.\n", a.Data)
	case machines:
		a.Printf("The server (process %d) has ended, and every machine of its own is given back.\n", pid)
	default:
		a.Printf("The server (process %d) has ended. Running jobs continue; the next command adopts them.\n", pid)
	}
	return nil
}

// marketServeCmd runs as the process of a local market.
func (a *app) marketServeCmd() *cobra.Command {
	var file, name, after, machines string
	serve := &cobra.Command{Use: "serve", Short: "Serve a market in the foreground", Args: cobra.NoArgs, Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			signal.Ignore(syscall.SIGHUP)
			trace, err := marketfile.Load(file)
			if err := errors.Join(err, closeMemory()); err != nil {
				return err
			}
			exe, err := os.Executable()
			if err != nil {
				return err
			}
			var begins time.Time
			if after != "" {
				if begins, err = time.Parse(time.RFC3339Nano, after); err != nil {
					return err
				}
			}
			return marketd.Serve(cmd.Context(), marketd.Options{
				Dir: a.Data, Trace: trace, Name: name, After: begins, Machine: []string{exe, "agent"},
				Machines: machines, Idle: idleAfter + time.Minute, Log: slog.New(slog.NewTextHandler(a.Err, nil)),
			})
		}}
	serve.Flags().StringVar(&after, "after", "", "simulated `time` that a new market begins after")
	serve.Flags().StringVar(&machines, "machines", "", "`folder` of its machines (default: machines in the data folder)")
	serve.Flags().StringVar(&file, "market", "", "market `file`, or calm or stormy")
	serve.Flags().StringVar(&name, "name", "", "`name` of the engine that a new market is (default: as the file has it)")
	return serve
}

// hideToken stores the machine's bootstrap token in a file and re-executes this program without it: a process's initial
// environment stays readable for as long as the process lives.
func hideToken() error {
	token := os.Getenv("SCRIMP_TOKEN")
	if token == "" {
		return nil
	}
	if err := agent.KeepToken(os.Getenv("SCRIMP_MACHINE_DIR"), token); err != nil {
		return err
	}
	if err := os.Unsetenv("SCRIMP_TOKEN"); err != nil {
		return err
	}
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	return fmt.Errorf("start the agent without its token: %w", syscall.Exec(exe, os.Args, os.Environ()))
}

// identify finds the instance ID of a machine that started without a secret.
func identify(ctx context.Context, roots *x509.CertPool) error {
	switch by := os.Getenv("SCRIMP_IDENTITY"); {
	case by == "" || os.Getenv("SCRIMP_INSTANCE_ID") != "":
		return nil
	case by != "aws":
		return fmt.Errorf("SCRIMP_IDENTITY is %q: this program knows aws", by)
	}
	id, err := agent.Identify(ctx, os.Getenv("SCRIMP_SERVER"), os.Getenv("SCRIMP_MACHINE_DIR"), os.Getenv("SCRIMP_ENGINE"),
		os.Getenv("AWS_EC2_METADATA_SERVICE_ENDPOINT"), roots)
	if err != nil {
		return err
	}
	return os.Setenv("SCRIMP_INSTANCE_ID", id) // also for the re-executed program
}

// noticeOf parses how long the machine keeps running after its agent was asked to end; 0 if it is unknown.
func noticeOf(said string) (time.Duration, error) {
	if said == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(said)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("SCRIMP_NOTICE is %q: write a span such as 30s", said)
	}
	return d, nil
}

func (a *app) agentCmd() *cobra.Command {
	agentCmd := &cobra.Command{Use: "agent", Short: "Let a server use this machine", Args: cobra.NoArgs,
		GroupID: command.GroupRest,
		Long: "Without a command this is what the server begins on the machines that it rents: nobody else does. " +
			"scrimp agent join lets a server use a machine of your own.\n\nExit status: 0 ended, 1 error.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := hideToken(); err != nil {
				return err
			}
			stays, err := noticeOf(os.Getenv("SCRIMP_NOTICE"))
			if err != nil {
				return err
			}
			roots, err := hostd.Roots(os.Getenv("SCRIMP_CA"))
			if err != nil {
				return err
			}
			if err := identify(cmd.Context(), roots); err != nil {
				return err
			}
			ctx, stop := context.WithCancel(context.WithoutCancel(cmd.Context()))
			defer stop()
			signals, hard := make(chan os.Signal, 2), make(chan struct{})
			signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
			go func() { // runs until the process ends
				<-signals
				stop() // save and exit
				if os.Getenv("SCRIMP_TERM_ONCE") != "" {
					return // whoever terminates the machine repeats the signal and finally kills
				}
				<-signals
				close(hard)
			}()
			err = agent.Run(ctx, agent.Config{
				Server: os.Getenv("SCRIMP_SERVER"), Instance: os.Getenv("SCRIMP_INSTANCE_ID"),
				MachineDir: os.Getenv("SCRIMP_MACHINE_DIR"), Address: os.Getenv("SCRIMP_ADDRESS"),
				Metadata: notice.Endpoints{AWS: os.Getenv("AWS_EC2_METADATA_SERVICE_ENDPOINT"), GCE: os.Getenv("GCE_METADATA_HOST"),
					Azure: os.Getenv("SCRIMP_AZURE_METADATA")},
				Roots:   roots,
				Environ: os.Environ(), Borrowed: os.Getenv("SCRIMP_BORROWED_ENVIRONMENT") != "",
				Version: Version, Build: command.Build(),
				Restart: func(path string) error {
					return syscall.Exec(path, append([]string{path}, os.Args[1:]...), os.Environ())
				},
				FreeDisk: os.Getenv("SCRIMP_FREE_DISK"), Cache: os.Getenv("SCRIMP_CACHE"), CacheDir: os.Getenv("SCRIMP_CACHE_DIR"),
				TaskUser: cmp.Or(os.Getenv("SCRIMP_TASK_USER"), agent.UserAuto), Sole: true, Background: true, Hard: hard,
				Notice: stays,
				Log:    slog.New(slog.NewTextHandler(a.Err, nil)),
			})
			if errors.Is(err, agent.ErrFenced) {
				return nil
			}
			return err
		}}
	agentCmd.AddCommand(a.agentJoinCmd(), a.agentPlaceCmd())
	return agentCmd
}

// hostdCmd runs on each machine of an engine of own machines.
func (a *app) hostdCmd() *cobra.Command {
	var dir, address string
	cmd := &cobra.Command{Use: "hostd", Short: "Begin and end agents on a machine of one's own", Args: cobra.NoArgs,
		Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			exe, err := os.Executable()
			if err != nil {
				return err
			}
			signal.Ignore(syscall.SIGHUP)
			return hostd.Serve(cmd.Context(), os.Stdin, a.Out, hostd.Options{Dir: dir, Agent: []string{exe, "agent"},
				Address: address, Apart: agent.Apart, Log: slog.New(slog.NewTextHandler(a.Err, nil))})
		}}
	cmd.Flags().StringVar(&dir, "dir", "", "absolute path of the `folder` of its machines")
	cmd.Flags().StringVar(&address, "address", "", "`address` by which other machines reach this one")
	return cmd
}

func (a *app) ledgerCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "ledger", Short: "Verify the ledger", GroupID: command.GroupMoney,
		Long: "The ledger: double entry, append-only, chained by hashes."}
	cmd.AddCommand(&cobra.Command{Use: "verify", Short: "Replay the whole log and prove that the ledger follows from it",
		Args: command.Takes(),
		Long: "Replays the whole log and compares each posting, each sum and the chain of hashes.\n\nExit " +
			"status: 0 ledger balanced, 1 error or not balanced.",
		RunE: a.With(func(ctx context.Context, c *command.Client, _ []string) error {
			var v api.Verified
			if err := c.Do(ctx, http.MethodGet, "/v1/ledger/verify", nil, &v); err != nil {
				return err
			}
			if a.JSON {
				if err := a.Print(v); err != nil {
					return err
				}
			} else {
				a.Printf("%s", show.Verified(v, a.Place()))
			}
			if !v.OK {
				return command.Failed
			}
			return nil
		})})
	return cmd
}

func (a *app) schemaCmd() *cobra.Command {
	return &cobra.Command{Use: "schema", Short: "Print the JSON schema of the job file, for editors",
		Args:    command.Takes(),
		GroupID: command.GroupRest,
		Long: "Prints the JSON schema of the job file. Save it and begin a job file with the line # " +
			"yaml-language-server: $schema=FILE, and an editor completes and checks its fields." + command.PlainExit,
		RunE: func(*cobra.Command, []string) error { _, err := a.Out.Write(spec.Schema()); return err }}
}
