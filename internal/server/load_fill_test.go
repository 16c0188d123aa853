//go:build !local

package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"scrimp/internal/core"
	"scrimp/internal/ledger"
	"scrimp/internal/money"
	"scrimp/internal/plan"
	"scrimp/internal/server/forecast"
	"scrimp/internal/spec"
	"scrimp/internal/state"
	"scrimp/internal/store"
)

// file is a job file that asks for a machine which no market has.
func file(name string) string {
	j := spec.Default()
	j.Name, j.Team, j.Command = name, "vision", "python train.py --config configs/base.yaml --seed 1"
	j.Resources.CPUs.Min = 100_000
	text, _ := json.Marshal(j) // it never fails
	return string(text)
}

// fill writes a log of that many submissions as the server does, with a snapshot
// at four fifths: as far back as a server lets it be whose jobs all change.
func fill(b testing.TB, st store.Store, n int) {
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
		must(b, err)
		r.Facts, err = state.EncodeFacts(out.Facts)
		must(b, err)
		r.Sample = out.Sample
		if records = append(records, r); len(records) == 1000 {
			flush()
		}
	}
	rules := core.Configured{Config: forecast.Rules(1, nil)}
	text, err := json.Marshal(rules)
	must(b, err)
	step(core.Event{At: at, Schema: core.Schema, Tenant: "default", Actor: "server", Body: rules}, text)
	job := core.JobSubmitted{Job: "NAME", Spec: json.RawMessage(file("NAME")), Terms: core.Terms{
		Name: "NAME", Owner: ledger.Owner{Tenant: "default", Team: "vision"}, Need: plan.Need{Requirements: plan.Requirements{CPUs: 100_000}},
		Currency: money.USD, Priority: 1, Saves: true, Restart: time.Minute, Grace: 20 * time.Second, Nodes: 1, Promise: 0.9,
	}}
	text, err = json.Marshal(job) // once: the names alone differ
	must(b, err)
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
	must(b, <-written)
}

// saveSnapshot writes a snapshot as the server does.
func saveSnapshot(b testing.TB, st store.Store, m *core.Machine) {
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
