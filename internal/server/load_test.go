package server_test

import (
	"flag"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"scrimp/internal/server"
	"scrimp/internal/store"
	"scrimp/internal/store/postgres"
	"scrimp/internal/store/sqlite"
	"scrimp/internal/test/must"
	"scrimp/internal/test/pgtest"
	"scrimp/internal/test/testbin"
)

var (
	loadJobs = flag.Int("jobs", 20_000, "jobs in the queue of BenchmarkLoad")
	loadFor  = flag.Duration("for", 5*time.Second, "how long each load of BenchmarkLoad lasts")
)

// clients is the number of concurrent clients.
const clients = 64

// BenchmarkLoad sends requests to a server of its own over TCP with a token, with durable commits. The queue is full
// of jobs that no machine fits. The test kills the server while all clients submit, and checks that every
// acknowledged job exists. Rates depend on other users of the host; processor time per job hardly does.
func BenchmarkLoad(b *testing.B) {
	exe := testbin.Full.Path(b)
	b.Run("sqlite", func(b *testing.B) {
		for b.Loop() {
			onSQLite(b, exe, *loadJobs, *loadFor)
		}
	})
	b.Run("postgres", func(b *testing.B) {
		cluster := pgtest.Start(b)
		for b.Loop() {
			dir, db := b.TempDir(), cluster.Database(b)
			st, err := postgres.Open(b.Context(), postgres.Default(db, dir))
			must.Do(b, err)
			must.Do(b, st.Lead(b.Context()))
			load(&loaded{b: b, exe: exe, dir: dir, db: db, database: cluster.PID()}, st, *loadJobs, *loadFor)
		}
	})
}

// A server that is killed while 64 clients submit has every acknowledged job after its restart.
func TestServer_KilledUnderLoadKeepsAcknowledgedJobs(t *testing.T) {
	t.Parallel()
	const before = 200
	s := &loaded{b: t, exe: testbin.Local.Path(t), dir: t.TempDir()}
	st, err := sqlite.Open(s.dir)
	must.Do(t, err)
	server.Fill(t, st, before)
	must.Do(t, st.Close())
	s.start("start")
	defer stopMarket(s)
	s.user()
	acknowledged := s.killed()
	s.start("start-after-kill")
	s.has(before, acknowledged)
}

func onSQLite(tb testing.TB, exe string, jobs int, each time.Duration) {
	tb.Helper()
	dir := tb.TempDir()
	st, err := sqlite.Open(dir)
	must.Do(tb, err)
	load(&loaded{b: tb, exe: exe, dir: dir}, st, jobs, each)
}

// load fills the store, starts the server, sends requests, kills it and starts it again.
func load(s *loaded, st store.Replica, n int, each time.Duration) {
	began := time.Now()
	server.Fill(s.b, st, n)
	must.Do(s.b, st.Close())
	debug.FreeOSMemory()
	s.b.Logf("fill: %.0f s", time.Since(began).Seconds())
	s.start("restart")
	defer func() { s.kill() }()
	defer stopMarket(s)
	s.user()

	pages := func(_, i int) (int, error) { return s.page(n, i) }
	s.many("page", 1, each, pages)
	sent := s.many("submit", clients, each, s.submit("a"))
	sent += s.many("submit-batches-of-100", clients, each, s.batch)
	s.limit()
	sent += s.many("submit-under-limits", clients, each, s.submit("l"))
	for _, path := range []string{"/metrics", "/v1/server", "/v1/budgets", "/v1/costs"} {
		s.many(path[strings.LastIndexByte(path, '/')+1:], 1, each/4, s.look(path))
	}
	var both sync.WaitGroup
	both.Go(func() { s.many("set-limit", 1, each/2, s.setLimit) })
	s.many("page-while-limits-are-set", 1, each/2, pages)
	both.Wait()
	both.Go(func() { sent += s.many("submit-while-paged", clients, each, s.submit("b")) })
	s.many("page-while-submitting", 1, each, pages)
	both.Wait()
	acknowledged := s.killed()
	s.start("restart-after-kill")
	s.has(n+sent, acknowledged)
}

// has fails unless the server has that many jobs: those acknowledged before the kill, and at most one more per
// client.
func (s *loaded) has(jobs int, acknowledged [][]string) {
	s.b.Helper()
	var v struct {
		Jobs int `json:"jobs"`
	}
	s.ask("GET", "/v1/server", nil, &v)
	for _, list := range acknowledged {
		jobs += len(list)
		if len(list) > 0 { // spot check of one job; the count covers the rest
			s.ask("GET", "/v1/jobs/"+list[len(list)-1], nil, nil)
		}
	}
	if v.Jobs < jobs || v.Jobs > jobs+clients {
		s.b.Fatalf("%d jobs are there after the kill, %d were acknowledged and %d more were asked for at most", v.Jobs,
			jobs, clients)
	}
	s.b.Logf("after kill -9 all %d acknowledged jobs are there", jobs)
}

// many lets n clients repeat a request, and reports the rate, the latency and the processor time.
func (s *loaded) many(name string, n int, each time.Duration, do func(client, i int) (done int, err error)) int {
	s.b.Helper()
	var all sync.WaitGroup
	var total atomic.Int64
	waits := make([][]time.Duration, n)
	spent := s.spent()
	began := time.Now()
	for c := range n {
		all.Go(func() {
			for i := 0; time.Since(began) < each || i == 0; i++ {
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
	w := slices.Concat(waits...)
	if len(w) == 0 {
		s.b.Fatalf("%s: nothing was done", name)
	}
	slices.Sort(w)
	ms := func(share int) float64 { return w[len(w)*share/100].Seconds() * 1e3 }
	rate := float64(total.Load()) / took.Seconds()
	s.metric(rate, name+"/s")
	s.metric(ms(50), name+"-p50-ms")
	s.metric(ms(99), name+"-p99-ms")
	var cpu []string
	for i, now := range s.spent() {
		if i == 2 && s.database == 0 {
			break
		}
		who, used := []string{"server", "load generator", "PostgreSQL"}[i], now-spent[i]
		each := float64(used.Microseconds()) / 1e3 / float64(total.Load())
		cpu = append(cpu, fmt.Sprintf("%s %.0f%% (%.3f ms each)", who, 100*used.Seconds()/took.Seconds(), each))
		if i == 0 {
			s.metric(each, name+"-cpu-ms")
		}
	}
	s.b.Logf("%s: %.0f a second, p50 %.1f ms, p99 %.1f ms, processors: %s", name, rate, ms(50), ms(99),
		strings.Join(cpu, ", "))
	return int(total.Load())
}

// spent returns the processor time of the server, this process and PostgreSQL so far.
func (s *loaded) spent() [3]time.Duration {
	return [3]time.Duration{usedBy(s.b, s.cmd.Process.Pid, false), own(s.b), usedBy(s.b, s.database, true)}
}

// killed kills the server while all clients submit, once it has acknowledged four jobs per client. It returns the
// acknowledged jobs of each client.
func (s *loaded) killed() [][]string {
	s.b.Helper()
	var all sync.WaitGroup
	var answers atomic.Int64
	enough := make(chan struct{})
	acknowledged := make([][]string, clients)
	for c := range clients {
		all.Go(func() {
			do := s.submit("k")
			for i := 0; ; i++ {
				if _, err := do(c, i); err != nil {
					return // it is dead
				}
				acknowledged[c] = append(acknowledged[c], fmt.Sprintf("k-%d-%d", c, i))
				if answers.Add(1) == 4*clients {
					close(enough)
				}
			}
		})
	}
	select {
	case <-enough:
	case <-s.left:
		s.b.Fatal("the server left by itself")
	}
	s.kill()
	all.Wait()
	return acknowledged
}
