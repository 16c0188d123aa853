package server

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/store"
	"scrimp/internal/store/sqlite"
	"scrimp/internal/test/must"
	"scrimp/internal/wire/api"
)

var (
	paidJobs   = flag.Int("paid-jobs", 20_000, "jobs that are over in BenchmarkCosts, with four postings each")
	paidFolder = flag.String("paid-folder", "", "data folder of BenchmarkCosts, filled at its first use (default: a "+
		"new one)")
)

// fillPaid writes the log of finished jobs, spread over the last year, of 100 teams, projects and tickets, with a
// snapshot at its end.
func fillPaid(b *testing.B, dir string, n int) {
	b.Helper()
	st, err := sqlite.Open(dir)
	must.Do(b, err)
	defer func() { _ = st.Close() }()
	now := time.Now().UTC().Truncate(time.Second)
	begin, step := now.AddDate(-1, 0, 0), time.Duration(365*24)*time.Hour/time.Duration(n)
	const part = 10_000
	head := ledger.Hash{}
	snap := store.Snapshot{Seq: uint64(n), Version: core.SnapshotVersion, Parts: (n + part - 1) / part}
	for from := 0; from < n; from += part {
		jobs := make([]json.RawMessage, 0, part)
		records := make([]store.Record, 0, part)
		for i := from; i < min(from+part, n); i++ {
			at := begin.Add(time.Duration(i+1) * step)
			e := core.Event{At: at, Schema: core.Schema, Tenant: "default", Actor: "server", Body: core.Tick{}}
			text, err := e.Append(nil, []byte("{}"))
			must.Do(b, err)
			o := ledger.Owner{Tenant: "default", Team: fmt.Sprint("team-", i%5), Project: fmt.Sprint("p", i%20),
				Tags: map[string]string{"ticket": fmt.Sprint(i % 100)}}
			id := fmt.Sprintf("j-%07d", i)
			whole, err := json.Marshal(paidJob(id, i, at, o))
			must.Do(b, err)
			jobs = append(jobs, whole)
			o.Job, o.Attempt, o.Task, o.Instance = id, id+".1", id+".1/0", "i-"+id
			var list []ledger.Posting
			for _, accounts := range [][2]ledger.Account{
				{ledger.Payable("p"), ledger.Cost(ledger.Compute, ledger.Open)},
				{ledger.Cost(ledger.Compute, ledger.Open), ledger.Cost(ledger.Compute, ledger.StartUp)},
				{ledger.Cost(ledger.Compute, ledger.Open), ledger.Cost(ledger.Compute, ledger.Useful)},
				{ledger.Invoice("p"), ledger.Payable("p")},
			} {
				p, _ := ledger.Move(money.Picos([]int64{3e12, 1e12, 2e12, 3e12}[len(list)]), accounts[0], accounts[1])
				p.Event, p.Line, p.At, p.Currency, p.Owner, p.Category, p.Phase = uint64(i+1), len(list), at, money.USD, o,
					ledger.Compute, ledger.Accrued
				list = append(list, p)
			}
			list, head = ledger.Seal(list, head)
			records = append(records, store.Record{Seq: uint64(i + 1), Tenant: "default", At: at, Kind: "tick", Event: text,
				Postings: list})
		}
		text, err := json.Marshal(map[string]any{"jobs": jobs})
		must.Do(b, err)
		must.Do(b, st.SaveParts(b.Context(), snap.Seq, map[int]json.RawMessage{from / part: text}))
		snap.New = append(snap.New, from/part)
		must.Do(b, st.Append(b.Context(), records))
	}
	empty, err := core.New().Freeze(0).Head()
	must.Do(b, err)
	var fields map[string]any
	must.Do(b, json.Unmarshal(empty, &fields))
	fields["now"], fields["seq"], fields["order"], fields["part"], fields["jobs"], fields["heads"] = now, n, n, part, n,
		map[string]ledger.Hash{"default": head}
	if snap.State, err = json.Marshal(fields); err != nil {
		b.Fatal(err)
	}
	must.Do(b, st.SaveSnapshot(b.Context(), snap))
}

// paidJob returns a job in the form of a snapshot that ran for an hour.
func paidJob(id string, i int, at time.Time, o ledger.Owner) any {
	from, cost := at.Add(-time.Hour), money.Picos(3e12)
	type object = map[string]any
	machine := object{"offer": "firm", "zone": "r-a", "capacity": market.Spot, "provider": "p", "currency": money.USD}
	task := object{"phase": core.Ended, "instance": "i-" + id, "machine": machine, "from": from, "until": at,
		"posted": cost}
	return struct {
		state.JobRecord
		Order    uint64   `json:"order"`
		Run      object   `json:"run"`
		Attempts []object `json:"attempts"`
	}{
		state.JobRecord{
			ID: id, Tenant: "default", State: core.Succeeded, Submitted: from, Event: uint64(i + 1), Finished: at,
			Terms: core.Terms{Name: id, Owner: o, Currency: money.USD},
		},
		uint64(i + 1),
		object{"began": from, "epoch": 1, "closed": 1, "settled": cost, "learned": object{"saved_work_ns": time.Hour}},
		[]object{{"id": id + ".1", "job": id, "epoch": 1, "phase": state.Over, "requested": from, "tasks": []object{task}}},
	}
}

// processor returns the processor time of this process.
func processor() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkCosts requests the costs from a server with many finished jobs.
func BenchmarkCosts(b *testing.B) {
	dir := *paidFolder
	if dir == "" {
		dir = b.TempDir()
	}
	if _, err := os.Stat(filepath.Join(dir, "filled")); err != nil {
		fillPaid(b, dir, *paidJobs)
		must.Do(b, os.WriteFile(filepath.Join(dir, "filled"), nil, 0o600))
	}
	timed := func(what string, f func()) {
		wall, work := time.Now(), processor()
		f()
		b.Logf("%-28s %8.3f s, %8.3f processor seconds", what, time.Since(wall).Seconds(), (processor() - work).Seconds())
		b.ReportMetric(time.Since(wall).Seconds(), what+"-s")
	}
	var w *world
	timed("start", func() { w = newWorldOf(b, &firm{}, func(o *Options) { o.Dir, o.Rate = dir, 1e6 }) })
	for n := range 2 {
		for _, ask := range []string{"by=team", "by=tag:ticket", "by=team&since=1h", "by=tag:ticket&since=30d"} {
			var v api.Costs
			timed(fmt.Sprintf("%s-%d", ask, n), func() { w.must("GET", "/v1/costs?"+ask, nil, &v) })
			jobs := 0
			var spent money.Amount
			for _, l := range v.Lines {
				jobs, spent = jobs+l.Jobs, spent.Add(l.Spent)
			}
			if len(ask) < 14 && (jobs != *paidJobs || spent != money.Picos(3e12*int64(*paidJobs))) {
				b.Fatalf("%s: %d jobs cost %v", ask, jobs, spent)
			}
		}
	}
}
