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
	"scrimp/internal/server/agents"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/books"
	"scrimp/internal/server/budgets"
	"scrimp/internal/server/disk"
	"scrimp/internal/server/forecast"
	"scrimp/internal/server/front"
	"scrimp/internal/server/jobs"
	"scrimp/internal/server/kept"
	"scrimp/internal/server/outbox"
	"scrimp/internal/server/people"
	"scrimp/internal/server/secret"
	"scrimp/internal/server/submit"
	"scrimp/internal/server/turn"
	"scrimp/internal/server/webhook"
	"scrimp/internal/server/workdir"
	"scrimp/internal/store"
	"scrimp/internal/store/backup"
	"scrimp/internal/view"
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
	gate    *auth.Gate
	people  *people.Desk
	started time.Time
	stop    context.CancelCauseFunc
	now     atomic.Bool // stop with all machines
	hooks   webhook.Sender
	logPace *auth.Pace // in bytes, of an attempt
	allPace *auth.Pace // in bytes, of all attempts
	metrics *metrics
	moves   auth.Streams // contents on their way to agents and from them
	disk    disk.Room
	turns   turn.Turns
	view    *view.View
	books   *books.Books
	budgets *budgets.Desk
	kept    *kept.Kept
	agents  *agents.Desk
	jobs    *jobs.Desk
	submit  *submit.Desk
	outbox  *outbox.Outbox
	odds    forecast.Forecaster
	uploads *workdir.Uploads
	ready   readiness
	wide    bool // serves others too, in the foreground

	mu    sync.Mutex
	asked time.Time // when somebody last called
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
	f, pace := &front.Front{}, auth.NewPace(o.Rate)
	done, err := f.Listen(ctx, front.Options{Listen: o.Listen, Cert: o.TLSCert, Key: o.TLSKey, Insecure: o.Insecure,
		Ready: o.Ready, Log: o.Log})
	if err != nil {
		return err
	}
	defer done()
	if o.DB == "" {
		st, err := store.Open(o.Dir)
		if err != nil {
			return err
		}
		return lead(ctx, o, st, f, pace)
	}
	for joined := false; ; {
		err := follow(ctx, o, f, pace, &joined)
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
func follow(ctx context.Context, o Options, f *front.Front, pace *auth.Pace, joined *bool) error {
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
	return lead(ctx, o, st, f, pace)
}

// lead serves from a store that this server alone writes to, and closes it.
func lead(ctx context.Context, o Options, st store.Replica, f *front.Front, pace *auth.Pace) error {
	defer func() { _ = st.Close() }()
	if err := backup.Ready(ctx, st); err != nil {
		return fmt.Errorf("open %s: %w", o.Dir, err)
	}
	s := newServer(o, st, f.Address, pace)
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
	s.metrics.reg.MustRegister(s)
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
	if errors.Is(err, errStopped) || errors.Is(err, errIdle) || errors.Is(err, context.Canceled) {
		o.Log.Info("ending", "why", err)
		return nil
	}
	return err
}

// newServer is a server that has read nothing yet.
func newServer(o Options, st store.Replica, address string, pace *auth.Pace) *Server {
	s := &Server{
		opts: o, store: st, listens: address, started: time.Now(), asked: time.Now(),
		logPace: auth.NewPace(agents.LogRate), allPace: auth.NewPace(agents.AllLogRate),
		metrics: newMetrics(), wide: o.Idle == 0, disk: disk.Of(o.Dir), view: view.New(st, o.Log),
	}
	s.gate = &auth.Gate{Pace: pace, Log: o.Log, Asked: s.wasAsked, Seen: signed.Seen{Since: time.Now()}}
	s.hooks = webhook.NewSender(o.Version, !s.wide, o.HookHosts, o.Log)
	s.outbox = &outbox.Outbox{Turns: &s.turns, Vault: s.vault(), Hooks: s.hooks, Dir: o.Dir, Log: o.Log}
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
		Clock: s.clock, Silence: 20 * time.Second, Snapshot: 2000, Log: s.opts.Log,
		Env: s.agentEnv, Notify: s.outbox.Notify, Leads: s.store.Leads, Running: s.opts.Running,
		Archive: s.view,
	})
	if err == nil {
		s.furnish()
	}
	return err
}

// furnish makes what answers requests, once there is a log.
func (s *Server) furnish() {
	s.gate.Control, s.outbox.Control = s.control, s.control
	s.people = &people.Desk{Gate: s.gate, Log: s.store}
	s.view.On(s.control)
	s.books = &books.Books{Control: s.control, Log: s.store, View: s.view, Errors: s.opts.Log}
	s.budgets = &budgets.Desk{Gate: s.gate, Control: s.control, Meta: s.store, Hooks: s.hooks, Log: s.opts.Log,
		Spent: s.books.Under}
	s.kept = &kept.Kept{Gate: s.gate, Control: s.control, Turns: &s.turns, Dir: s.opts.Dir}
	s.agents = &agents.Desk{
		Gate: s.gate, Control: s.control, Log: s.store, Dir: s.opts.Dir, Room: s.disk, Vault: s.vault(),
		Build: s.opts.Build, Exe: s.opts.Exe, LogLimit: s.opts.LogLimit, Errors: s.opts.Log,
		Printed: func(bytes int) { s.metrics.output.Add(float64(bytes)) },
		Moves:   &s.moves, Pace: s.logPace, AllPace: s.allPace,
	}
	s.uploads = &workdir.Uploads{Dir: s.opts.Dir, Room: s.disk}
	s.odds.Control = s.control
	s.jobs = jobs.New(jobs.Desk{Gate: s.gate, Control: s.control, Log: s.store, Turns: &s.turns, Vault: s.vault(),
		Odds: &s.odds, Settled: s.budgets.Settled, Exec: s.agents.Exec})
	s.submit = &submit.Desk{
		Gate: s.gate, Control: s.control, Log: s.store, LogHere: s.opts.DB == "", Dir: s.opts.Dir, Room: s.disk,
		Turns: &s.turns, Vault: s.vault(), Hooks: s.hooks, Uploads: s.uploads, Kept: s.kept, Jobs: s.jobs,
		Settled: s.budgets.Settled, Forget: s.outbox.Forget,
	}
}

// local answers on the socket of the data folder.
func (s *Server) local(ctx context.Context, routes http.Handler) *http.Server {
	h := front.Server(routes, s.opts.Log)
	h.BaseContext = func(net.Listener) context.Context { return ctx }
	h.ConnContext = func(ctx context.Context, _ net.Conn) context.Context { return auth.OnSocket(ctx) }
	return h
}

// work begins what goes on beside the answers, until ctx ends.
func (s *Server) work(ctx context.Context, owned *sync.WaitGroup) {
	owned.Go(func() { s.idle(ctx) })
	owned.Go(func() { s.odds.Run(ctx) })
	owned.Go(func() { s.keepEngines(ctx) })
	owned.Go(func() { s.budgets.Guard(ctx) })
	owned.Go(func() { s.view.Follow(ctx) })
	owned.Go(func() { s.books.Follow(ctx) })
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

// wasAsked notes that somebody asks.
func (s *Server) wasAsked() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = time.Now()
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

func (s *Server) vault() secret.Vault { return secret.Vault{Dir: s.opts.Dir} }
