//go:build !local

package server_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"runtime/debug"
	"slices"
	"syscall"
	"testing"
	"time"

	"scrimp/internal/core"
	"scrimp/internal/ledger"
	"scrimp/internal/market"
	"scrimp/internal/money"
	"scrimp/internal/plan"
	"scrimp/internal/policy"
	"scrimp/internal/server/forecast"
	"scrimp/internal/state"
	"scrimp/internal/store"
	"scrimp/internal/store/pgtest"
	"scrimp/internal/test/testbin"
)

var (
	closedJobs = flag.Int("closed", 2_000, "archived jobs of BenchmarkReading")
	queuedJobs = flag.Int("queued", 200, "jobs in the queue of BenchmarkReading")
)

// lossMetric is what closed jobs are judged by.
var lossMetric = policy.Metric{Name: "loss"}

// writing is a log that is written as the server writes it, as fast as the core steps.
type writing struct {
	testing.TB
	m       *core.Machine
	at      time.Time
	records []store.Record
	batches chan []store.Record
	written chan error
}

func write(b testing.TB, st store.Store, at time.Time) *writing {
	w := &writing{TB: b, m: core.New(), at: at, batches: make(chan []store.Record, 2), written: make(chan error, 1)}
	go func() {
		var failed error
		for records := range w.batches {
			if failed == nil {
				failed = st.Append(b.Context(), records)
			}
		}
		w.written <- failed
	}()
	return w
}

// step takes an event some time later. text is its body in JSON; nil: it is encoded here.
func (w *writing) step(after time.Duration, key string, body core.Body, text []byte) {
	w.Helper()
	w.at = w.at.Add(after)
	e := core.Event{At: w.at, Schema: core.Schema, Tenant: "default", Actor: "user:ann", Key: key, Body: body}
	out := w.m.Step(e)
	if out.Nothing {
		return
	}
	r := store.Record{Seq: w.m.Seq(), Tenant: e.Tenant, At: e.At, Kind: body.Kind(), Key: key, Sample: out.Sample, Postings: out.Postings}
	var err error
	if text == nil {
		text, err = json.Marshal(body)
		must(w, err)
	}
	r.Event, err = e.Append(nil, text)
	must(w, err)
	r.Facts, err = state.EncodeFacts(out.Facts)
	must(w, err)
	if w.records = append(w.records, r); len(w.records) == 1000 {
		w.flush()
	}
}

func (w *writing) flush() {
	w.batches <- w.records
	w.records = make([]store.Record, 0, 1000)
}

func (w *writing) end() {
	w.Helper()
	w.flush()
	close(w.batches)
	must(w, <-w.written)
}

// fillClosed writes a log of jobs that are archived and of jobs that wait, with a snapshot of its end.
func fillClosed(b testing.TB, st store.Store, closed, queued int) {
	b.Helper()
	const each = 5 * time.Second // of market time, a job
	w := write(b, st, time.Now().UTC().Add(-time.Duration(closed)*each-2*time.Hour).Truncate(time.Second))
	rules := core.Configured{Config: forecast.Rules(1, nil)}
	rules.Config.ArchiveAfter, rules.Config.MaxRunning = time.Minute, 1000
	w.step(0, "", rules, nil)
	offer := market.Offer{ID: "p/z/m/on-demand", Provider: "p", Region: "r", Zone: "z", Machine: "m", Capacity: market.OnDemand, CPUs: 8, Memory: 32 << 30, Speed: 1, Currency: money.USD}
	w.step(0, "", core.MarketSeen{Offers: []market.Offer{offer}, Quotes: []market.Quote{{Offer: offer.ID, Rate: 1e12, Priced: true, Available: true, At: w.at}}}, nil)
	job := core.JobSubmitted{Job: "NAME", Spec: json.RawMessage(file("NAME")), Terms: core.Terms{
		Name: "NAME", Owner: ledger.Owner{Tenant: "default", Team: "vision", Project: "p"}, Need: plan.Need{Requirements: plan.Requirements{CPUs: 1}},
		Currency: money.USD, Priority: 1, Saves: true, Steps: 1000, Restart: time.Minute, Grace: 20 * time.Second, Nodes: 1, Promise: 0.9,
		Metric: lossMetric,
	}}
	text, err := json.Marshal(job) // once: the names alone differ
	must(b, err)
	submit := func(id string) {
		job.Job, job.Terms.Name = id, id
		w.step(0, "ann/"+id, job, bytes.ReplaceAll(text, []byte("NAME"), []byte(id)))
	}
	for i := range closed {
		id := fmt.Sprintf("c-%07d", i)
		submit(id)
		w.run(id, offer, i%10 == 9)
		if i%8 == 7 {
			w.step(0, "", core.Tick{}, nil)
		}
	}
	w.step(time.Hour, "", core.Tick{}, nil)
	for last := -1; last != w.m.Len(); {
		last = w.m.Len()
		w.step(time.Second, "", core.Tick{}, nil)
	}
	if n := w.m.Len(); n > 0 {
		b.Fatalf("%d jobs are not archived", n)
	}
	job.Terms.Need.CPUs = 100_000
	text, err = json.Marshal(job)
	must(b, err)
	text = bytes.ReplaceAll(text, []byte(job.Job), []byte("NAME"))
	for i := range queued {
		submit(fmt.Sprintf("q-%07d", i))
	}
	w.end()
	saveSnapshot(b, st, w.m)
}

// run is a job's only attempt: it succeeds, or is stopped by its user.
func (w *writing) run(id string, offer market.Offer, stopped bool) {
	attempt, instance := id+".1", "i-"+id
	w.step(time.Second, "", core.LaunchDone{Launch: attempt, Instance: instance, Offer: offer.ID, Rate: 1e12, From: w.at}, nil)
	w.step(time.Second, "", core.AttemptStarted{Attempt: attempt, Message: 1}, nil)
	w.step(time.Second, "", core.Progressed{Attempt: attempt, Message: 2, Step: 500, Metrics: map[string]float64{"loss": 1.5},
		Values: lossMetric.Of(w.at, 500, 0, map[string]float64{"loss": 1.5}, nil)}, nil)
	if stopped {
		w.step(time.Second, "", core.JobEnded{Job: id}, nil)
	} else {
		w.step(time.Second, "", core.AttemptEnded{Attempt: attempt, Message: 3, Reason: "completed", Step: 1000}, nil)
	}
	w.step(time.Second, "", core.InstanceEnded{Instance: instance, Until: w.at, Cause: "terminated"}, nil)
	w.step(0, "", core.BillReceived{Instance: instance, Launch: attempt, Lines: []core.BillLine{{Amount: money.Picos(3e9), Currency: money.USD}}}, nil)
}

// onClosed fills a store and starts a server on it twice: the first puts the log in order by job.
func onClosed(s *loaded, st store.Replica, closed, queued int) {
	began := time.Now()
	fillClosed(s.b, st, closed, queued)
	must(s.b, st.Close())
	debug.FreeOSMemory()
	s.b.Logf("fill: %.0f s", time.Since(began).Seconds())
	s.start("first-start")
	s.user()
	began = time.Now()
	for s.try("GET", fmt.Sprintf("/v1/jobs/c-%07d/explain", closed-1), nil, nil) != nil && time.Since(began) < 20*time.Minute {
		pause(100 * time.Millisecond)
	}
	s.b.Logf("the log is in order by job after %.1f s", time.Since(began).Seconds())
	must(s.b, s.cmd.Process.Signal(syscall.SIGTERM)) // one that is killed keeps its lease for a while
	<-s.left
	s.start("restart")
}

// BenchmarkReading asks a server whose log is mostly of archived jobs for some of them: the
// full size is -closed 1000000 -queued 100000.
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
			st, err := store.Open(dir)
			must(b, err)
			read(&loaded{b: b, exe: exe, dir: dir}, st)
		}
	})
	b.Run("postgres", func(b *testing.B) {
		cluster := pgtest.Start(b)
		for b.Loop() {
			dir, db := b.TempDir(), cluster.Database(b)
			st, err := store.OpenPostgres(b.Context(), store.DefaultPostgres(db, dir))
			must(b, err)
			must(b, st.Lead(b.Context()))
			read(&loaded{b: b, exe: exe, dir: dir, db: db, database: cluster.PID()}, st)
		}
	})
}

// Archived jobs are read, listed, named and taken up again as if they were there.
func TestArchivedJobsAreThereForTheirReaders(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes 10 s")
	}
	const closed, queued = 300, 20
	dir := t.TempDir()
	st, err := store.Open(dir)
	must(t, err)
	s := &loaded{b: t, exe: testbin.Full.Path(t), dir: dir}
	onClosed(s, st, closed, queued)
	defer func() { s.kill() }()
	defer stopMarket(s)

	var j struct {
		ID, State string
		Closed    bool
	}
	s.ask("GET", "/v1/jobs/c-0000003", nil, &j)
	if j.ID != "c-0000003" || j.State != "succeeded" || !j.Closed {
		t.Errorf("an archived job is shown as %+v", j)
	}
	var receipt struct {
		Cost   string
		Ledger struct {
			Agrees   bool
			Postings int
		}
		Tries []struct{ Attempt string }
		Loss  []struct{ Value float64 }
	}
	s.ask("GET", "/v1/jobs/c-0000003/receipt", nil, &receipt)
	if !receipt.Ledger.Agrees || receipt.Ledger.Postings == 0 || len(receipt.Tries) != 1 || len(receipt.Loss) != 1 {
		t.Errorf("the receipt of an archived job is %+v", receipt)
	}
	var decisions []struct{ Take string }
	s.ask("GET", "/v1/jobs/c-0000003/explain", nil, &decisions)
	if len(decisions) == 0 || decisions[0].Take == "" {
		t.Errorf("the decisions about an archived job are %+v", decisions)
	}

	for _, query := range []string{"", "&before="} {
		seen, next := []string{}, ""
		for {
			path := "/v1/jobs?limit=37" + query + next
			if next != "" && query == "" {
				path = "/v1/jobs?limit=37&after=" + next
			}
			var page []struct{ ID string }
			s.ask("GET", path, nil, &page)
			if len(page) == 0 {
				break
			}
			names := []string{}
			for _, j := range page {
				names = append(names, j.ID)
			}
			if next = names[len(names)-1]; query != "" {
				next = names[0]
				seen = append(names, seen...)
			} else {
				seen = append(seen, names...)
			}
		}
		if !slices.IsSorted(seen) || len(slices.Compact(slices.Clone(seen))) != closed+queued || len(seen) != closed+queued {
			t.Errorf("pages %q show %d jobs, want %d in order", query, len(seen), closed+queued)
		}
	}
	var stopped []struct{ ID, State string }
	s.ask("GET", "/v1/jobs?state=cancelled", nil, &stopped)
	if len(stopped) != closed/10 {
		t.Errorf("%d cancelled jobs are listed, want %d", len(stopped), closed/10)
	}

	s.ask("POST", "/v1/jobs", map[string]any{"spec": json.RawMessage(file("c-0000004"))}, &j)
	if j.ID != "c-0000004-2" {
		t.Errorf("a job by the name of an archived one became %s", j.ID)
	}
	var costs struct {
		Lines []struct {
			Name string
			Jobs int
		}
	}
	s.owner.ask("GET", "/v1/costs?by=job", nil, &costs)
	if len(costs.Lines) != closed {
		t.Errorf("costs are listed of %d jobs, want %d", len(costs.Lines), closed)
	}
	s.owner.ask("GET", "/v1/costs", nil, &costs)
	if len(costs.Lines) != 1 || costs.Lines[0].Jobs != closed {
		t.Errorf("costs by team: %+v, want %d jobs", costs.Lines, closed)
	}
	s.ask("POST", "/v1/jobs/c-0000009/resume", map[string]any{}, &j)
	if j.State != "queued" && j.State != "running" {
		t.Errorf("an archived job that is resumed is %s", j.State)
	}
	var verified struct {
		OK      bool
		Problem string
		Jobs    int
	}
	s.owner.ask("GET", "/v1/ledger/verify", nil, &verified)
	if !verified.OK || verified.Jobs != closed+queued+1 {
		t.Errorf("verify says %+v, want %d jobs", verified, closed+queued+1)
	}
}
