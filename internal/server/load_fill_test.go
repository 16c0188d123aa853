//go:build !local

package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"scrimp/internal/core"
	"scrimp/internal/ledger"
	"scrimp/internal/money"
	"scrimp/internal/plan"
	"scrimp/internal/server"
	"scrimp/internal/spec"
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
// at four fifths: as far back as a server lets it be.
func fill(b testing.TB, st store.Store, n int) {
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
