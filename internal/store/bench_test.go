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
	"testing"
	"time"

	"scrimp/internal/control"
	"scrimp/internal/core"
	"scrimp/internal/ledger"
	"scrimp/internal/money"
	"scrimp/internal/spec"
	"scrimp/internal/store"
	"scrimp/internal/store/pgtest"
	"scrimp/internal/store/storetest"
)

var benchJobs = flag.Int("jobs", 20_000, "jobs in the queue of BenchmarkResident; make bench-server has 1,000,000")

// onBoth runs a benchmark on both databases, durable as in production.
func onBoth(b *testing.B, do func(b *testing.B, backend storetest.Backend)) {
	b.Run("sqlite", func(b *testing.B) { do(b, sqlite) })
	b.Run("postgres", func(b *testing.B) { do(b, postgres(pgtest.Start(b))) })
}

// submission is the event of a job of usual size, about 2 KB.
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

// recordOf is what the server writes of an event. A queued job has no postings.
func recordOf(tb testing.TB, seq uint64, e core.Event, out core.Outcome) store.Record {
	tb.Helper()
	r := store.Record{Seq: seq, Tenant: e.Tenant, At: e.At, Kind: e.Body.Kind(), Key: e.Key, Postings: out.Postings}
	var err error
	r.Event, err = json.Marshal(e)
	must(tb, err)
	if len(out.Decisions) > 0 {
		r.Decisions, err = json.Marshal(out.Decisions)
		must(tb, err)
	}
	if len(out.Actions) > 0 {
		r.Actions, err = json.Marshal(out.Actions)
		must(tb, err)
	}
	return r
}

// BenchmarkAppend: 64 clients wait each until its records are durable. Whoever
// waits already shares a transaction, of at most so many records.
func BenchmarkAppend(b *testing.B) {
	for _, c := range []struct {
		name                 string
		clients, each, group int // each: records a client sends at a time
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
					began := time.Now()
					waits := q.submit(b, c.clients, c.each, c.total)
					took := time.Since(began)
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
					b.ReportMetric(float64(waits[len(waits)/2].Microseconds())/1e3, "p50-ms")
					b.ReportMetric(float64(waits[len(waits)*99/100].Microseconds())/1e3, "p99-ms")
					b.ReportMetric(float64(c.total)/float64(q.commits), "records/commit")
					b.StartTimer()
				}
			})
		})
	}
}

// queue is the server's loop without the core.
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

// BenchmarkResident: so many jobs wait in the queue. The server is stopped and
// started again; then it is asked for a page, and backed up.
func BenchmarkResident(b *testing.B) {
	onBoth(b, func(b *testing.B, backend storetest.Backend) {
		for b.Loop() {
			b.StopTimer()
			place := backend.Place(b)
			s, err := backend.Open(b.Context(), place)
			must(b, err)
			began := time.Now()
			m := fill(b, s, *benchJobs)
			b.ReportMetric(float64(*benchJobs)/time.Since(began).Seconds(), "filled-jobs/s")

			began = time.Now()
			state, err := m.Snapshot()
			must(b, err)
			b.ReportMetric(time.Since(began).Seconds(), "encode-snapshot-s")
			began = time.Now()
			must(b, s.SaveSnapshot(b.Context(), store.Snapshot{Seq: m.Seq(), Version: core.SnapshotVersion, State: state}))
			b.ReportMetric(time.Since(began).Seconds(), "save-snapshot-s")
			b.ReportMetric(float64(len(state))/1e6, "snapshot-MB")
			must(b, s.Close())
			runtime.GC()

			b.StartTimer() // what a user waits for
			began = time.Now()
			s, err = backend.Open(b.Context(), place)
			must(b, err)
			c, err := control.New(b.Context(), s, nil, "local", control.Config{})
			must(b, err)
			b.ReportMetric(time.Since(began).Seconds(), "restart-s")
			b.StopTimer()
			var memory runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&memory)
			b.ReportMetric(float64(memory.HeapAlloc)/1e6, "heap-MB")

			began = time.Now()
			_, _, err = s.LatestSnapshot(b.Context())
			must(b, err)
			b.ReportMetric(time.Since(began).Seconds(), "read-snapshot-s")
			began = time.Now()
			n := 0
			for after := uint64(0); ; {
				page, err := s.Records(b.Context(), after, 1000)
				must(b, err)
				if len(page) == 0 {
					break
				}
				n, after = n+len(page), page[len(page)-1].Seq
			}
			b.ReportMetric(time.Since(began).Seconds(), "read-log-s")

			began = time.Now()
			jobs := 0
			c.Read(func(m *core.Machine) {
				for range m.Jobs() {
					if jobs++; jobs == 50 {
						break
					}
				}
			})
			b.ReportMetric(float64(time.Since(began).Microseconds())/1e3, "page-ms")
			if jobs != 50 || n < *benchJobs {
				b.Fatalf("a page of %d jobs, and %d events: the benchmark does not do the work", jobs, n)
			}
			began = time.Now()
			page, err := s.RecordsOf(b.Context(), "job_submitted", uint64(n/2), 50)
			must(b, err)
			b.ReportMetric(float64(time.Since(began).Microseconds())/1e3, "page-of-log-ms")
			if len(page) != 50 {
				b.Fatalf("a page of the log has %d events", len(page))
			}

			began = time.Now()
			var size counter
			sum, err := store.Backup(b.Context(), s, &size)
			must(b, err)
			b.ReportMetric(time.Since(began).Seconds(), "backup-s")
			b.ReportMetric(float64(size)/1e6, "backup-MB")
			if sum.End != uint64(n) {
				b.Fatalf("the backup ends at %d", sum.End)
			}
			must(b, s.Close())
			b.StartTimer()
		}
	})
}

type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

var _ io.Writer = (*counter)(nil)

// fill submits jobs as the server does, 256 a transaction.
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
