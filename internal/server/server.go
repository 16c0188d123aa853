// Package server is the HTTP side of scrimp: users and agents talk to it, it
// talks to control. It owns the data folder.
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

	"scrimp/internal/api/signed"
	"scrimp/internal/control"
	"scrimp/internal/core"
	"scrimp/internal/engine"
	"scrimp/internal/identity"
	"scrimp/internal/server/secret"
	"scrimp/internal/server/webhook"
	"scrimp/internal/store"
	"scrimp/internal/store/backup"
	"scrimp/internal/wait"
)

// Options says where the server lives, who may reach it, and when it leaves. Spans are wall time.
type Options struct {
	Dir      string        // data folder; one server each, by lock; with DB the replicas share it
	DB       string        // postgres://…; "" is SQLite in the data folder
	Market   string        // market file, or the name of a built-in one; for a local engine that has none yet
	Idle     time.Duration // leaves when no job lived and nobody asked for that long; 0: stays
	Listen   string        // host:port beside the socket; "" for none
	TLSCert  string        // files in PEM; "" for plain HTTP
	TLSKey   string
	Insecure bool // plain HTTP on an address that others reach
	Rate     int  // requests a second of one token; 0: 500
	Running  int  // jobs that hold a machine at once; 0: 4
	// HookHosts are those inside the server's network, HOST or HOST:PORT, that webhooks
	// may be on where several people share the server.
	HookHosts []string
	LogLimit  int64             // bytes of output kept of one attempt; 0: 1 GiB
	Ready     func(addr string) // told where Listen answers, once
	Version   string
	Build     string
	Exe       string // the program that machines start; "" is this one
	// Kinds opens the engines of each kind that this program has.
	Kinds map[string]engine.Opener
	Log   *slog.Logger
}

// Names of files in the data folder.
const (
	SocketName = "server.sock"
	TokenName  = "token"
	LogName    = "server.log"
	// ElsewhereName marks a folder whose log lies in PostgreSQL: a server that
	// knew nothing of it would begin an empty one beside it.
	ElsewhereName = "log-is-in-postgresql"
)

// Server answers users and agents. It runs as long as it leads.
type Server struct {
	opts    Options
	store   store.Replica
	listens string // URL of the address that it listens on; "": on none
	control *control.Control
	engines []engine.Engine
	clock   engine.Clock // that all times are by
	token   string       // of who holds the data folder
	secret  []byte       // that agents' tokens are made with
	started time.Time
	stop    context.CancelCauseFunc
	now     atomic.Bool // stop with all machines
	hooks   webhook.Sender
	pace    *pace
	logPace *pace // in bytes, of an attempt
	allPace *pace // in bytes, of all attempts
	metrics *metrics
	feed    *feed
	streams streams
	seen    signed.Seen
	moves   streams // contents on their way to agents and from them
	kept    blobs
	disk    disk
	ready   readiness
	wide    bool // serves others too, in the foreground

	mu      sync.Mutex
	asked   time.Time // when somebody last called
	execs   map[string]*execution
	odds    map[string]odds
	busy    map[string]chan struct{} // names and keys of submissions in work
	numbers map[string]int           // by name of a job: the lowest number that may be free
	skipped map[string]int64         // by attempt: output that is not kept, since there is too much of it
	// by warning of a limit: those that no webhook has taken; of the goroutine that looks at the limits
	owed map[string]owed

	spent spent

	setting sync.Mutex  // held while limits are changed
	ruled   atomic.Bool // what a release before kept of budgets is taken into the log

	people  sync.RWMutex // guards what follows; changes are made one after the other
	book    *identity.Book
	revised chan struct{} // closed at the next change of the book
}

// errStopped is why a server left that was asked to.
var errStopped = errors.New("asked to stop")

// Serve runs a server in the folder until ctx ends, it is asked to stop, or it was idle for long enough.
// Of several on one database one leads; the others wait, and take over.
func Serve(ctx context.Context, o Options) error {
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return fmt.Errorf("open data folder: %w", err)
	}
	elsewhere := filepath.Join(o.Dir, ElsewhereName)
	if _, err := os.Stat(elsewhere); o.DB == "" && err == nil {
		return fmt.Errorf("the log of %s lies in PostgreSQL: start scrimp serve with --db, or take another folder with "+
			"--data", o.Dir)
	}
	f := &front{pace: newPace(o.Rate)}
	done, err := f.listen(ctx, o)
	if err != nil {
		return err
	}
	defer done()
	if o.DB == "" {
		st, err := store.Open(o.Dir)
		if err != nil {
			return err
		}
		return lead(ctx, o, st, f)
	}
	for joined := false; ; {
		err := follow(ctx, o, f, &joined)
		switch {
		case err == nil, ctx.Err() != nil:
			return err
		case errors.Is(err, store.ErrDeposed), errors.Is(err, store.ErrConflict):
			o.Log.Warn("another server leads; following", "error", err)
		case joined && store.Away(err): // it was there, and comes back: nobody else may be left to lead then
			o.Log.Warn("the database does not answer; asking again", "error", err)
			if err := wait.For(ctx, time.Second); err != nil {
				return nil //nolint:nilerr // asked to leave
			}
		default:
			return err
		}
	}
}

// follow waits for the lead of the database, and leads. It sets joined when it
// has found the database.
func follow(ctx context.Context, o Options, f *front, joined *bool) error {
	st, err := store.OpenPostgres(ctx, store.DefaultPostgres(o.DB, o.Dir))
	if err != nil {
		return err
	}
	*joined = true
	// now that there is one: a slip in its address binds the folder to nothing
	if err := os.WriteFile(filepath.Join(o.Dir, ElsewhereName), nil, 0o600); err != nil {
		_ = st.Close()
		return fmt.Errorf("open data folder: %w", err)
	}
	o.Log.Info("waiting to lead", "dir", o.Dir)
	if err := st.Lead(ctx); err != nil {
		_ = st.Close()
		if ctx.Err() != nil { // asked to leave while it waited
			return nil
		}
		return err
	}
	o.Log.Info("leading", "epoch", st.Epoch())
	return lead(ctx, o, st, f)
}

// lead serves from a store that this server alone writes to, and closes it.
func lead(ctx context.Context, o Options, st store.Replica, f *front) error {
	defer func() { _ = st.Close() }()
	if err := backup.Ready(ctx, st); err != nil {
		return fmt.Errorf("open %s: %w", o.Dir, err)
	}
	s := newServer(o, st, f)
	if err := s.begin(ctx); err != nil {
		return err
	}
	unsent, err := s.unsent()
	if err != nil {
		return err
	}
	unasked, err := s.unasked()
	if err != nil {
		return err
	}

	ctx, s.stop = context.WithCancelCause(ctx)
	defer s.stop(nil)
	l, err := s.socket(ctx)
	if err != nil {
		return err
	}
	s.metrics.reg.MustRegister(s)
	routes := s.routes()
	h := s.local(ctx, routes)
	var owned sync.WaitGroup
	owned.Go(func() { _ = h.Serve(l) })
	s.work(ctx, &owned)
	owned.Go(func() { s.tellOld(ctx, append(unsent, unasked...)) })
	f.open(ctx, routes)
	o.Log.Info("serving", "dir", o.Dir, "engines", len(s.engines), "market", s.clock.Name, "speed", s.clock.Speed)
	err = s.control.Run(ctx)
	s.stop(err)
	f.close()
	down, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if h.Shutdown(down) != nil {
		_ = h.Close()
	}
	owned.Wait()
	if s.now.Load() {
		s.closeEngines(context.WithoutCancel(ctx))
	}
	if errors.Is(err, errStopped) || errors.Is(err, errIdle) || errors.Is(err, context.Canceled) {
		o.Log.Info("ending", "why", err)
		return nil
	}
	return err
}

// newServer is a server that has read nothing yet.
func newServer(o Options, st store.Replica, f *front) *Server {
	s := &Server{
		opts: o, store: st, listens: f.address, started: time.Now(), asked: time.Now(),
		execs: map[string]*execution{}, odds: map[string]odds{},
		busy: map[string]chan struct{}{}, numbers: map[string]int{}, skipped: map[string]int64{},
		pace: f.pace, logPace: newPace(logRate), allPace: newPace(allLogRate),
		metrics: newMetrics(), seen: signed.Seen{Since: time.Now()},
		wide: o.Idle == 0, book: identity.NewBook(), revised: make(chan struct{}),
	}
	s.hooks = webhook.NewSender(o.Version, !s.wide, o.HookHosts, o.Log)
	s.feed = newFeed(s)
	return s
}

// begin reads the keys, the users and the log, and opens the engines.
func (s *Server) begin(ctx context.Context) (err error) {
	if s.token, err = secret.KeyFile(filepath.Join(s.opts.Dir, TokenName)); err != nil {
		return err
	}
	agentKey, err := secret.KeyFile(filepath.Join(s.opts.Dir, "agent.key"))
	if err != nil {
		return err
	}
	s.secret = []byte(agentKey)
	if err := s.readBook(ctx); err != nil {
		return err
	}
	if err := s.openEngines(ctx); err != nil {
		return err
	}
	s.control, err = control.New(ctx, s.store, s.engines, control.Config{
		Clock: s.clock, Silence: 20 * time.Second, Snapshot: 2000, Log: s.opts.Log,
		Env: s.agentEnv, Notify: s.notify, Leads: s.store.Leads, Running: s.opts.Running,
	})
	return err
}

// local answers on the socket of the data folder.
func (s *Server) local(ctx context.Context, routes http.Handler) *http.Server {
	return &http.Server{
		Handler: routes, ReadHeaderTimeout: readHeader, IdleTimeout: idleConnection, MaxHeaderBytes: maxHeader,
		ErrorLog: newThrottled(s.opts.Log), BaseContext: func(net.Listener) context.Context { return ctx },
		ConnContext: func(ctx context.Context, _ net.Conn) context.Context {
			return context.WithValue(ctx, socketKey{}, true)
		},
	}
}

// work begins what goes on beside the answers, until ctx ends.
func (s *Server) work(ctx context.Context, owned *sync.WaitGroup) {
	owned.Go(func() { s.idle(ctx) })
	owned.Go(func() { s.forecast(ctx) })
	owned.Go(func() { s.keepEngines(ctx) })
	owned.Go(func() { s.guardBudgets(ctx) })
	owned.Go(func() { s.keepSpent(ctx) })
	owned.Go(func() {
		select {
		case <-s.store.Deposed():
			s.stop(store.ErrDeposed)
		case <-ctx.Done():
		}
	})
}

// socket listens in the data folder, for its owner and for agents on this machine.
func (s *Server) socket(ctx context.Context) (net.Listener, error) {
	path := filepath.Join(s.opts.Dir, SocketName)
	_ = os.Remove(path) // ours by lock; one that was killed leaves it behind
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	if u, ok := l.(*net.UnixListener); ok {
		u.SetUnlinkOnClose(false) // the next leader's may lie there already
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	return l, nil
}

var errIdle = errors.New("idle")

// idle ends the server when nothing lives and nobody asks.
func (s *Server) idle(ctx context.Context) {
	if s.opts.Idle <= 0 {
		return
	}
	t := time.NewTicker(min(s.opts.Idle, 10*time.Second))
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		quiet := false
		s.control.Read(func(m *core.Machine) { quiet = m.Quiet() })
		s.mu.Lock()
		if !quiet {
			s.asked = time.Now()
		}
		long := time.Since(s.asked) >= s.opts.Idle
		s.mu.Unlock()
		if quiet && long {
			s.stop(errIdle)
			return
		}
	}
}
