package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	api "scrimp/client"
	"scrimp/internal/agent"
	"scrimp/internal/agent/notice"
	"scrimp/internal/catalog"
	"scrimp/internal/cli/show"
	"scrimp/internal/engine/local"
	"scrimp/internal/market"
	"scrimp/internal/marketfile"
	"scrimp/internal/server"
	"scrimp/internal/size"
	"scrimp/internal/spec"
)

// idleAfter is when a server or market that nobody needs leaves.
const idleAfter = 5 * time.Minute

func (a *app) serverCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "server", Short: "The server of the data folder", GroupID: groupRest,
		Long: "The first command starts a server in the background; it leaves 5 minutes after the last job."}
	var marketFile string
	run := &cobra.Command{Use: "run", Short: "Serve in the foreground", Args: cobra.NoArgs, Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			signal.Ignore(syscall.SIGHUP)
			dir, err := filepath.Abs(a.data)
			if err != nil {
				return err
			}
			return server.Serve(cmd.Context(), server.Options{
				Dir: dir, Market: marketFile, Idle: idleAfter, Version: Version, Build: build(), Kinds: kinds,
				Log: slog.New(slog.NewTextHandler(a.err, nil)),
			})
		}}
	run.Flags().StringVar(&marketFile, "market", "", "market for a folder that has none yet")
	cmd.AddCommand(run, a.serverStatusCmd(), a.serverStopCmd(), a.openapiCmd())
	return cmd
}

func (a *app) serverStatusCmd() *cobra.Command {
	return &cobra.Command{Use: "status", Short: "Say who serves the data folder", Args: takes(),
		Long: "Says who serves the data folder, its market and how many jobs it has. It starts none." + plainExit,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.open(cmd.Context())
			if errors.Is(err, errNoServer) {
				if a.json {
					return a.print(map[string]bool{"running": false})
				}
				a.printf("No server runs in %s. The next command starts one.\n", a.data)
				return nil
			}
			if err != nil {
				return err
			}
			v, err := c.server(cmd.Context())
			if err != nil {
				return err
			}
			if a.json {
				return a.print(v)
			}
			a.printf("%s", show.Server(v, a.place()))
			return nil
		}}
}

func (a *app) serverStopCmd() *cobra.Command {
	var now bool
	stop := &cobra.Command{Use: "stop", Short: "End the server; its jobs go on, and the next command adopts them",
		Args: takes(),
		Long: "Ends the server. The machines and their programs go on: the next command starts a server that adopts " +
			"them. With --now every machine is given back and the market ends; work since the last checkpoint " +
			"is lost." + plainExit,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.open(cmd.Context())
			if errors.Is(err, errNoServer) {
				// nothing ever ran here, or it may run on
				if _, err := os.Stat(filepath.Join(a.data, server.TokenName)); err != nil || !now {
					return a.stopped(0, false)
				}
				if c, err = a.ensure(cmd.Context(), ""); err != nil { // only a server can give the machines back
					return err
				}
			}
			if err != nil {
				return err
			}
			if c.far {
				return errors.New("the server is not this folder's: end it where it was started, or scrimp logout first")
			}
			v, err := c.server(cmd.Context())
			if err != nil {
				return err
			}
			if err := c.do(cmd.Context(), http.MethodPost, "/v1/server/stop", api.StopServer{Now: now}, nil); err != nil {
				return err
			}
			if err := gone(cmd.Context(), v.PID); err != nil {
				return err
			}
			return a.stopped(v.PID, now)
		}}
	stop.Flags().BoolVar(&now, "now", false, "give back every machine and end the market too (default: they go on)")
	return stop
}

// stopped says that the server with this process is gone; 0: there was none.
func (a *app) stopped(pid int, machines bool) error {
	if a.json {
		return a.print(map[string]any{"running": false, "stopped_pid": pid, "machines_given_back": machines})
	}
	switch {
	case pid == 0:
		a.printf("No server runs in %s.\n", a.data)
	case machines:
		a.printf("The server (process %d) has ended, and every machine of its own is given back.\n", pid)
	default:
		a.printf("The server (process %d) has ended. What runs goes on; the next command adopts it.\n", pid)
	}
	return nil
}

// published is what the catalogue has of each spot offer's interruptions: of its
// machine type in its region, else in all that are listed.
func published(m api.Market, c catalog.Catalog) map[market.OfferID]show.Share {
	all := map[market.OfferID]show.Share{}
	for _, l := range m.Offers {
		id, near := market.OfferID(l.Offer.ID), false
		for _, k := range c.Listings {
			if l.Offer.Capacity != api.Spot || k.Offer.Capacity != market.Spot || k.Offer.Machine != l.Offer.Machine ||
				!k.Risk.Known {
				continue
			}
			here := k.Offer.Region == l.Offer.Region
			old, ok := all[id]
			switch {
			case !ok || here && !near:
				all[id], near = show.Share{Low: k.Risk.Low, High: k.Risk.High}, here
			case here == near:
				all[id] = show.Share{Low: min(old.Low, k.Risk.Low), High: max(old.High, k.Risk.High)}
			}
		}
	}
	return all
}

func (a *app) marketCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "market", Short: "Show the server's market: prices, and interruptions seen", Args: takes(),
		GroupID: groupMoney,
		Long: "Shows what is for sale: PRICE/H in the offers' currency, NOTICE between the warning of an " +
			"interruption and the machine's end, INTERRUPTIONS how many were seen in how much time of all machines of that " +
			"type, PUBLISHED what share the catalogue's sources say is interrupted within a month (scrimp catalog update, " +
			"import)." + plainExit,
		RunE: a.with(func(ctx context.Context, c *client, _ []string) error {
			var m api.Market
			if err := c.do(ctx, http.MethodGet, "/v1/market", nil, &m); err != nil {
				return err
			}
			sale := show.Sale{Market: m}
			if cat, _, err := a.loadCatalog(); err == nil {
				sale.Published = published(m, cat)
			} else {
				a.notef("note: what is published of interruptions is left out: %v\n", err)
			}
			if a.json {
				return a.print(sale)
			}
			a.printf("%s", sale.Text(a.place()))
			return nil
		})}
	var file, name, after, machines string
	serve := &cobra.Command{Use: "serve", Short: "Serve a market in the foreground", Args: cobra.NoArgs, Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			signal.Ignore(syscall.SIGHUP)
			trace, err := loadMarket(file)
			if err != nil {
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
			return local.Serve(cmd.Context(), local.Options{
				Dir: a.data, Trace: trace, Name: name, After: begins, Machine: []string{exe, "agent"},
				Machines: machines, Idle: idleAfter + time.Minute, Log: slog.New(slog.NewTextHandler(a.err, nil)),
			})
		}}
	serve.Flags().StringVar(&after, "after", "", "market `time` that a new market begins after")
	serve.Flags().StringVar(&machines, "machines", "", "`folder` of its machines (default: machines in the data folder)")
	serve.Flags().StringVar(&file, "market", "", "market `file`, or calm or stormy")
	serve.Flags().StringVar(&name, "name", "", "`name` of the engine that a new market is (default: as the file has it)")
	cmd.AddCommand(serve, a.marketRecordCmd(), a.marketGenerateCmd(), a.marketImportCmd())
	return cmd
}

// loadMarket reads a market file, or makes a built-in market of this machine's size.
func loadMarket(file string) (market.Trace, error) {
	if file == "" {
		file = "calm"
	}
	if _, err := os.Stat(file); err != nil {
		return market.Builtin(file, runtime.NumCPU(), memory())
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return market.Trace{}, fmt.Errorf("read market: %w", err)
	}
	return marketfile.Parse(file, text)
}

// memory is this machine's, or a guess where it cannot be read.
func memory() size.Bytes {
	text, err := os.ReadFile("/proc/meminfo")
	var kib int64
	if err == nil {
		if _, err := fmt.Sscanf(string(text), "MemTotal: %d kB", &kib); err == nil {
			return size.Bytes(kib) * size.KiB
		}
	}
	return 8 * size.GiB
}

// hideToken puts the machine's bootstrap token aside and starts this program anew without
// it, as the same process: a process' first environment can be read for as long as it lives.
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

func (a *app) agentCmd() *cobra.Command {
	return &cobra.Command{Use: "agent", Short: "Run on a rented machine", Args: cobra.NoArgs, Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := hideToken(); err != nil {
				return err
			}
			ctx, stop := context.WithCancel(context.WithoutCancel(cmd.Context()))
			defer stop()
			signals, hard := make(chan os.Signal, 2), make(chan struct{})
			signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
			go func() { // ends with the process
				<-signals
				stop() // save and leave
				<-signals
				close(hard)
			}()
			err := agent.Run(ctx, agent.Config{
				Server: os.Getenv("SCRIMP_SERVER"), Instance: os.Getenv("SCRIMP_INSTANCE_ID"),
				MachineDir: os.Getenv("SCRIMP_MACHINE_DIR"),
				Metadata: notice.Endpoints{AWS: os.Getenv("AWS_EC2_METADATA_SERVICE_ENDPOINT"), GCE: os.Getenv("GCE_METADATA_HOST"),
					Azure: os.Getenv("SCRIMP_AZURE_METADATA")},
				Environ: os.Environ(), Version: Version, Build: build(),
				Restart: func(path string) error {
					return syscall.Exec(path, append([]string{path}, os.Args[1:]...), os.Environ())
				},
				TaskUser: cmp.Or(os.Getenv("SCRIMP_TASK_USER"), agent.UserAuto), Background: true, Hard: hard,
				Log: slog.New(slog.NewTextHandler(a.err, nil)),
			})
			if errors.Is(err, agent.ErrFenced) {
				return nil
			}
			return err
		}}
}

func (a *app) ledgerCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "ledger", Short: "Verify the ledger", GroupID: groupMoney,
		Long: "The ledger: double entry, append-only, chained by hashes."}
	cmd.AddCommand(&cobra.Command{Use: "verify", Short: "Replay the whole log and prove that the ledger follows from it",
		Args: takes(),
		Long: "Replays every event through the core and compares each posting, each sum and the chain of hashes.\n\nExit " +
			"status: 0 it follows, 1 error, or it does not.",
		RunE: a.with(func(ctx context.Context, c *client, _ []string) error {
			var v api.Verified
			if err := c.do(ctx, http.MethodGet, "/v1/ledger/verify", nil, &v); err != nil {
				return err
			}
			if a.json {
				if err := a.print(v); err != nil {
					return err
				}
			} else {
				a.printf("%s", show.Verified(v, a.place()))
			}
			if !v.OK {
				return exitCode(exitError)
			}
			return nil
		})})
	return cmd
}

func (a *app) schemaCmd() *cobra.Command {
	return &cobra.Command{Use: "schema", Short: "Print the JSON schema of the job file, for editors", Args: takes(),
		GroupID: groupRest,
		Long: "Prints the JSON schema of the job file. Save it and begin a job file with the line # " +
			"yaml-language-server: $schema=FILE, and an editor completes and checks its fields." + plainExit,
		RunE: func(*cobra.Command, []string) error { _, err := a.out.Write(spec.Schema()); return err }}
}
