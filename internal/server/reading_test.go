package server_test

import (
	"flag"
	"fmt"
	"runtime/debug"
	"slices"
	"syscall"
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
	closedJobs = flag.Int("closed", 2_000, "archived jobs of BenchmarkReading")
	queuedJobs = flag.Int("queued", 200, "jobs in the queue of BenchmarkReading")
)

// onClosed fills a store and starts a server on it twice: the first one orders the log by job.
func onClosed(s *loaded, st store.Replica, closed, queued int) {
	began := time.Now()
	server.FillClosed(s.b, st, closed, queued)
	must.Do(s.b, st.Close())
	debug.FreeOSMemory()
	s.b.Logf("fill: %.0f s", time.Since(began).Seconds())
	s.start("first-start")
	s.user()
	began = time.Now()
	for s.try("GET", fmt.Sprintf("/v1/jobs/c-%07d/explain", closed-1), nil, nil) != nil {
		pause(100 * time.Millisecond)
	}
	s.b.Logf("the log is in order by job after %.1f s", time.Since(began).Seconds())
	must.Do(s.b, s.cmd.Process.Signal(syscall.SIGTERM)) // a killed server keeps its lease for a while
	<-s.left
	s.start("restart")
}

// BenchmarkReading reads jobs from a server whose log is mostly of archived jobs; the full size is -closed 1000000
// -queued 100000.
func BenchmarkReading(b *testing.B) {
	exe := testbin.Full.Path(b)
	read := func(s *loaded, st store.Replica) {
		onClosed(s, st, *closedJobs, *queuedJobs)
		defer func() { s.kill() }()
		defer stopMarket(s)
		for _, what := range []string{"", "/explain", "/receipt", "/metric"} {
			const asked = 200
			took := make([]time.Duration, asked)
			for i := range asked {
				began := time.Now()
				s.ask("GET", fmt.Sprintf("/v1/jobs/c-%07d%s", (i*7919)%*closedJobs, what), nil, nil)
				took[i] = time.Since(began)
			}
			slices.Sort(took)
			name := what
			if name == "" {
				name = "/job"
			}
			s.metric(float64(took[asked/2].Microseconds())/1000, name[1:]+"-ms")
			s.metric(float64(took[asked-1].Microseconds())/1000, name[1:]+"-max-ms")
		}
		s.many("page", 1, time.Second, func(_, i int) (int, error) {
			return 1, s.try("GET", []string{"/v1/jobs?limit=50", "/v1/jobs?limit=50&before="}[i%2], nil, nil)
		})
		s.metric(float64(s.memory()>>20), "MB")
	}
	b.Run("sqlite", func(b *testing.B) {
		for b.Loop() {
			dir := b.TempDir()
			st, err := sqlite.Open(dir)
			must.Do(b, err)
			read(&loaded{b: b, exe: exe, dir: dir}, st)
		}
	})
	b.Run("postgres", func(b *testing.B) {
		cluster := pgtest.Start(b)
		for b.Loop() {
			dir, db := b.TempDir(), cluster.Database(b)
			st, err := postgres.Open(b.Context(), postgres.Default(db, dir))
			must.Do(b, err)
			must.Do(b, st.Lead(b.Context()))
			read(&loaded{b: b, exe: exe, dir: dir, db: db, database: cluster.PID()}, st)
		}
	})
}
