// Package server is the HTTP side of scrimp: it answers users and agents, and passes their requests to control.
// It owns the data folder.
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"scrimp/internal/control"
	"scrimp/internal/engine"
	"scrimp/internal/lib/wait"
	"scrimp/internal/market/marketfile"
	"scrimp/internal/server/agents"
	"scrimp/internal/server/anomalies"
	"scrimp/internal/server/artifacts"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/bills"
	"scrimp/internal/server/budgets"
	"scrimp/internal/server/diagnosis"
	"scrimp/internal/server/disk"
	"scrimp/internal/server/exports"
	"scrimp/internal/server/forecast"
	"scrimp/internal/server/groups"
	"scrimp/internal/server/jobs"
	"scrimp/internal/server/jobs/exec"
	"scrimp/internal/server/jobs/output"
	"scrimp/internal/server/jobs/update"
	"scrimp/internal/server/joining"
	"scrimp/internal/server/keymutex"
	"scrimp/internal/server/listener"
	"scrimp/internal/server/mailer"
	"scrimp/internal/server/metrics"
	"scrimp/internal/server/oidc"
	"scrimp/internal/server/openapi"
	"scrimp/internal/server/outbox"
	"scrimp/internal/server/people"
	"scrimp/internal/server/planning"
	"scrimp/internal/server/proposals"
	"scrimp/internal/server/receipts"
	"scrimp/internal/server/reports"
	"scrimp/internal/server/retention"
	"scrimp/internal/server/savings"
	"scrimp/internal/server/searches"
	"scrimp/internal/server/secret"
	"scrimp/internal/server/submit"
	"scrimp/internal/server/telemetry"
	"scrimp/internal/server/webhook"
	"scrimp/internal/server/workblob"
	"scrimp/internal/server/workdir"
	"scrimp/internal/store"
	"scrimp/internal/store/backup"
	"scrimp/internal/store/postgres"
	"scrimp/internal/view"
	"scrimp/internal/view/projection"
	"scrimp/internal/wire/httpsig"
)

// Options configures a server: its data folder, who may reach it and when it stops. Durations are wall time.
type Options struct {
	Dir      string        // data folder; a lock admits one server; with DB the replicas share it
	DB       string        // postgres://…; "" is SQLite in the data folder
	Engines  string        // file that lists the engines; "": the one in the data folder
	Market   string        // market file or name of a built-in one, for a local engine without a market
	Idle     time.Duration // stops after this time without live jobs or requests; 0: never
	Listen   string        // host:port to listen on besides the socket; "": none
	Ends     bool          // started only to terminate all machines, which need not reach it
	TLSCert  string        // files in PEM; "" for plain HTTP
	TLSKey   string
	Insecure bool // allows plain HTTP on an address that other hosts reach
	Rate     int  // requests per second of one user, machine or attempt; 0: 500
	Running  int  // jobs that hold a machine at once; 0: 4
	// PreemptAfter is how long a program runs before a critical job may preempt it; 0: 10 minutes.
	PreemptAfter time.Duration
	// AdminToken is a file with the token of the user admin; empty: the server gives admin no token.
	AdminToken string
	OIDC       oidc.Settings // the identity provider that signs people in to the dashboard
	// HookHosts lists hosts inside the server's network, HOST or HOST:PORT, that webhooks of a shared server may
	// call.
	HookHosts []string
	// Stores lists the addresses of stores that job files of a shared server may name in checkpoint.store.
	Stores   []string
	LogLimit int64             // bytes of output kept of one attempt; 0: 1 GiB
	Ready    func(addr string) // called once with the address of Listen
	Version  string
	Build    string
	Exe      string // the program that machines start; "" is this executable
	// Retain is how long a job's work folder, output and older checkpoints are kept after its end; 0: 90 days, below
	// 0: for ever. RetainOutputs is the same for its outputs and its newest checkpoint; 0: for ever.
	Retain, RetainOutputs time.Duration
	// Kinds holds the opener of each kind of engine that this program has.
	Kinds map[string]engine.Opener
	Log   *slog.Logger
	// Replace ends a server that a command started in the folder; nil: a server that has the folder is an error.
	Replace func(context.Context) error
	// Mail names the mail server for e-mail to users; zero: the server sends none.
	Mail mailer.Settings

	umask string // previous umask, for the processes that engines start; "": that of this process
}

// Names of files in the data folder.
const (
	SocketName = "server.sock"
	TokenName  = "token"
	LogName    = "server.log"
	// ServedName is the file with the settings of the newest scrimp serve.
	ServedName = "serve.json"
	// ElsewhereName marks a folder with its log in PostgreSQL. Without the mark, a server started without --db
	// would create an empty log beside it.
	ElsewhereName = "log-is-in-postgresql"
)

// Server answers users and agents while it leads.
type Server struct {
	opts      Options
	store     store.Replica
	listens   string // URL of the address that it listens on; "": none
	control   *control.Control
	engines   []engine.Engine
	clock     engine.Clock // the clock of all times
	gate      *auth.Gate
	people    *people.Service
	provider  *oidc.Provider // nil: none
	started   time.Time
	stop      context.CancelCauseFunc
	now       atomic.Bool // stop terminates all machines, too
	hooks     webhook.Sender
	stores    artifacts.Stores
	logPace   *auth.Pace // bytes of output of an attempt
	allPace   *auth.Pace // bytes of output of all attempts
	metrics   *metrics.Metrics
	moves     auth.Streams // transfers to and from agents
	disk      disk.Room
	openAPI   openapi.Document
	reserve   disk.Reserve
	turns     keymutex.Turns
	follower  *projection.Follower
	view      *view.View
	bills     *bills.Service
	exports   *exports.Fetcher
	books     *reports.Books
	receipts  *receipts.Service
	savings   *savings.Service
	anomalies *anomalies.Service
	proposals *proposals.Service
	budgets   *budgets.Service
	kept      *artifacts.Kept
	agents    *agents.Service
	jobs      *jobs.Service
	output    *output.Service
	update    *update.Service
	exec      *exec.Service
	groups    *groups.Service
	searches  *searches.Service
	submit    *submit.Service
	outbox    *outbox.Outbox
	odds      forecast.Forecaster
	folders   *workdir.Store
	workBlobs *workblob.Blobs
	old       *retention.Service
	quota     *retention.Quota
	telemetry *telemetry.Service
	uploads   *workdir.Uploads
	dashboard dashboard
	planning  *planning.Service
	diagnosis *diagnosis.Service
	ready     readiness
	joining   *joining.Service
	closed    chan struct{} // closed when the server needs its joined machines no longer
	wide      bool          // shared server: serves other users too, in the foreground

	mu    sync.Mutex
	asked time.Time // time of the latest request
}

// Serve runs a server in the folder until ctx ends, a user stops it, or it has been idle for the idle time. Of
// several servers on one database, one leads; the others wait and take over.
func Serve(ctx context.Context, o Options) error {
	if o.Market != "" { // a folder of a market that cannot be read would later get another
		if _, err := marketfile.Load(o.Market); err != nil {
			return err
		}
	}
	if _, err := artifacts.NewStores(false, o.Stores, o.Dir); err != nil {
		return err
	}
	if _, err := mailer.New(o.Mail, o.Log); err != nil {
		return err
	}
	provider, err := oidc.New(o.OIDC, time.Now, o.Log)
	if err == nil {
		err = provider.Check(ctx)
	}
	if err != nil {
		return err
	}
	o.umask = restrictUmask()
	defer restoreUmask(o.umask)
	if err := prepareFolder(&o); err != nil {
		return err
	}
	st, err := openFree(ctx, &o) // before anybody is told that it serves: another server may have the folder
	if err != nil {
		return err
	}
	f, pace := &listener.Front{}, auth.NewPace(o.Rate)
	done, err := f.Listen(ctx, listener.Options{Listen: o.Listen, Cert: o.TLSCert, Key: o.TLSKey, Insecure: o.Insecure,
		Ready: o.Ready, Log: o.Log})
	if err != nil {
		if st != nil {
			err = errors.Join(err, st.Close())
		}
		return err
	}
	defer done()
	if st != nil {
		return lead(ctx, o, st, f, pace)
	}
	for joined := false; ; {
		err := follow(ctx, o, f, pace, &joined)
		switch {
		case err == nil, ctx.Err() != nil:
			return err
		case errors.Is(err, store.ErrDeposed), errors.Is(err, store.ErrConflict):
			o.Log.Warn("another server leads; following", "error", err)
		case joined && postgres.Away(err): // it may return; if every replica gave up, none could lead
			o.Log.Warn("the database does not answer; asking again", "error", err)
			if err := wait.For(ctx, time.Second); err != nil {
				return nil //nolint:nilerr // told to stop
			}
		default:
			return err
		}
	}
}

// follow waits until this server may lead the database, then leads. It sets joined once it has reached the
// database.
func follow(ctx context.Context, o Options, f *listener.Front, pace *auth.Pace, joined *bool) error {
	st, err := postgres.Open(ctx, postgres.Default(o.DB, o.Dir))
	if err != nil {
		return err
	}
	*joined = true
	// Only now that the database has answered: a mistyped address must not bind the folder to PostgreSQL.
	if err := os.WriteFile(filepath.Join(o.Dir, ElsewhereName), nil, 0o600); err != nil {
		_ = st.Close()
		return fmt.Errorf("open data folder: %w", err)
	}
	o.Log.Info("waiting to lead", "dir", o.Dir)
	if err := st.Lead(ctx); err != nil {
		_ = st.Close()
		if ctx.Err() != nil { // told to stop while waiting
			return nil
		}
		return err
	}
	o.Log.Info("leading", "epoch", st.Epoch())
	return lead(ctx, o, st, f, pace)
}

// lead serves from a store that this server alone writes to, and closes it at the end.
func lead(ctx context.Context, o Options, st store.Replica, f *listener.Front, pace *auth.Pace) error {
	defer func() { _ = st.Close() }()
	if err := backup.Ready(ctx, st); err != nil {
		return fmt.Errorf("open %s: %w", o.Dir, err)
	}
	s := newServer(o, st, f.Address, pace)
	defer close(s.closed)
	if err := s.begin(ctx); err != nil {
		return err
	}
	unsent, err := s.outbox.Unsent()
	if err != nil {
		return err
	}
	unasked, err := s.outbox.Unasked()
	if err != nil {
		return err
	}
	ctx, s.stop = context.WithCancelCause(ctx)
	defer s.stop(nil)
	l, err := s.socket(ctx)
	if err != nil {
		return err
	}
	routes := s.routes()
	h := s.local(ctx, routes)
	var owned sync.WaitGroup
	owned.Go(func() { _ = h.Serve(l) })
	s.work(ctx, &owned)
	owned.Go(func() { s.outbox.TellOld(ctx, append(unsent, unasked...)) })
	f.Open(ctx, routes)
	o.Log.Info("serving", "dir", o.Dir, "engines", len(s.engines), "market", s.clock.Name, "speed", s.clock.Speed)
	err = s.control.Run(ctx)
	s.stop(err)
	f.Close()
	down, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if h.Shutdown(down) != nil {
		_ = h.Close()
	}
	owned.Wait()
	if s.now.Load() {
		s.closeEngines(context.WithoutCancel(ctx))
	}
	// A full disk is no failure of a stop: agents report again what this server could not write.
	full := errors.Is(err, store.ErrFull) && errors.Is(context.Cause(ctx), errStopped)
	if full || errors.Is(err, errStopped) || errors.Is(err, errIdle) || errors.Is(err, context.Canceled) {
		o.Log.Info("ending", "why", err)
		return nil
	}
	return err
}

// newServer returns a server that has not read the log yet.
func newServer(o Options, st store.Replica, address string, pace *auth.Pace) *Server {
	s := &Server{
		opts: o, store: st, listens: address, started: time.Now(), asked: time.Now(),
		logPace: auth.NewPace(agents.LogRate), allPace: auth.NewPace(agents.AllLogRate),
		closed: make(chan struct{}), metrics: metrics.New(), wide: o.Idle == 0, disk: disk.Of(o.Dir),
	}
	s.follower = projection.New(st, o.Log, view.Projections()...)
	s.view = view.New(st, s.follower)
	s.openAPI.Make = func() []byte { return OpenAPI(o.Version) }
	s.reserve = disk.Reserve{Dir: o.Dir, Room: s.disk}
	s.gate = &auth.Gate{Dir: o.Dir, Pace: pace, Log: o.Log, Asked: s.noteRequest, Seen: httpsig.Seen{Since: time.Now()},
		Limits: auth.NewLimits(pace, o.Log, s.metrics.RefusedBy)}
	s.stores, _ = artifacts.NewStores(!s.wide, o.Stores, o.Dir) // Serve has reported the errors
	s.provider, _ = oidc.New(o.OIDC, time.Now, o.Log)           // here, too
	s.openOutbox(address)
	return s
}

// begin reads the keys, the users and the log, and opens the engines.
func (s *Server) begin(ctx context.Context) (err error) {
	if s.gate.Owner, err = secret.KeyFile(filepath.Join(s.opts.Dir, TokenName)); err != nil {
		return err
	}
	agentKey, err := secret.KeyFile(filepath.Join(s.opts.Dir, "agent.key"))
	if err != nil {
		return err
	}
	s.gate.Tickets = auth.Tickets(agentKey)
	if s.gate.People, err = auth.ReadPeople(ctx, s.store); err != nil {
		return err
	}
	if err := s.openEngines(ctx); err != nil {
		return err
	}
	s.control, err = control.New(ctx, s.store, s.engines, control.Config{
		Dir: s.opts.Dir, Clock: s.clock, Silence: 20 * time.Second, Snapshot: 2000, Log: s.opts.Log,
		Env: s.agentEnv, Notify: s.outbox.Notify, Leads: s.store.Leads, Running: s.opts.Running,
		PreemptAfter: s.opts.PreemptAfter, Archive: s.view, Relieve: s.releaseReserve, Ends: s.opts.Ends, Resolve: s.resolve,
	})
	if err != nil {
		return err
	}
	s.buildHandlers()
	return s.folders.Recover()
}

// local returns the HTTP server for the socket of the data folder.
func (s *Server) local(ctx context.Context, routes http.Handler) *http.Server {
	h := listener.Server(routes, s.opts.Log)
	h.BaseContext = func(net.Listener) context.Context { return ctx }
	h.ConnContext = func(ctx context.Context, _ net.Conn) context.Context { return auth.OnSocket(ctx) }
	return h
}

// work starts the background tasks, which run until ctx ends.
func (s *Server) work(ctx context.Context, owned *sync.WaitGroup) {
	runTasks(ctx, owned, s.opts.Log, map[string]func(context.Context){
		"idle": s.idle, "odds": s.odds.Run, "engines": s.keepEngines, "budgets": s.budgets.Guard, "view": s.follower.Follow,
		"costs": s.books.Follow, "old files": s.old.Run, "work folders": s.workBlobs.Run, "reserve": s.keepReserve,
		"admin":     func(ctx context.Context) { s.people.KeepAdmin(ctx, s.opts.AdminToken) },
		"dashboard": s.runDashboard, "expected troubles": s.outbox.Foresee,
		"weekly reports": s.outbox.ReportWeeks, "exported bills": s.exports.Run, "anomalies": s.anomalies.Watch,
		"memory": s.collect,
	})
	owned.Go(func() {
		select {
		case <-s.store.Deposed():
			s.stop(store.ErrDeposed)
		case <-ctx.Done():
		}
	})
}
