// Package server is the HTTP side of scrimp: users and agents talk to it, it
// talks to control. It owns the data folder.
package server

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"scrimp/internal/api"
	"scrimp/internal/control"
	"scrimp/internal/core"
	"scrimp/internal/provider/local"
	"scrimp/internal/store"
	"scrimp/internal/store/backup"
)

// Options says where the server lives and when it leaves. Spans are wall time.
type Options struct {
	Dir     string        // data folder; one server each, by lock
	Market  string        // market file, or the name of a built-in one; used when the folder has no market yet
	Idle    time.Duration // leaves when no job lived and nobody asked for that long; 0: stays
	Version string
	Build   string
	Exe     string // the program that machines start; "" is this one
	Log     *slog.Logger
}

// Names of files in the data folder.
const (
	SocketName = "server.sock"
	TokenName  = "token"
	LogName    = "server.log"
)

// Server answers users and agents.
type Server struct {
	opts    Options
	store   store.Store
	control *control.Control
	market  *local.Driver
	clock   local.Clock
	token   string // of the user
	secret  []byte // that agents' tokens are made with
	started time.Time
	stop    context.CancelCauseFunc
	now     atomic.Bool // stop with all machines
	teller  teller

	mu    sync.Mutex
	asked time.Time // when somebody last called
	execs map[string]*execution
	odds  map[string]odds
}

// errStopped is why a server left that was asked to.
var errStopped = errors.New("asked to stop")

// Serve runs a server in the folder until ctx ends, it is asked to stop, or it was idle for long enough.
func Serve(ctx context.Context, o Options) error {
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return fmt.Errorf("open data folder: %w", err)
	}
	st, err := store.Open(o.Dir)
	if err != nil {
		return err
	}
	defer func() { _ = st.Close() }()
	if err := backup.Ready(ctx, st); err != nil {
		return fmt.Errorf("open %s: %w", o.Dir, err)
	}
	s := &Server{opts: o, store: st, started: time.Now(), asked: time.Now(), execs: map[string]*execution{}, odds: map[string]odds{}, teller: newTeller(o.Version, o.Log)}
	if s.token, err = keyFile(filepath.Join(o.Dir, TokenName)); err != nil {
		return err
	}
	agentKey, err := keyFile(filepath.Join(o.Dir, "agent.key"))
	if err != nil {
		return err
	}
	s.secret = []byte(agentKey)
	if err := s.openMarket(ctx); err != nil {
		return err
	}
	s.control, err = control.New(ctx, st, s.market, "local", control.Config{
		Clock: control.Clock{Wall: s.clock.Wall, Market: s.clock.Market, Speed: s.clock.Speed},
		Poll:  poll, Sweep: 20 * time.Second, Silence: 20 * time.Second, Snapshot: 2000, Log: o.Log,
		Env: s.agentEnv, Notify: s.notify,
	})
	if err != nil {
		return err
	}
	untold, err := s.untold()
	if err != nil {
		return err
	}

	ctx, s.stop = context.WithCancelCause(ctx)
	defer s.stop(nil)
	socket := filepath.Join(o.Dir, SocketName)
	_ = os.Remove(socket) // ours by lock; one that was killed leaves it behind
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "unix", socket)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", socket, err)
	}
	if err := os.Chmod(socket, 0o600); err != nil {
		return fmt.Errorf("listen on %s: %w", socket, err)
	}
	h := &http.Server{Handler: s.routes(), ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
	var owned sync.WaitGroup
	owned.Go(func() { _ = h.Serve(l) })
	owned.Go(func() { s.idle(ctx) })
	owned.Go(func() { s.forecast(ctx) })
	for _, n := range untold {
		owned.Go(func() { s.notify(ctx, n) })
	}
	o.Log.Info("serving", "dir", o.Dir, "market", s.clock.Name, "speed", s.clock.Speed)
	err = s.control.Run(ctx)
	s.stop(err)
	down, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if h.Shutdown(down) != nil {
		_ = h.Close()
	}
	owned.Wait()
	if s.now.Load() {
		s.closeMarket(context.WithoutCancel(ctx))
	}
	if errors.Is(err, errStopped) || errors.Is(err, errIdle) || errors.Is(err, context.Canceled) {
		o.Log.Info("leaving", "why", err)
		return nil
	}
	return err
}

// openMarket finds the folder's market, or starts it.
func (s *Server) openMarket(ctx context.Context) error {
	dir := filepath.Join(s.opts.Dir, "market")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("open market: %w", err)
	}
	exe := s.opts.Exe
	if exe == "" {
		self, err := os.Executable()
		if err != nil {
			return fmt.Errorf("open market: %w", err)
		}
		exe = self
	}
	args := []string{"market", "serve", "--data", dir}
	if s.opts.Market != "" {
		args = append(args, "--market", s.opts.Market)
	}
	if err := local.Spawn(ctx, dir, exe, args); err != nil {
		return err
	}
	d, err := local.Dial(dir)
	if err != nil {
		return err
	}
	s.market = d
	s.clock, err = d.Clock(ctx)
	return err
}

// closeMarket gives back every machine and ends the market.
func (s *Server) closeMarket(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	list, err := s.market.List(ctx)
	if err != nil {
		s.opts.Log.Error("machines not listed; they go on", "error", err)
		return
	}
	for _, i := range list {
		if err := s.market.Terminate(ctx, i.ID); err != nil {
			s.opts.Log.Debug("machine is gone already", "instance", i.ID)
		}
	}
	if err := s.market.Stop(ctx); err != nil {
		s.opts.Log.Error("market not stopped", "error", err)
	}
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

// keyFile reads a random key, made at first use and readable by the user alone.
func keyFile(path string) (string, error) {
	b, err := os.ReadFile(path)
	if err == nil && len(b) >= 32 {
		return strings.TrimSpace(string(b)), nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("read key: %w", err)
	}
	key := make([]byte, 32)
	_, _ = rand.Read(key) // it never fails
	text := hex.EncodeToString(key)
	if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("write key: %w", err)
	}
	return text, nil
}

// ticket makes the token that lets an agent do one thing: claim or serve an attempt.
func (s *Server) ticket(what, attempt string) string {
	h := hmac.New(sha256.New, s.secret)
	_, _ = io.WriteString(h, what+"\x00"+attempt)
	return what + "." + attempt + "." + hex.EncodeToString(h.Sum(nil))
}

// bearer returns the attempt that the request's token is for.
func (s *Server) bearer(r *http.Request, what string) (attempt string, ok bool) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return "", false
	}
	rest, ok := strings.CutPrefix(token, what+".")
	if !ok {
		return "", false
	}
	dot := strings.LastIndexByte(rest, '.')
	if dot < 0 {
		return "", false
	}
	attempt = rest[:dot]
	return attempt, hmac.Equal([]byte(token), []byte(s.ticket(what, attempt)))
}

// agentEnv is what the agent of an attempt finds in its environment.
func (s *Server) agentEnv(attempt string) map[string]string {
	return map[string]string{
		"SCRIMP_SERVER": "unix://" + filepath.Join(s.opts.Dir, SocketName),
		"SCRIMP_TOKEN":  s.ticket("claim", attempt),
	}
}

// problem answers with an error as RFC 9457 has it.
func problem(w http.ResponseWriter, status int, title, mend string, err error) {
	p := api.Problem{Title: title, Status: status, Mend: mend}
	if err != nil {
		p.Detail = err.Error()
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(p)
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// read decodes a request's body of at most limit bytes.
func read[T any](w http.ResponseWriter, r *http.Request, limit int64) (T, bool) {
	var v T
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, limit))
	if err := d.Decode(&v); err != nil {
		problem(w, http.StatusBadRequest, "the request is not the JSON that is wanted here", "send what the API describes", err)
		return v, false
	}
	return v, true
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	user := func(pattern string, h http.HandlerFunc) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
			if !hmac.Equal([]byte(token), []byte(s.token)) {
				problem(w, http.StatusUnauthorized, "no valid token", "the token stands in the file token of the data folder", nil)
				return
			}
			s.mu.Lock()
			s.asked = time.Now()
			s.mu.Unlock()
			h(w, r)
		})
	}
	user("GET /v1/server", s.getServer)
	user("POST /v1/server/stop", s.postStop)
	user("GET /v1/market", s.getMarket)
	user("GET /v1/history", s.getHistory)
	user("POST /v1/jobs", s.postJob)
	user("GET /v1/jobs", s.getJobs)
	user("GET /v1/jobs/{id}", s.getJob)
	user("GET /v1/jobs/{id}/watch", s.watchJob)
	user("POST /v1/jobs/{id}/end", s.postEnd)
	user("GET /v1/jobs/{id}/log", s.getLog)
	user("GET /v1/jobs/{id}/receipt", s.getReceipt)
	user("GET /v1/jobs/{id}/spec", s.getSpec)
	user("GET /v1/jobs/{id}/explain", s.getExplain)
	user("POST /v1/jobs/{id}/exec", s.postExec)
	user("GET /v1/ledger/verify", s.getVerify)
	mux.HandleFunc("POST /v1/agent/claim", s.agentClaim)
	mux.HandleFunc("POST /v1/agent/report", s.agentReport)
	mux.HandleFunc("POST /v1/agent/logs", s.agentLogs)
	mux.HandleFunc("GET /v1/agent/logs", s.agentLogEnd)
	mux.HandleFunc("POST /v1/agent/exec/{id}", s.agentExec)
	return mux
}
