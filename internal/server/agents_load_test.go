package server_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"scrimp/internal/engine"
	"scrimp/internal/engine/local"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/money"
	"scrimp/internal/server"
	"scrimp/internal/test/must"
	"scrimp/internal/test/pgtest"
	"scrimp/internal/test/proc"
	"scrimp/internal/test/testbin"
)

var (
	loadAgents   = flag.Int("agents", 200, "live agents of BenchmarkAgents")
	loadWatchers = flag.Int("watchers", 64, "clients of BenchmarkAgents that watch all jobs")
	loadInside   = flag.Bool("inside", false, "run the server of BenchmarkAgents in the benchmark's own process, for "+
		"-cpuprofile")
)

// BenchmarkAgents runs a crowd of agents against a server of its own, over TCP with their tokens, while others watch
// and submit.
func BenchmarkAgents(b *testing.B) {
	exe := testbin.Full.Path(b)
	b.Run("sqlite", func(b *testing.B) {
		for b.Loop() {
			agents(b, &loaded{b: b, exe: exe, dir: b.TempDir()}, *loadAgents, *loadWatchers, 0)
		}
	})
	b.Run("postgres", func(b *testing.B) {
		cluster := pgtest.Start(b)
		for b.Loop() {
			agents(b, &loaded{b: b, exe: exe, dir: b.TempDir(), db: cluster.Database(b), database: cluster.PID()}, *loadAgents,
				*loadWatchers, 0)
		}
	})
}

// BenchmarkLoud runs 20 well-behaved agents, without and with a real agent beside
// them whose program prints 100 MB a second.
func BenchmarkLoud(b *testing.B) {
	exe := testbin.Full.Path(b)
	for _, loud := range []int{0, 1} {
		b.Run(fmt.Sprintf("loud=%d", loud), func(b *testing.B) {
			for b.Loop() {
				agents(b, &loaded{b: b, exe: exe, dir: b.TempDir()}, 20, 2, loud)
			}
		})
	}
}

func agents(b *testing.B, s *loaded, n, watch, loud int) {
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	c, stop := s.crowded(ctx, b, n)
	defer stop()
	var watchers sync.WaitGroup
	defer watchers.Wait()
	watching, end := context.WithCancel(ctx)
	defer end()
	var sent sync.Map
	for i := range loud {
		s.prints(fmt.Sprintf("loud-%d", i))
	}
	for range watch {
		watchers.Go(func() { s.watches(watching, c, &sent) })
	}
	pause(5 * time.Second) // the burst of starting agents has passed
	c.waits.take()
	spent, began := s.spent(), time.Now()
	for i := 0; time.Since(began) < *loadFor; i++ {
		id := fmt.Sprintf("probe-%d", i)
		sent.Store(id, time.Now())
		at := time.Now()
		s.ask("POST", "/v1/jobs", map[string]any{"key": id, "spec": json.RawMessage(server.File(id))}, nil)
		c.waits.add("submit", time.Since(at))
		pause(250 * time.Millisecond)
	}
	took := time.Since(began)
	for i, now := range s.spent() {
		spent[i] = now - spent[i]
	}
	of := c.waits.take()
	for _, kind := range slices.Sorted(maps.Keys(of)) {
		s.spread(kind, of[kind], took)
	}
	share := func(i int) float64 { return 100 * spent[i].Seconds() / took.Seconds() }
	b.ReportMetric(share(0), "server-cpu-%")
	b.Logf("processors: server %.0f%%, load generator %.0f%%, PostgreSQL %.0f%%; the server has %d MiB; load average %s",
		share(0), share(1), share(2), s.memory()>>20, loadAverage())
	if n := c.failed.Load(); n > 0 {
		text, _ := os.ReadFile(filepath.Join(s.dir, "load.log")) // missing if the server runs in this process
		b.Logf("%d calls failed; the server's log ends: %s", n, text[max(0, len(text)-3000):])
	}
	for _, l := range c.loud {
		b.Log(l.tell(b, s.dir))
	}
	end()
	cancel()
	c.agents.Wait()
	if len(of["report"]) == 0 || len(of["log"]) == 0 || len(of["watch-event"]) == 0 || len(of["watch-progress"]) == 0 {
		b.Error("the benchmark did not do its work")
	}
}

// crowded starts a server with n running jobs, each on an agent of its own.
func (s *loaded) crowded(ctx context.Context, b *testing.B, n int) (c *crowd, end func()) {
	c, end = openCrowd(ctx, b, s.dir), func() { s.kill() }
	c.exe, c.dir = s.exe, b.TempDir()
	if *loadInside {
		end = s.inside(ctx)
	} else {
		s.start("start")
	}
	c.address = s.address
	s.user()
	for sent := 0; sent < n; sent += 100 {
		s.trains(sent, min(100, n-sent))
	}
	b.Logf("%d jobs are submitted", n)
	for begun, told := time.Now(), time.Now(); ; pause(100 * time.Millisecond) {
		c.mu.Lock()
		came := c.claimed
		c.mu.Unlock()
		if came >= n {
			b.Logf("all have claimed their tasks after %.1f s", time.Since(begun).Seconds())
			break
		}
		if time.Since(told) > 10*time.Second {
			told = time.Now()
			b.Logf("%d agents have claimed their tasks", came)
		}
		if time.Since(begun) > 10*time.Minute {
			b.Fatalf("%d of %d agents came", came, n)
		}
	}
	return c, end
}

// spread reports how long calls of a kind took.
func (s *loaded) spread(kind string, w []time.Duration, took time.Duration) {
	slices.Sort(w)
	ms := func(share float64) float64 { return w[int(float64(len(w)-1)*share)].Seconds() * 1e3 }
	s.metric(ms(.5), kind+"-p50-ms")
	s.metric(ms(.99), kind+"-p99-ms")
	s.b.Logf("%-16s %6.0f a second, p50 %6.1f ms, p99 %6.1f ms, longest %6.1f ms", kind, float64(len(w))/took.Seconds(),
		ms(.5), ms(.99), ms(1))
}

// trains submits n long jobs with a deadline and a budget.
func (s *loaded) trains(from, n int) {
	list, budget := make([]any, n), money.Rate(1e15).Until(time.Hour)
	for i := range list {
		j := spec.Default()
		j.Name, j.Team, j.Command = fmt.Sprintf("train-%d", from+i), "vision", "python train.py"
		j.Resources.CPUs.Min = 2
		j.Work.Steps = 100_000_000 // a millisecond each: more than a day
		j.Budget.Dollars = &budget
		j.Deadline = spec.Deadline{In: 240 * time.Hour}
		text, err := json.Marshal(j)
		must.Do(s.b, err)
		list[i] = map[string]any{"key": j.Name, "spec": json.RawMessage(text)}
	}
	s.ask("POST", "/v1/jobs/batch", list, nil)
}

// prints submits a job that prints about 100 MB per second.
func (s *loaded) prints(name string) {
	j := spec.Default()
	j.Name, j.Team, j.Command = name, "vision",
		`while :; do yes "$(printf 'a line of ninety-nine bytes that says nothing %054d' 0)" | head -c 10000000; sleep 0.1; done`
	j.Resources.CPUs.Min = 2
	text, err := json.Marshal(j)
	must.Do(s.b, err)
	s.ask("POST", "/v1/jobs", map[string]any{"key": name, "spec": json.RawMessage(text)}, nil)
}

// watches reads all events of the server until ctx ends, and records the age of each.
func (s *loaded) watches(ctx context.Context, c *crowd, sent *sync.Map) {
	r, err := http.NewRequestWithContext(ctx, "GET", s.address+"/v1/events", nil)
	must.Do(s.b, err)
	r.Header.Set("Authorization", "Bearer "+s.token)
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		if ctx.Err() == nil {
			s.b.Error(err)
		}
		return
	}
	defer func() { _ = a.Body.Close() }()
	in, seen := bufio.NewReaderSize(a.Body, 64<<10), map[string]bool{}
	var ages []time.Duration
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			break
		}
		id := after(line, `"id":"`)
		switch {
		case id == "":
		case strings.HasPrefix(id, "probe-"):
			if at, ok := sent.Load(id); ok && !seen[id] {
				seen[id] = true
				c.waits.add("watch-event", time.Since(at.(time.Time)))
			}
		default:
			if step, err := strconv.ParseInt(after(line, `"step":`), 10, 64); err == nil && step > 0 {
				if ages = append(ages, time.Since(c.began)-time.Duration(step)*time.Millisecond); len(ages) == 100 {
					c.waits.add("watch-progress", ages...)
					ages = ages[:0]
				}
			}
		}
	}
	if ctx.Err() == nil {
		s.b.Error("a watcher was cut off")
	}
}

// after returns the text after key in a line of JSON, up to the next quote, comma or brace.
func after(line []byte, key string) string {
	i := bytes.Index(line, []byte(key))
	if i < 0 {
		return ""
	}
	rest := line[i+len(key):]
	if end := bytes.IndexAny(rest, `",}`); end >= 0 {
		rest = rest[:end]
	}
	return string(rest)
}

// inside runs the server in this process.
func (s *loaded) inside(ctx context.Context) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	ready, done := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(done)
		err := server.Serve(ctx, server.Options{Kinds: map[string]engine.Opener{local.Kind: local.Open}, Dir: s.dir, DB: s.db, Listen: "127.0.0.1:0", Rate: 1_000_000, Version: "test",
			Exe: s.exe, Running: *loadAgents, Log: slog.New(slog.DiscardHandler), Ready: func(a string) { ready <- a }})
		if err != nil && ctx.Err() == nil {
			s.b.Error(err)
		}
	}()
	s.address = <-ready
	s.cmd = &proc.Process{Cmd: &exec.Cmd{Process: &os.Process{Pid: os.Getpid()}}}
	s.http = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}}
	for range 1000 {
		if r, err := s.http.Get(s.address + "/readyz"); err == nil { //nolint:noctx // the benchmark's own limit bounds it
			_ = r.Body.Close()
			if r.StatusCode == http.StatusOK {
				break
			}
		}
		pause(20 * time.Millisecond)
	}
	return func() { cancel(); <-done }
}

func loadAverage() string {
	text, _ := os.ReadFile("/proc/loadavg")
	fields := strings.Fields(string(text))
	if len(fields) == 0 {
		return "unknown on " + runtime.GOOS
	}
	return fields[0]
}

// loadPages are the pages that a user of BenchmarkPages keeps open.
var loadPages = []string{"/", "/jobs", "/jobs?name=probe", "/jobs?sort=spent", "/jobs/train-%d", "/jobs/train-%d",
	"/machines", "/costs", "/groups", "/teams"}

// BenchmarkPages keeps fifty pages of the dashboard open, ten for each of five users, while as many jobs run as -agents
// says. It measures how long a submitted job takes to appear on the pages of its name, and the processor time of the
// server. The full size is -agents 1000.
func BenchmarkPages(b *testing.B) {
	exe := testbin.Local.Path(b)
	for b.Loop() {
		openPages(b, &loaded{b: b, exe: exe, dir: b.TempDir()}, *loadAgents)
	}
}

func openPages(b *testing.B, s *loaded, n int) {
	ctx, cancel := context.WithCancel(b.Context())
	c, stop := s.crowded(ctx, b, n)
	defer stop()
	var open sync.WaitGroup
	defer c.agents.Wait()
	defer open.Wait()
	defer cancel()
	var sent sync.Map
	for user := range 5 {
		name := fmt.Sprint("reader-", user)
		var made struct {
			Text string `json:"text"`
		}
		s.owner.ask("PUT", "/v1/users/"+name, map[string]any{"grants": []map[string]any{{"team": "vision", "role": "viewer"}}}, nil)
		s.owner.ask("POST", "/v1/tokens", map[string]any{"user": name}, &made)
		cookie := s.signsIn(made.Text)
		for i, page := range loadPages {
			if strings.Contains(page, "%d") {
				page = fmt.Sprintf(page, 10*user+i)
			}
			open.Go(func() { s.reads(ctx, c, page, cookie, &sent) })
		}
	}
	pause(10 * time.Second) // the burst of starting agents and pages has passed
	c.waits.take()
	spent, began := s.spent(), time.Now()
	for i := 0; time.Since(began) < *loadFor; i++ {
		id := fmt.Sprintf("probe-%d", i)
		sent.Store(id, time.Now())
		s.ask("POST", "/v1/jobs", map[string]any{"key": id, "spec": json.RawMessage(server.File(id))}, nil)
		pause(3 * time.Second)
	}
	took := time.Since(began)
	for i, now := range s.spent() {
		spent[i] = now - spent[i]
	}
	of := c.waits.take()
	for _, kind := range []string{"report", "page", "appears"} {
		if len(of[kind]) == 0 {
			b.Fatalf("nothing of %s was seen", kind)
		}
		s.spread(kind, of[kind], took)
	}
	b.ReportMetric(100*spent[0].Seconds()/took.Seconds(), "server-cpu-%")
	b.Logf("the server used %.2f of a processor; load average %s", spent[0].Seconds()/took.Seconds(), loadAverage())
}

// signsIn returns the cookie of a session.
func (s *loaded) signsIn(token string) string {
	r, err := http.NewRequestWithContext(s.b.Context(), http.MethodPost, s.address+"/sign-in",
		strings.NewReader(url.Values{"token": {token}}.Encode()))
	must.Do(s.b, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", s.address)
	a, err := http.DefaultTransport.RoundTrip(r)
	must.Do(s.b, err)
	must.Do(s.b, a.Body.Close())
	for _, c := range a.Cookies() {
		return c.Name + "=" + c.Value
	}
	s.b.Fatalf("the sign-in answers %s", a.Status)
	return ""
}

// reads follows the live updates of a page until ctx ends. It records the time between two updates, and how long a
// probe took to appear.
func (s *loaded) reads(ctx context.Context, c *crowd, page, cookie string, sent *sync.Map) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.address+"/live?at="+url.QueryEscape(page), nil)
	must.Do(s.b, err)
	r.Header.Set("Cookie", cookie)
	a, err := http.DefaultTransport.RoundTrip(r)
	if err != nil || a.StatusCode != http.StatusOK {
		s.b.Errorf("%s: %v %v", page, a, err)
		return
	}
	defer func() { _ = a.Body.Close() }()
	in, seen, last := bufio.NewReaderSize(a.Body, 1<<20), map[string]bool{}, time.Now()
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			break
		}
		if strings.HasPrefix(line, "data: ") || line == ": \n" {
			c.waits.add("page", time.Since(last))
			last = time.Now()
		}
		if page != "/jobs?name=probe" {
			continue
		}
		sent.Range(func(id, at any) bool {
			if !seen[id.(string)] && strings.Contains(line, "/jobs/"+id.(string)+"\\\"") {
				seen[id.(string)] = true
				c.waits.add("appears", time.Since(at.(time.Time)))
			}
			return true
		})
	}
	if ctx.Err() == nil {
		s.b.Errorf("%s was cut off", page)
	}
}
