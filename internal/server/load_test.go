//go:build !local

package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"scrimp/internal/core"
	"scrimp/internal/ledger"
	"scrimp/internal/money"
	"scrimp/internal/plan"
	"scrimp/internal/server"
	"scrimp/internal/spec"
	"scrimp/internal/store"
	"scrimp/internal/store/pgtest"
)

var (
	loadJobs = flag.Int("jobs", 20_000, "jobs in the queue of BenchmarkLoad")
	loadFor  = flag.Duration("for", 5*time.Second, "how long each load of BenchmarkLoad lasts")
)

// clients is how many ask at the same time.
const clients = 64

// BenchmarkLoad asks a server of its own, a process started as a user starts it,
// over TCP with a token. Its queue is full of jobs that no machine can do. It is
// killed in the end, and whatever it had acknowledged has to be there.
func BenchmarkLoad(b *testing.B) {
	exe := filepath.Join(b.TempDir(), "scrimp")
	if out, err := exec.CommandContext(b.Context(), "go", "build", "-o", exe, "scrimp/cmd/scrimp").CombinedOutput(); err != nil {
		b.Fatalf("build scrimp: %v\n%s", err, out)
	}
	b.Run("sqlite", func(b *testing.B) {
		for b.Loop() {
			dir := b.TempDir()
			st, err := store.Open(dir)
			must(b, err)
			load(b, &loaded{b: b, exe: exe, dir: dir}, st)
		}
	})
	b.Run("postgres", func(b *testing.B) {
		cluster := pgtest.Start(b)
		for b.Loop() {
			dir, db := b.TempDir(), cluster.Database(b)
			st, err := store.OpenPostgres(b.Context(), store.DefaultPostgres(db, dir))
			must(b, err)
			must(b, st.Lead(b.Context()))
			load(b, &loaded{b: b, exe: exe, dir: dir, db: db}, st)
		}
	})
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// loaded is a server under load.
type loaded struct {
	b            *testing.B
	exe, dir, db string
	cmd          *exec.Cmd
	left         chan struct{} // closed when the process has
	address      string
	token        string
	http         *http.Client
}

// start runs the server until it is ready, and reports what that took.
func (s *loaded) start(name string) {
	s.b.Helper()
	l, err := (&net.ListenConfig{}).Listen(s.b.Context(), "tcp", "127.0.0.1:0")
	must(s.b, err)
	address := l.Addr().String()
	must(s.b, l.Close())
	args := []string{"serve", "--data", s.dir, "--listen", address, "--rate", "1000000"}
	if s.db != "" {
		args = append(args, "--db", s.db)
	}
	log, err := os.OpenFile(filepath.Join(s.dir, "load.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	must(s.b, err)
	s.cmd = exec.Command(s.exe, args...) //nolint:noctx // killed below
	s.cmd.Stdout, s.cmd.Stderr = log, log
	began := time.Now()
	must(s.b, s.cmd.Start())
	must(s.b, log.Close())
	s.left = make(chan struct{})
	go func(cmd *exec.Cmd, left chan struct{}) { defer close(left); _ = cmd.Wait() }(s.cmd, s.left)
	s.address = "http://" + address
	s.http = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}}
	for {
		r, err := s.http.Get(s.address + "/readyz") //nolint:noctx // the benchmark's own limit holds
		if err == nil {
			_ = r.Body.Close()
			if r.StatusCode == http.StatusOK {
				break
			}
		}
		select {
		case <-s.left:
			began = time.Time{}
		default:
		}
		if time.Since(began) > 10*time.Minute {
			text, _ := os.ReadFile(filepath.Join(s.dir, "load.log"))
			s.b.Fatalf("the server is not ready: %s", text)
		}
		pause(20 * time.Millisecond)
	}
	s.report(name, time.Since(began), s.used())
}

func pause(d time.Duration) { <-time.After(d) }

func (s *loaded) report(name string, wall, cpu time.Duration) {
	s.b.ReportMetric(wall.Seconds(), name+"-s")
	s.b.ReportMetric(cpu.Seconds(), name+"-cpu-s")
	s.b.Logf("%s: %.2f s, %.2f s of the server's processors", name, wall.Seconds(), cpu.Seconds())
}

// used is what the server has used of processors so far.
func (s *loaded) used() time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	must(s.b, err)
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:])) // utime and stime are 14 and 15 of all, in hundredths of a second
	user, err := strconv.Atoi(fields[11])
	must(s.b, err)
	system, err := strconv.Atoi(fields[12])
	must(s.b, err)
	return time.Duration(user+system) * 10 * time.Millisecond
}

func (s *loaded) kill() {
	_ = s.cmd.Process.Kill() // it may have left
	<-s.left
}

// ask sends one request and fails where the answer is none.
func (s *loaded) ask(method, path string, in, out any) {
	s.b.Helper()
	if err := s.try(method, path, in, out); err != nil {
		s.b.Fatal(err)
	}
}

func (s *loaded) try(method, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(context.Background(), method, s.address+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+s.token)
	a, err := s.http.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = a.Body.Close() }()
	text, err := io.ReadAll(a.Body)
	switch {
	case err != nil:
		return err
	case a.StatusCode >= 300:
		return fmt.Errorf("%s %s: %s", method, path, text)
	case out != nil:
		return json.Unmarshal(text, out)
	}
	return nil
}

// many lets that many clients do something again and again, and reports how
// often and how long each waited, and what it took of both processes' processors.
func (s *loaded) many(name string, n int, do func(client, i int) (done int, err error)) int {
	s.b.Helper()
	var all sync.WaitGroup
	var total atomic.Int64
	waits := make([][]time.Duration, n)
	ours, theirs, began := own(s.b), s.used(), time.Now()
	for c := range n {
		all.Go(func() {
			for i := 0; time.Since(began) < *loadFor; i++ {
				at := time.Now()
				done, err := do(c, i)
				if err != nil {
					s.b.Error(err)
					return
				}
				waits[c] = append(waits[c], time.Since(at))
				total.Add(int64(done))
			}
		})
	}
	all.Wait()
	took := time.Since(began)
	ours, theirs = own(s.b)-ours, s.used()-theirs
	w := slices.Concat(waits...)
	if len(w) == 0 {
		s.b.Fatalf("%s: nothing was done", name)
	}
	slices.Sort(w)
	ms := func(share int) float64 { return w[len(w)*share/100].Seconds() * 1e3 }
	rate := float64(total.Load()) / took.Seconds()
	s.b.ReportMetric(rate, name+"/s")
	s.b.ReportMetric(ms(50), name+"-p50-ms")
	s.b.ReportMetric(ms(99), name+"-p99-ms")
	s.b.Logf("%s: %.0f a second, p50 %.1f ms, p99 %.1f ms, processors: server %.0f%%, load generator %.0f%%", name, rate, ms(50), ms(99), 100*theirs.Seconds()/took.Seconds(), 100*ours.Seconds()/took.Seconds())
	return int(total.Load())
}

// own is what this process has used of processors so far.
func own(tb testing.TB) time.Duration {
	var u syscall.Rusage
	must(tb, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// load fills the store, starts the server, asks it, kills it and starts it again.
func load(b *testing.B, s *loaded, st store.Replica) {
	n := *loadJobs
	fill(b, st, n)
	must(b, st.Close())
	debug.FreeOSMemory()
	s.start("restart")
	defer func() { s.kill() }()
	defer stopMarket(s)
	s.user()

	s.many("page", 1, func(_, i int) (int, error) { return s.page(n, i) })
	sent := s.many("submit", clients, s.submit("a"))
	sent += s.many("submit-batches-of-100", clients, s.batch)
	var both sync.WaitGroup
	both.Go(func() { sent += s.many("submit-while-paged", clients, s.submit("b")) })
	s.many("page-while-submitting", 1, func(_, i int) (int, error) { return s.page(n, i) })
	both.Wait()

	s.kill()
	s.start("restart-after-kill")
	var v struct {
		Jobs int `json:"jobs"`
	}
	s.ask("GET", "/v1/server", nil, &v)
	if v.Jobs < n+sent {
		b.Fatalf("%d jobs are there after the kill, %d were acknowledged", v.Jobs, n+sent)
	}
	b.Logf("after kill -9 all %d jobs are there", v.Jobs)
}

// page asks for one page of 50: the newest, the oldest, or one in the middle.
func (s *loaded) page(n, i int) (int, error) {
	query := []string{"?limit=50&before=", "?limit=50", fmt.Sprintf("?limit=50&after=j-%07d", n/2+i)}[i%3]
	var list []struct {
		ID string `json:"id"`
	}
	err := s.try("GET", "/v1/jobs"+query, nil, &list)
	if err == nil && len(list) != 50 {
		err = fmt.Errorf("a page has %d jobs", len(list))
	}
	return 1, err
}

// batch submits 100 jobs at once.
func (s *loaded) batch(client, i int) (int, error) {
	list, made := make([]any, 100), []struct {
		ID string `json:"id"`
	}{}
	for k := range list {
		name := fmt.Sprintf("c-%d-%d-%d", client, i, k)
		list[k] = map[string]any{"key": name, "spec": json.RawMessage(file(name))}
	}
	err := s.try("POST", "/v1/jobs/batch", list, &made)
	if err == nil && len(made) != len(list) {
		err = fmt.Errorf("%d of %d jobs were made", len(made), len(list))
	}
	return len(made), err
}

func (s *loaded) submit(kind string) func(client, i int) (int, error) {
	return func(client, i int) (int, error) {
		var j struct {
			ID string `json:"id"`
		}
		name := fmt.Sprintf("%s-%d-%d", kind, client, i)
		err := s.try("POST", "/v1/jobs", map[string]any{"key": name, "spec": json.RawMessage(file(name))}, &j)
		if err == nil && j.ID != name {
			err = fmt.Errorf("%s became %s", name, j.ID)
		}
		return 1, err
	}
}

// user makes a user with a token, by the socket of the data folder.
func (s *loaded) user() {
	owner, err := os.ReadFile(filepath.Join(s.dir, server.TokenName))
	must(s.b, err)
	near := &loaded{b: s.b, token: strings.TrimSpace(string(owner)), address: "http://scrimp", http: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(s.dir, server.SocketName))
		},
	}}}
	near.ask("PUT", "/v1/teams/vision", map[string]any{}, nil)
	near.ask("PUT", "/v1/users/ann", map[string]any{"grants": []map[string]any{{"team": "vision", "role": "submitter"}}}, nil)
	var made struct {
		Text string `json:"text"`
	}
	near.ask("POST", "/v1/tokens", map[string]any{"user": "ann"}, &made)
	s.token = made.Text
}

// stopMarket ends the process of the folder's market.
func stopMarket(s *loaded) {
	cmd := exec.Command(s.exe, "server", "stop", "--now", "--data", s.dir) //nolint:noctx // it ends by itself
	if out, err := cmd.CombinedOutput(); err != nil {
		s.b.Logf("stop: %v %s", err, out)
	}
}

// file is a job file that asks for a machine which no market has.
func file(name string) string {
	j := spec.Default()
	j.Name, j.Team, j.Command = name, "vision", "python train.py --config configs/base.yaml --seed 1"
	j.Resources.CPUs.Min = 100_000
	text, _ := json.Marshal(j) // it never fails
	return string(text)
}

// fill writes a log of that many submissions as the server does, with a snapshot
// at four fifths: as far back as a server lets it be.
func fill(b *testing.B, st store.Store, n int) {
	b.Helper()
	m := core.New()
	at := time.Now().UTC().Add(-time.Hour).Truncate(time.Second)
	var records []store.Record
	step := func(e core.Event) {
		out := m.Step(e)
		r := store.Record{Seq: m.Seq(), Tenant: e.Tenant, At: e.At, Kind: e.Body.Kind(), Key: e.Key}
		var err error
		r.Event, err = json.Marshal(e)
		must(b, err)
		if len(out.Decisions) > 0 {
			r.Decisions, err = json.Marshal(out.Decisions)
			must(b, err)
		}
		if records = append(records, r); len(records) == 1000 {
			must(b, st.Append(b.Context(), records))
			records = records[:0]
		}
	}
	step(core.Event{At: at, Schema: core.Schema, Tenant: "default", Actor: "server", Body: core.Configured{Config: server.Rules(1)}})
	whole := file("NAME")
	for i := range n {
		id := fmt.Sprintf("j-%07d", i)
		step(core.Event{At: at, Schema: core.Schema, Tenant: "default", Actor: "user:ann", Key: "ann/" + id, Body: core.JobSubmitted{
			Job: id, Spec: json.RawMessage(strings.Replace(whole, "NAME", id, 1)), Terms: core.Terms{
				Name: id, Owner: ledger.Owner{Tenant: "default", Team: "vision"}, Need: plan.Need{Asks: plan.Asks{CPUs: 100_000}},
				Currency: money.USD, Priority: 1, Saves: true, Restart: time.Minute, Grace: 20 * time.Second, Nodes: 1, Promise: 0.9,
			},
		}})
		if i%100_000 == 99_999 {
			b.Logf("%d jobs", i+1)
		}
		if i == n*4/5 {
			must(b, st.Append(b.Context(), records))
			records = records[:0]
			saveSnapshot(b, st, m)
		}
	}
	must(b, st.Append(b.Context(), records))
}

// saveSnapshot writes a snapshot as the server does.
func saveSnapshot(b *testing.B, st store.Store, m *core.Machine) {
	b.Helper()
	f := m.Freeze(0)
	s := store.Snapshot{Seq: f.Seq(), Version: core.SnapshotVersion, Parts: f.Parts()}
	for {
		n, part, more, err := f.Encode()
		must(b, err)
		if !more {
			break
		}
		s.New = append(s.New, n)
		must(b, st.SaveParts(b.Context(), s.Seq, map[int]json.RawMessage{n: part}))
	}
	var err error
	s.State, err = f.Head()
	must(b, err)
	must(b, st.SaveSnapshot(b.Context(), s))
}
