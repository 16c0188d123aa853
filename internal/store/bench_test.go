//go:build !local

package store_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"scrimp/internal/control"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/state"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/money"
	"scrimp/internal/store"
	"scrimp/internal/store/backup"
	"scrimp/internal/test/pgtest"
	"scrimp/internal/test/storetest"
)

var benchJobs = flag.Int("jobs", 20_000, "jobs in the queue of BenchmarkResident; make bench-server has 1,000,000")

// onBoth runs a benchmark on both databases, durable as in production.
func onBoth(b *testing.B, do func(b *testing.B, backend storetest.Backend)) {
	b.Run("sqlite", func(b *testing.B) { do(b, onSQLite) })
	b.Run("postgres", func(b *testing.B) { do(b, onPostgres(pgtest.Start(b))) })
}

// submission returns the event of a short job file: 0.8 KB.
func submission(tb testing.TB, job string) core.Event {
	tb.Helper()
	j := spec.Default()
	j.Name, j.Command = job, "python train.py --config configs/base.yaml --seed 1 --output $SCRIMP_CHECKPOINT"
	text, err := json.Marshal(j)
	must(tb, err)
	return core.Event{
		At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Schema: core.Schema, Tenant: "default", Actor: "user:somebody", Key: "submit/" + job,
		Body: core.JobSubmitted{Job: job, Spec: text, Terms: core.Terms{
			Name: job, Owner: ledger.Owner{Tenant: "default", Team: "vision", Job: job, Tags: map[string]string{"project": "apollo"}},
			Currency: money.USD, Steps: 1_000_000, Work: 10 * time.Hour, Priority: 1, Saves: true, Restart: time.Minute, Grace: 20 * time.Second,
		}},
	}
}

// recordOf returns the server's record of an event. A queued job has no postings.
func recordOf(tb testing.TB, seq uint64, e core.Event, out core.Outcome) store.Record {
	tb.Helper()
	r := store.Record{Seq: seq, Tenant: e.Tenant, At: e.At, Kind: e.Body.Kind(), Key: e.Key, Postings: out.Postings}
	var err error
	r.Event, err = json.Marshal(e)
	must(tb, err)
	r.Facts, err = state.EncodeFacts(out.Facts)
	must(tb, err)
	r.Sample = out.Sample
	return r
}

// BenchmarkAppend has 64 clients that each wait until their records are durable. Waiting clients share a transaction
// of at most group records.
func BenchmarkAppend(b *testing.B) {
	for _, c := range []struct {
		name                 string
		clients, each, group int // each: records that a client sends at a time
		total                int
	}{
		{"alone", 1, 1, 1, 500},
		{"one-by-one-64-clients-unshared", 64, 1, 1, 1_000},
		{"one-by-one-64-clients", 64, 1, 256, 20_000},
		{"batches-of-100-64-clients", 64, 100, 256, 100_000},
		{"batches-of-100-64-clients-groups-of-2000", 64, 100, 2_000, 100_000},
	} {
		b.Run(c.name, func(b *testing.B) {
			onBoth(b, func(b *testing.B, backend storetest.Backend) {
				example := recordOf(b, 1, submission(b, "j-000001"), core.Outcome{})
				for b.Loop() {
					b.StopTimer()
					place := backend.Place(b)
					s, err := backend.Open(b.Context(), place)
					must(b, err)
					q := &queue{s: s, example: example, group: c.group, requests: make(chan request)}
					var owned sync.WaitGroup
					owned.Go(q.commit)
					b.StartTimer()
					began, used := time.Now(), processor(b)
					waits := q.submit(b, c.clients, c.each, c.total)
					took, cpu := time.Since(began), processor(b)-used
					b.StopTimer()
					close(q.requests)
					owned.Wait()
					end, err := s.End(b.Context())
					must(b, err)
					if end != uint64(c.total) {
						b.Fatalf("%d records are there, want %d", end, c.total)
					}
					must(b, s.Close())
					slices.Sort(waits)
					b.ReportMetric(float64(c.total)/took.Seconds(), "records/s")
					b.ReportMetric(float64(cpu.Microseconds())/float64(c.total), "cpu-us/record")
					b.ReportMetric(float64(waits[len(waits)/2].Microseconds())/1e3, "p50-ms")
					b.ReportMetric(float64(waits[len(waits)*99/100].Microseconds())/1e3, "p99-ms")
					b.ReportMetric(float64(c.total)/float64(q.commits), "records/commit")
					b.StartTimer()
				}
			})
		})
	}
}

// queue is the server's write loop without the core.
type queue struct {
	s        store.Store
	example  store.Record
	group    int
	requests chan request
	commits  int
}

type request struct {
	n    int
	done chan error
}

func (q *queue) commit() {
	next := uint64(1)
	for r := range q.requests {
		batch, n := []request{r}, r.n
	more:
		for n < q.group {
			select {
			case r, ok := <-q.requests:
				if !ok {
					break more
				}
				batch, n = append(batch, r), n+r.n
			default:
				break more
			}
		}
		records := make([]store.Record, n)
		for i := range records {
			records[i] = q.example
			records[i].Seq, records[i].Key = next, fmt.Sprint("submit/", next)
			next++
		}
		err := q.s.Append(context.Background(), records)
		q.commits++
		for _, r := range batch {
			r.done <- err
		}
	}
}

func (q *queue) submit(b *testing.B, clients, each, total int) []time.Duration {
	waits := make([][]time.Duration, clients)
	var all sync.WaitGroup
	rounds := make(chan bool, total/each)
	for range total / each {
		rounds <- true
	}
	close(rounds)
	for i := range clients {
		all.Go(func() {
			for range rounds {
				r := request{n: each, done: make(chan error, 1)}
				began := time.Now()
				q.requests <- r
				if err := <-r.done; err != nil {
					b.Error(err)
				}
				waits[i] = append(waits[i], time.Since(began))
			}
		})
	}
	all.Wait()
	return slices.Concat(waits...)
}

// BenchmarkResident measures a server with many queued jobs: a stop and restart, the read of a page, and a backup. It
// reports the wall time and the processor time of this process for each.
func BenchmarkResident(b *testing.B) {
	onBoth(b, func(b *testing.B, backend storetest.Backend) {
		for b.Loop() {
			resident(b, backend, *benchJobs)
		}
	})
}

// timed reports the time that do takes.
func timed(b *testing.B, name string, do func()) {
	b.Helper()
	began, used := time.Now(), processor(b)
	do()
	wall, cpu := time.Since(began).Seconds(), (processor(b) - used).Seconds()
	b.ReportMetric(wall, name+"-s")
	b.ReportMetric(cpu, name+"-cpu-s")
	b.Logf("%s: %.3f s, %.3f s of processors", name, wall, cpu)
}

// processor returns the processor time that this process has used so far.
func processor(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func resident(b *testing.B, backend storetest.Backend, jobs int) {
	place := backend.Place(b)
	s, err := backend.Open(b.Context(), place)
	must(b, err)
	var m *core.Machine
	timed(b, "fill", func() { m = fill(b, s, jobs) })
	var state json.RawMessage
	timed(b, "encode-snapshot", func() { state, err = m.Snapshot() })
	must(b, err)
	timed(b, "save-snapshot", func() {
		must(b, s.SaveSnapshot(b.Context(), store.Snapshot{Seq: m.Seq(), Version: core.SnapshotVersion, State: state}))
	})
	b.ReportMetric(float64(len(state))/1e6, "snapshot-MB")
	must(b, s.Close())
	runtime.GC()

	var c *control.Control
	timed(b, "restart", func() { // the time that a user waits
		s, err = backend.Open(b.Context(), place)
		must(b, err)
		c, err = control.New(b.Context(), s, nil, control.Config{})
		must(b, err)
	})
	var memory runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&memory)
	b.ReportMetric(float64(memory.HeapAlloc)/1e6, "heap-MB")

	seen := 0
	page := func() {
		c.Read(func(m *core.Machine) {
			for range m.Jobs() {
				if seen++; seen%50 == 0 {
					return
				}
			}
		})
	}
	timed(b, "first-page", page)
	timed(b, "second-page", page)
	if seen != 100 {
		b.Fatalf("two pages of %d jobs: the benchmark does not do the work", seen)
	}
	// This is the store's own part of a restart.
	var snap store.Snapshot
	timed(b, "read-snapshot", func() { snap, _, err = s.LatestSnapshot(b.Context()) })
	must(b, err)
	timed(b, "decode-snapshot", func() { _, err = core.Restore(snap.State) })
	must(b, err)
	var events uint64
	timed(b, "read-log", func() {
		for {
			page, err := s.Records(b.Context(), events, 1000)
			must(b, err)
			if len(page) == 0 {
				return
			}
			events = page[len(page)-1].Seq
		}
	})
	if events <= uint64(jobs) {
		b.Fatalf("%d events of %d jobs", events, jobs)
	}
	var list []store.Record
	timed(b, "page-of-log", func() { list, err = s.RecordsOf(b.Context(), "job_submitted", events/2, 50) })
	must(b, err)
	if len(list) != 50 {
		b.Fatalf("a page of the log has %d events", len(list))
	}
	var size counter
	var sum backup.Sum
	timed(b, "backup", func() { sum, err = backup.Write(b.Context(), s, &size) })
	must(b, err)
	b.ReportMetric(float64(size)/1e6, "backup-MB")
	if sum.End != events {
		b.Fatalf("the backup ends at %d, the log at %d", sum.End, events)
	}
	must(b, s.Close())
}

type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

var _ io.Writer = (*counter)(nil)

// fill submits jobs as the server does, 256 per transaction.
func fill(b *testing.B, s store.Store, n int) *core.Machine {
	b.Helper()
	m := core.New()
	var records []store.Record
	step := func(e core.Event) {
		out := m.Step(e)
		records = append(records, recordOf(b, m.Seq(), e, out))
		if len(records) == 256 {
			must(b, s.Append(context.Background(), records))
			records = records[:0]
		}
	}
	first := submission(b, "j-0000000")
	step(core.Event{At: first.At, Schema: core.Schema, Tenant: "default", Actor: "server", Body: core.Configured{Config: core.DefaultConfig()}})
	body := first.Body.(core.JobSubmitted)
	for i := range n {
		e, job := first, body
		id := fmt.Sprintf("j-%07d", i)
		job.Job, job.Terms.Name, job.Terms.Owner.Job, e.Key = id, id, id, "submit/"+id
		job.Spec = json.RawMessage(strings.ReplaceAll(string(body.Spec), body.Job, id))
		e.Body = job
		step(e)
		if i%100_000 == 99_999 {
			b.Logf("%d jobs", i+1)
		}
	}
	must(b, s.Append(context.Background(), records))
	return m
}
