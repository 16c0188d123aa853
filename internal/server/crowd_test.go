package server_test

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"scrimp/internal/agent/wire"
	"scrimp/internal/engine"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/lib/wait"
	"scrimp/internal/market"
	"scrimp/internal/test/must"
	"scrimp/internal/wire/api"
	"scrimp/internal/wire/httpsig"
)

// crowd is a market whose machines are goroutines: each pulls its task over TCP with the token of its launch, and
// sends what an agent sends, as often as an agent does. Only the programs are missing.
type crowd struct {
	tb      testing.TB
	address string // of the server
	began   time.Time
	offer   market.Offer
	waits   waits
	agents  sync.WaitGroup
	ctx     context.Context //nolint:containedctx // the lifetime of the machines

	mu      sync.Mutex
	list    []*engine.Instance
	ends    map[string]context.CancelFunc
	claimed int
	exe     string // the executable, and a folder for real machines
	dir     string
	loud    []*loudMachine
	failed  atomic.Int32
}

// loudMachine is a real agent with a real program.
type loudMachine struct {
	key, dir string
	cmd      *exec.Cmd
}

// tell describes what happened to its output, and the resources that it and its agent use.
func (l *loudMachine) tell(tb testing.TB, data string) string {
	tb.Helper()
	var printed, onDisk int64
	_ = filepath.WalkDir(l.dir, func(path string, _ os.DirEntry, _ error) error { // the output is the large part
		if st, err := os.Stat(path); err == nil && !st.IsDir() {
			printed = max(printed, st.Size())
			onDisk += st.Sys().(*syscall.Stat_t).Blocks * 512
		}
		return nil
	})
	kept, _ := os.Stat(filepath.Join(data, "logs", l.key+".log"))
	if kept == nil {
		return l.key + " has no log"
	}
	f, err := os.Open(filepath.Join(data, "logs", l.key+".log"))
	must.Do(tb, err)
	defer func() { _ = f.Close() }()
	cuts, in := 0, bufio.NewScanner(f)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		if strings.HasPrefix(in.Text(), "scrimp: ") && strings.Contains(in.Text(), "are left out here") {
			cuts++
		}
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", l.cmd.Process.Pid))
	must.Do(tb, err)
	return fmt.Sprintf("%s printed %d MB, of which %d MB are kept with %d lines that say what is left out; its output "+
		"takes %d MB of the machine's disk, its agent %d MiB of memory and %.1f s of processors",
		l.key, printed/1e6, kept.Size()/1e6, cuts, onDisk/1e6,
		int64(number(strings.Fields(string(text))[1]))*int64(os.Getpagesize())>>20,
		usedBy(tb, l.cmd.Process.Pid, false).Seconds())
}

// real starts an agent's process.
func (c *crowd) real(ctx context.Context, i *engine.Instance, q engine.Request) {
	l := &loudMachine{key: q.Key, dir: filepath.Join(c.dir, i.ID)}
	must.Do(c.tb, os.MkdirAll(l.dir, 0o700))
	l.cmd = exec.CommandContext(ctx, c.exe, "agent")
	l.cmd.Env = append(os.Environ(), "SCRIMP_SERVER="+c.address, "SCRIMP_TOKEN="+q.Env["SCRIMP_TOKEN"],
		"SCRIMP_INSTANCE_ID="+i.ID, "SCRIMP_MACHINE_DIR="+l.dir, "AWS_EC2_METADATA_SERVICE_ENDPOINT=http://127.0.0.1:9/")
	l.cmd.Cancel = func() error { return l.cmd.Process.Signal(syscall.SIGTERM) }
	l.cmd.WaitDelay = 30 * time.Second
	if err := l.cmd.Start(); err != nil {
		c.tb.Error(err)
		return
	}
	c.loud = append(c.loud, l)
	c.agents.Go(func() { _ = l.cmd.Wait() })
}

// waits holds the durations of calls by kind.
type waits struct {
	mu sync.Mutex
	of map[string][]time.Duration
}

func (w *waits) add(kind string, d ...time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.of == nil {
		w.of = map[string][]time.Duration{}
	}
	w.of[kind] = append(w.of[kind], d...)
}

// take returns the durations since the last take.
func (w *waits) take() map[string][]time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	of := w.of
	w.of = nil
	return of
}

// openCrowd serves a market in the data folder, where the server finds it.
func openCrowd(ctx context.Context, tb testing.TB, dir string) *crowd {
	tb.Helper()
	c := &crowd{tb: tb, ctx: ctx, began: time.Now().UTC(), ends: map[string]context.CancelFunc{}}
	c.offer = market.Offer{Provider: "local", Region: "here", Zone: "here-a", Machine: "crowd", Capacity: market.OnDemand,
		CPUs: 4, Memory: 16 * size.GiB, Currency: money.USD, Speed: 1}
	c.offer.ID = market.ID(c.offer)
	folder := filepath.Join(dir, "market")
	must.Do(tb, os.MkdirAll(folder, 0o700))
	l, err := (&net.ListenConfig{}).Listen(ctx, "unix", filepath.Join(folder, "market.sock"))
	must.Do(tb, err)
	mux := http.NewServeMux()
	say := func(w http.ResponseWriter, v any) { _ = json.NewEncoder(w).Encode(v) }
	mux.HandleFunc("GET /clock", func(w http.ResponseWriter, _ *http.Request) {
		say(w, engine.Clock{Name: "crowd", Wall: c.began, Market: c.began, Speed: 1})
	})
	mux.HandleFunc("GET /offers", func(w http.ResponseWriter, _ *http.Request) {
		say(w, map[string]any{"offers": []market.Offer{c.offer},
			"quotes": []market.Quote{{Offer: c.offer.ID, Rate: 100_000_000_000, Priced: true, Available: true,
				At: time.Now().UTC(), Source: "crowd"}}})
	})
	mux.HandleFunc("GET /instances", func(w http.ResponseWriter, _ *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		say(w, c.list)
	})
	mux.HandleFunc("POST /launch", func(w http.ResponseWriter, r *http.Request) {
		var q engine.Request
		_ = json.NewDecoder(r.Body).Decode(&q) // checked below
		say(w, c.launch(q))
	})
	mux.HandleFunc("POST /terminate", func(w http.ResponseWriter, r *http.Request) {
		c.end(r.URL.Query().Get("id"))
		say(w, struct{}{})
	})
	h := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() { _ = h.Serve(l) }()
	tb.Cleanup(func() { _ = h.Close() })
	return c
}

func (c *crowd) launch(q engine.Request) engine.Instance {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, i := range c.list {
		if i.Key == q.Key {
			return *i
		}
	}
	i := &engine.Instance{ID: fmt.Sprintf("i-crowd-%d", len(c.list)), Key: q.Key, Offer: q.Offer,
		State: engine.Running, Launched: time.Now().UTC(), Rate: 100_000_000_000}
	c.list = append(c.list, i)
	ctx, cancel := context.WithCancel(c.ctx)
	c.ends[i.ID] = cancel
	if strings.HasPrefix(q.Tags["scrimp-job"], "loud-") {
		c.real(ctx, i, q)
		return *i
	}
	c.agents.Go(func() { c.agent(ctx, i.ID, q.Env["SCRIMP_TOKEN"]) })
	return *i
}

func (c *crowd) end(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, i := range c.list {
		if i.ID == id && i.State == engine.Running {
			i.State, i.Ended, i.Cause = engine.Ended, time.Now().UTC(), engine.Terminated
			i.Bill = []engine.Line{{From: i.Launched, To: i.Ended, Amount: i.Rate.Until(i.Ended.Sub(i.Launched)),
				Currency: money.USD}}
			c.ends[id]()
		}
	}
}

// timed calls f and records how long it took.
func (c *crowd) timed(ctx context.Context, kind string, f func() error) error {
	at := time.Now()
	err := f()
	if ctx.Err() == nil {
		c.waits.add(kind, time.Since(at))
		if err != nil {
			c.waits.add(kind+"-failed", time.Since(at))
			if c.failed.Add(1) <= 3 {
				c.tb.Logf("%s: %v", kind, err)
			}
		}
	}
	return err
}

// agent is the lifetime of one machine.
func (c *crowd) agent(ctx context.Context, id, token string) {
	public, key, err := ed25519.GenerateKey(nil)
	must.Do(c.tb, err)
	is, err := wire.DialMachine(c.address, id, key, token)
	must.Do(c.tb, err)
	defer is.Close()
	err = wire.Retry(ctx, func(ctx context.Context) error {
		return c.timed(ctx, "register", func() error {
			_, err := is.Register(ctx, api.Registration{Instance: id, Key: httpsig.Encode(public), Boot: time.Now().UTC(), Version: "test"})
			return err
		})
	})
	var pulled api.Pulled
	for err == nil && len(pulled.Tasks) == 0 {
		err = wire.Retry(ctx, func(ctx context.Context) (err error) { pulled, err = is.Pull(ctx, api.Pull{}); return err })
		if pulled.Off {
			return
		}
	}
	if err != nil {
		return
	}
	a := pulled.Tasks[0]
	var beside sync.WaitGroup
	defer beside.Wait()
	pulling, halt := context.WithCancel(ctx)
	defer halt()
	beside.Go(func() { // as the daemon keeps pulling
		for pulling.Err() == nil {
			p, err := is.Pull(pulling, api.Pull{Running: []string{a.Attempt}})
			if p.Off || err != nil && wait.For(pulling, time.Second) != nil {
				return
			}
		}
	})
	conn, err := wire.Dial(c.address, func() string { return a.AttemptToken })
	must.Do(c.tb, err)
	defer conn.Close()
	c.mu.Lock()
	c.claimed++
	c.mu.Unlock()
	m := &machine{crowd: c, a: a, conn: conn, began: time.Now(), urgent: make(chan struct{}, 1)}
	m.every.Store(int64(a.Report))
	m.add(api.Message{Started: &api.Started{Took: time.Millisecond}})
	var both sync.WaitGroup
	both.Go(func() { m.logs(ctx) })
	m.report(ctx)
	both.Wait()
}
