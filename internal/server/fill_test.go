package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/policy"
	"scrimp/internal/decide/state"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/server/forecast"
	"scrimp/internal/store"
	"scrimp/internal/test/must"
)

// check fails the test on an error.
func check(tb testing.TB, err error) {
	tb.Helper()
	must.Do(tb, err)
}

// File returns a job file for a machine that no market has.
func File(name string) string {
	j := spec.Default()
	j.Name, j.Team, j.Command = name, "vision", "python train.py --config configs/base.yaml --seed 1"
	j.Resources.CPUs.Min = 100_000
	text, _ := json.Marshal(j) // cannot fail
	return string(text)
}

// Fill writes a log of n submissions as the server does, with a snapshot at four fifths: as old as a server lets it
// get while all jobs change.
func Fill(b testing.TB, st store.Store, n int) {
	b.Helper()
	m := core.New()
	at := time.Now().UTC().Add(-time.Hour).Truncate(time.Second)
	batches, written := make(chan []store.Record, 2), make(chan error, 1)
	go func() {
		var failed error
		for records := range batches {
			if failed == nil {
				failed = st.Append(b.Context(), records)
			}
		}
		written <- failed
	}()
	var records []store.Record
	flush := func() {
		batches <- records
		records = make([]store.Record, 0, 1000)
	}
	step := func(e core.Event, body []byte) {
		out := m.Step(e)
		r := store.Record{Seq: m.Seq(), Tenant: e.Tenant, At: e.At, Kind: e.Body.Kind(), Key: e.Key}
		var err error
		r.Event, err = e.Append(nil, body)
		check(b, err)
		r.Facts, err = state.EncodeFacts(out.Facts)
		check(b, err)
		r.Sample = out.Sample
		if records = append(records, r); len(records) == 1000 {
			flush()
		}
	}
	rules := core.Configured{Config: forecast.Rules(1, nil)}
	text, err := json.Marshal(rules)
	check(b, err)
	step(core.Event{At: at, Schema: core.Schema, Tenant: "default", Actor: "server", Body: rules}, text)
	job := core.JobSubmitted{Job: "NAME", Spec: json.RawMessage(File("NAME")), Terms: core.Terms{
		Name: "NAME", Owner: ledger.Owner{Tenant: "default", Team: "vision"}, Need: plan.Need{Requirements: plan.Requirements{CPUs: 100_000}},
		Currency: money.USD, Priority: 1, Saves: true, Restart: time.Minute, Grace: 20 * time.Second, Nodes: 1, Promise: 0.9,
	}}
	text, err = json.Marshal(job) // once: only the names differ
	check(b, err)
	for i := range n {
		id := fmt.Sprintf("j-%07d", i)
		job.Job, job.Terms.Name = id, id
		step(core.Event{At: at, Schema: core.Schema, Tenant: "default", Actor: "user:ann", Key: "ann/" + id, Body: job},
			bytes.ReplaceAll(text, []byte("NAME"), []byte(id)))
		if i == n*4/5 {
			saveSnapshot(b, st, m)
		}
	}
	flush()
	close(batches)
	check(b, <-written)
}

// saveSnapshot writes a snapshot as the server does.
func saveSnapshot(b testing.TB, st store.Store, m *core.Machine) {
	b.Helper()
	f := m.Freeze(0)
	s := store.Snapshot{Seq: f.Seq(), Version: core.SnapshotVersion, Parts: f.Parts()}
	for {
		n, part, more, err := f.Encode()
		check(b, err)
		if !more {
			break
		}
		s.New = append(s.New, n)
		check(b, st.SaveParts(b.Context(), s.Seq, map[int]json.RawMessage{n: part}))
	}
	var err error
	s.State, err = f.Head()
	check(b, err)
	check(b, st.SaveSnapshot(b.Context(), s))
}

// lossMetric is the metric that judges closed jobs.
var lossMetric = policy.Metric{Name: "loss"}

// writing writes a log as the server does, as fast as the core steps.
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

// step applies an event after a time. text is its body in JSON; nil: encode it here.
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
		check(w, err)
	}
	r.Event, err = e.Append(nil, text)
	check(w, err)
	r.Facts, err = state.EncodeFacts(out.Facts)
	check(w, err)
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
	check(w, <-w.written)
}

// FillClosed writes a log of archived and of waiting jobs, with a snapshot of its end.
func FillClosed(b testing.TB, st store.Store, closed, queued int) {
	b.Helper()
	const each = 5 * time.Second // of market time per job
	w := write(b, st, time.Now().UTC().Add(-time.Duration(closed)*each-2*time.Hour).Truncate(time.Second))
	rules := core.Configured{Config: forecast.Rules(1, nil)}
	rules.Config.ArchiveAfter, rules.Config.MaxRunning = time.Minute, 1000
	w.step(0, "", rules, nil)
	offer := market.Offer{ID: "p/z/m/on-demand", Provider: "p", Region: "r", Zone: "z", Machine: "m", Capacity: market.OnDemand, CPUs: 8, Memory: 32 << 30, Speed: 1, Currency: money.USD}
	w.step(0, "", core.MarketSeen{Offers: []market.Offer{offer}, Quotes: []market.Quote{{Offer: offer.ID, Rate: 1e12, Priced: true, Available: true, At: w.at}}}, nil)
	job := core.JobSubmitted{Job: "NAME", Spec: json.RawMessage(File("NAME")), Terms: core.Terms{
		Name: "NAME", Owner: ledger.Owner{Tenant: "default", Team: "vision", Project: "p"}, Need: plan.Need{Requirements: plan.Requirements{CPUs: 1}},
		Currency: money.USD, Priority: 1, Saves: true, Steps: 1000, Restart: time.Minute, Grace: 20 * time.Second, Nodes: 1, Promise: 0.9,
		Metric: lossMetric,
	}}
	text, err := json.Marshal(job) // once: only the names differ
	check(b, err)
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
	check(b, err)
	text = bytes.ReplaceAll(text, []byte(job.Job), []byte("NAME"))
	for i := range queued {
		submit(fmt.Sprintf("q-%07d", i))
	}
	w.end()
	saveSnapshot(b, st, w.m)
}

// run is a job's only attempt: it succeeds, or its user stops it.
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
