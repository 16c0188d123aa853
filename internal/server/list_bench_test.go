package server

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/identity"
	"scrimp/internal/lib/money"
	"scrimp/internal/store"
	"scrimp/internal/store/sqlite"
	"scrimp/internal/wire/api"
)

var (
	listedJobs   = flag.Int("listed-jobs", 20_000, "jobs of BenchmarkJobsPage")
	listedFolder = flag.String("listed-folder", "", "data folders of BenchmarkJobsPage, filled at first use (default: "+
		"new ones)")
)

// listedName returns the name of a job.
func listedName(i int) string {
	return fmt.Sprintf("train-%s-%07d", []string{"lm", "resnet", "bert", "gpt", "vit"}[i*7%5], i)
}

// listedJob returns the record of a job that is over. Jobs differ in name, owner, tags, state, cost and deadline; every
// 97th has no deadline, and one job in 100,000 has the tag rare.
func listedJob(i int, at time.Time) any {
	o := ledger.Owner{Tenant: "default", Team: fmt.Sprint("team-", i%5), Project: fmt.Sprint("p", i%20),
		Tags: map[string]string{"ticket": fmt.Sprint(i % 100)}}
	if i%100_000 == 777 {
		o.Tags["rare"] = "yes"
	}
	id := listedName(i)
	form, err := json.Marshal(paidJob(id, i, at, o))
	if err != nil {
		panic(err)
	}
	var j map[string]any
	if err := json.Unmarshal(form, &j); err != nil {
		panic(err)
	}
	j["event"] = 1
	j["user"] = fmt.Sprint("user-", i%50)
	j["state"] = []core.State{core.Succeeded, core.Succeeded, core.Succeeded, core.Failed, core.Cancelled}[i/3%5]
	j["run"].(map[string]any)["settled"] = money.Picos(int64(i*7919%1_000_003) * 1e7)
	terms := j["terms"].(map[string]any)
	if i%97 != 0 {
		terms["deadline"] = at.Add(time.Duration(i*104729%100_000-50_000) * time.Second)
	}
	if i%10 == 3 {
		terms["group"] = fmt.Sprint("sweep-", i/1000)
	}
	return j
}

// fillListed writes a log with a snapshot at its end. Its n jobs are archived, 16 an event as by a server, or in memory.
func fillListed(b testing.TB, dir string, n int, archived bool) {
	b.Helper()
	st, err := sqlite.Open(dir)
	check(b, err)
	defer func() { check(b, st.Close()) }()
	const each, part = 16, 10_000
	last := uint64((n + part - 1) / part) // event of the snapshot
	if archived {
		last = uint64((n + each - 1) / each)
	}
	span := 20 * time.Hour // a job stays in memory for a day
	if archived {
		span = 365 * 24 * time.Hour
	}
	begin, step := time.Now().UTC().Truncate(time.Second).Add(-span), span/time.Duration(n)
	snap := store.Snapshot{Version: core.SnapshotVersion}
	var records []store.Record
	var facts []state.Fact
	var jobs []json.RawMessage
	event := func(at time.Time) {
		snap.Seq++
		e := core.Event{At: at, Schema: core.Schema, Tenant: "default", Actor: "server", Body: core.Tick{}}
		text, err := e.Append(nil, []byte("{}"))
		check(b, err)
		r := store.Record{Seq: snap.Seq, Tenant: "default", At: at, Kind: "tick", Event: text}
		r.Facts, err = state.EncodeFacts(facts)
		check(b, err)
		if records, facts = append(records, r), nil; len(records) == 500 || snap.Seq == last {
			check(b, st.Append(b.Context(), records))
			records = nil
		}
	}
	for i := range n {
		at := begin.Add(time.Duration(i+1) * step)
		form, err := json.Marshal(listedJob(i, at))
		check(b, err)
		if archived {
			if facts = append(facts, state.JobArchived{Job: listedName(i), Record: form}); len(facts) == each || i == n-1 {
				event(at)
			}
		} else if jobs = append(jobs, form); len(jobs) == 1 {
			event(at)
		}
		if i%part == part-1 || i == n-1 {
			text, err := json.Marshal(map[string]any{"jobs": append([]json.RawMessage{}, jobs...)})
			check(b, err)
			check(b, st.SaveParts(b.Context(), last, map[int]json.RawMessage{snap.Parts: text}))
			snap.New = append(snap.New, snap.Parts)
			snap.Parts, jobs = snap.Parts+1, nil
		}
	}
	empty, err := core.New().Freeze(0).Head()
	check(b, err)
	var head map[string]any
	check(b, json.Unmarshal(empty, &head))
	head["now"], head["seq"], head["order"], head["part"] = time.Now().UTC().Truncate(time.Second), snap.Seq, n, part
	if archived {
		head["archive"] = map[string]any{"jobs": n, "at": snap.Seq, "sum": ledger.Hash{}, "day": 0}
	} else {
		head["jobs"] = n
	}
	snap.State, err = json.Marshal(head)
	check(b, err)
	check(b, st.SaveSnapshot(b.Context(), snap))
}

// jobsPages are the first pages of jobs with each filter, search, order and group that the page offers.
var jobsPages = []string{"", "state=failed", "state=queued", "team=team-3", "user=user-7", "tag=ticket%3D42", "tag=rare",
	"tag=none", "name=resnet", "name=0000777", "name=nothing-has-this", "name=train-lm-*5", "group=sweep-3",
	"live=1", "sort=spent", "sort=rate", "sort=deadline", "sort=name", "sort=state", "sort=spent&team=team-3&state=failed",
	"sort=name&name=bert", "team=team-1&user=user-7", "by=team", "by=user&state=failed", "by=tag&tag=ticket", "project=p3",
	"engine=none"}

// BenchmarkJobsPage requests the page of jobs from a server with many jobs, as a user of all teams and as one of a
// single team: archived ones, and ones in memory. The full size is -listed-jobs 1000000.
func BenchmarkJobsPage(b *testing.B) {
	for _, kind := range []string{"archived", "memory"} {
		b.Run(kind, func(b *testing.B) {
			dir := filepath.Join(*listedFolder, kind)
			if *listedFolder == "" {
				dir = b.TempDir()
			}
			began := time.Now()
			if _, err := os.Stat(filepath.Join(dir, "filled")); err != nil {
				fillListed(b, dir, *listedJobs, kind == "archived")
				check(b, os.WriteFile(filepath.Join(dir, "filled"), nil, 0o600))
			}
			b.Logf("filled after %.1f s", time.Since(began).Seconds())
			w := newWorldOf(b, &firm{}, func(o *Options) { o.Dir, o.Rate = dir, 1e6 })
			for i := range 5 {
				w.must("PUT", fmt.Sprint("/v1/teams/team-", i), api.SetTeam{}, nil)
			}
			all := w.signedIn(w.user("ann", identity.Grant{Team: "*", Role: identity.Admin}))
			one := w.signedIn(w.user("bob", identity.Grant{Team: "team-2", Role: identity.Viewer}))
			for all.ask("GET", "/jobs?name=nothing&limit=1", nil).Code != 200 {
				time.Sleep(time.Second) // the view is being built
			}
			b.Logf("ready after %.1f s", time.Since(began).Seconds())
			for _, query := range jobsPages {
				b.Run("?"+query, func(b *testing.B) {
					began := processor()
					for b.Loop() {
						all.shows("/jobs?"+query, 200)
					}
					b.ReportMetric(float64((processor()-began).Microseconds())/1000/float64(b.N), "cpu-ms/op")
				})
			}
			for _, page := range []string{"/", "/costs", "/costs?by=job"} {
				b.Run(page, func(b *testing.B) {
					began := processor()
					for b.Loop() {
						all.shows(page, 200)
					}
					b.ReportMetric(float64((processor()-began).Microseconds())/1000/float64(b.N), "cpu-ms/op")
				})
			}
			b.Run("of-one-team", func(b *testing.B) {
				for b.Loop() {
					one.shows("/jobs", 200, "team-2")
				}
			})
		})
	}
}
