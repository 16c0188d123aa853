package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"scrimp/internal/server"
	"scrimp/internal/test/eventually"
	"scrimp/internal/test/must"
	"scrimp/internal/test/proc"
)

// loaded is a server under load, a process started as a user starts it.
type loaded struct {
	b            testing.TB
	exe, dir, db string
	database     int // PostgreSQL's process; 0: none
	cmd          *proc.Process
	left         chan struct{} // closed when the process ends
	address      string
	token        string
	owner        *loaded // the same server, through its socket
	http         *http.Client
}

// serving is the line with the address of the server.
var serving = regexp.MustCompile(`(?m)^Serving .* on (http://\S+)\n`)

// start starts the server, waits until it is ready, and reports how long that took.
func (s *loaded) start(name string) {
	s.b.Helper()
	args := []string{"serve", "--data", s.dir, "--listen", "127.0.0.1:0", "--rate", "1000000", "--running",
		strconv.Itoa(max(24, *loadAgents))}
	if s.db != "" {
		args = append(args, "--db", s.db)
	}
	log, err := os.OpenFile(filepath.Join(s.dir, "load.log"), os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND, 0o600)
	must.Do(s.b, err)
	cmd := exec.Command(s.exe, args...) //nolint:noctx // killed below
	cmd.Stdout, cmd.Stderr = log, log
	began := time.Now()
	s.cmd = proc.Start(s.b, cmd)
	must.Do(s.b, log.Close())
	s.left = make(chan struct{})
	go func(p *proc.Process, left chan struct{}) { defer close(left); _ = p.Wait() }(s.cmd, s.left)
	s.http = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}}
	said := func() string {
		text, _ := os.ReadFile(filepath.Join(s.dir, "load.log"))
		return string(text)
	}
	eventually.True(s.b, "the server is ready", func() bool {
		select {
		case <-s.left:
			s.b.Fatalf("the server has left: %s", said())
		default:
		}
		at := serving.FindStringSubmatch(said())
		if at == nil {
			return false
		}
		s.address = at[1]
		r, err := s.http.Get(s.address + "/readyz") //nolint:noctx // eventually.Limit bounds it
		if err != nil {
			return false
		}
		_ = r.Body.Close()
		return r.StatusCode == http.StatusOK
	}, said)
	took, used := time.Since(began), usedBy(s.b, s.cmd.Process.Pid, false)
	s.metric(took.Seconds(), name+"-s")
	s.metric(used.Seconds(), name+"-cpu-s")
	s.b.Logf("%s: ready after %.2f s, %.2f s of the server's processors, %d MB of memory", name, took.Seconds(),
		used.Seconds(), s.memory()>>20)
}

func pause(d time.Duration) { <-time.After(d) }

// metric reports a figure in a benchmark.
func (s *loaded) metric(v float64, unit string) {
	if b, ok := s.b.(*testing.B); ok {
		b.ReportMetric(v, unit)
	}
}

// usedBy returns the processor time that a process has used so far, optionally with its children.
func usedBy(tb testing.TB, pid int, children bool) time.Duration {
	if pid == 0 {
		return 0
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	must.Do(tb, err)
	f := statFields(text)
	ticks := number(f[11]) + number(f[12]) // utime and stime, fields 14 and 15, in hundredths of a second
	if children {
		ticks += number(f[13]) + number(f[14]) // of ended children
		all, _ := filepath.Glob("/proc/[0-9]*/stat")
		for _, path := range all {
			text, err := os.ReadFile(path)
			if err != nil {
				continue // it has ended meanwhile
			}
			if f := statFields(text); number(f[1]) == pid {
				ticks += number(f[11]) + number(f[12])
			}
		}
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// statFields returns the fields of /proc/PID/stat from the third on.
func statFields(text []byte) []string {
	return strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
}

func number(s string) int {
	n, _ := strconv.Atoi(s) // the kernel writes numbers
	return n
}

// memory returns the server's resident memory.
func (s *loaded) memory() int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", s.cmd.Process.Pid))
	must.Do(s.b, err)
	return int64(number(strings.Fields(string(text))[1])) * int64(os.Getpagesize())
}

// own returns the processor time that this process has used so far.
func own(tb testing.TB) time.Duration {
	var u syscall.Rusage
	must.Do(tb, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func (s *loaded) kill() {
	_ = s.cmd.Process.Kill() // it may have ended
	<-s.left
}

// ask sends one request and fails on an error.
func (s *loaded) ask(method, path string, in, out any) {
	s.b.Helper()
	must.Do(s.b, s.try(method, path, in, out))
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

// page requests one page of 50: the newest, the oldest, or one in the middle.
func (s *loaded) page(n, i int) (int, error) {
	query := []string{"?limit=50&before=", "?limit=50", fmt.Sprintf("?limit=50&after=j-%07d", n/2+i%(n/2-50))}[i%3]
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
		list[k] = map[string]any{"key": name, "spec": json.RawMessage(server.File(name))}
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
		err := s.try("POST", "/v1/jobs", map[string]any{"key": name, "spec": json.RawMessage(server.File(name))}, &j)
		if err == nil && j.ID != name {
			err = fmt.Errorf("%s became %s", name, j.ID)
		}
		return 1, err
	}
}

// user creates a user with a token, through the socket of the data folder.
func (s *loaded) user() {
	owner, err := os.ReadFile(filepath.Join(s.dir, server.TokenName))
	must.Do(s.b, err)
	near := &loaded{b: s.b, token: strings.TrimSpace(string(owner)), address: "http://scrimp",
		http: &http.Client{Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(s.dir, server.SocketName))
			},
		}}}
	near.ask("PUT", "/v1/teams/vision", map[string]any{}, nil)
	near.ask("PUT", "/v1/users/ann", map[string]any{"grants": []map[string]any{{"team": "vision", "role": "submitter"}}},
		nil)
	var made struct {
		Text string `json:"text"`
	}
	near.ask("POST", "/v1/tokens", map[string]any{"user": "ann"}, &made)
	s.token, s.owner = made.Text, near
}

// limit puts all jobs under two limits that never refuse.
func (s *loaded) limit() {
	began := time.Now()
	for _, scope := range []string{"all", "team:vision"} {
		s.owner.ask("PUT", "/v1/budgets",
			map[string]any{"limit": map[string]any{"scope": scope, "window": "month", "jobs": 1_000_000_000, "gpu_hours": 1000}}, nil)
	}
	s.b.Logf("two limits are set in %.2f s", time.Since(began).Seconds())
}

// setLimit changes another limit, on the queue.
func (s *loaded) setLimit(_, i int) (int, error) {
	return 1, s.owner.try("PUT", "/v1/budgets",
		map[string]any{"limit": map[string]any{"scope": "team:vision", "window": "week", "running": 1000 + i,
			"jobs": 1_000_000_000}}, nil)
}

// look requests one of the sums over all jobs.
func (s *loaded) look(path string) func(_, _ int) (int, error) {
	return func(_, _ int) (int, error) { return 1, s.owner.try("GET", path, nil, nil) }
}

// stopMarket stops the process of the folder's market.
func stopMarket(s *loaded) {
	cmd := exec.Command(s.exe, "server", "stop", "--now", "--data", s.dir) //nolint:noctx // it ends by itself
	if out, err := cmd.CombinedOutput(); err != nil {
		s.b.Logf("stop: %v %s", err, out)
	}
}
