package core

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/test/must"
)

// archiving is a machine that archives its jobs, with their records.
type archiving struct {
	*testing.T
	m       *Machine
	now     time.Time
	records map[string][]byte
}

func newArchiving(t *testing.T, after, unbilled time.Duration) *archiving {
	a := &archiving{T: t, m: New(), now: time.Date(2026, 1, 1, 0, 30, 0, 0, time.UTC), records: map[string][]byte{}}
	cfg := DefaultConfig()
	cfg.ArchiveAfter, cfg.ArchiveUnbilled, cfg.MaxRunning = after, unbilled, 100
	a.step(0, Configured{Config: cfg})
	o := market.Offer{ID: "p/z/m/on-demand", Provider: "p", Zone: "z", Machine: "m", Capacity: market.OnDemand, CPUs: 1, Accelerators: 2, Speed: 1, Currency: money.USD}
	a.step(0, MarketSeen{Offers: []market.Offer{o}, Quotes: []market.Quote{{Offer: o.ID, Rate: 1e12, Priced: true, Available: true, At: a.now}}})
	limit := budget.Limit{Scope: "team:t", Window: budget.Month, GPUHours: new(1e6)}
	a.step(0, BudgetsSet{Rules: budget.Rules{Limits: []budget.Limit{limit}}})
	return a
}

func (a *archiving) step(after time.Duration, b Body) Outcome {
	a.now = a.now.Add(after)
	e := Event{At: a.now, Schema: Schema, Tenant: "t", Body: b}
	out := a.m.Step(e)
	for _, f := range out.Facts {
		switch f := f.(type) {
		case state.JobArchived:
			a.records[f.Job] = f.Record
		case state.JobRehydrated:
			delete(a.records, f.Job)
		}
	}
	return out
}

// job runs a job from its submission to the end of its machine, and its bill if it has one.
func (a *archiving) job(id string, end string, bill bool) {
	a.step(time.Minute, JobSubmitted{Job: id, Terms: Terms{Name: id, Owner: ledger.Owner{Team: "t"}, Currency: money.USD, Steps: 100, Saves: true,
		Priority: 1, Restart: time.Minute, GPUHours: 100, Need: plan.Need{Requirements: plan.Requirements{CPUs: 1}}}})
	a.step(time.Second, LaunchDone{Launch: id + ".1", Instance: "i-" + id, Offer: "p/z/m/on-demand", Rate: 1e12, From: a.now})
	a.step(time.Minute, AttemptStarted{Attempt: id + ".1", Message: 1})
	if end == "cancelled" {
		a.step(3*time.Hour, JobEnded{Job: id})
	} else {
		a.step(3*time.Hour, AttemptEnded{Attempt: id + ".1", Message: 2, Reason: "completed", Step: 100})
	}
	a.step(time.Minute, InstanceEnded{Instance: "i-" + id, Until: a.now.Add(time.Minute), Cause: "terminated"})
	if bill {
		a.bill(id, 4e12)
	}
}

func (a *archiving) bill(id string, amount int64) {
	a.step(time.Second, BillReceived{Instance: "i-" + id, Launch: id + ".1", Lines: []BillLine{{Amount: money.Picos(amount), Currency: money.USD}}})
}

func (a *archiving) rehydrate(id string) Outcome {
	record := a.records[id]
	return a.step(time.Second, Rehydrated{Job: id, Record: record, Hash: state.RecordHash(record)})
}

// sums returns every sum over jobs.
func sums(m *Machine) string {
	all, late := map[string]History{}, map[string]History{} // late holds the histories that arrive in parts
	m.books.History(time.Time{}, func(w HistoryOwner, p History) { all[fmt.Sprint(w)] = all[fmt.Sprint(w)].Plus(p) })
	m.books.History(m.Now().Add(-30*time.Hour).Truncate(time.Hour), func(w HistoryOwner, p History) { late[fmt.Sprint(w)] = late[fmt.Sprint(w)].Plus(p) })
	books, _ := m.admission.Books(m.Now())
	return fmt.Sprintf("%+v\n%+v\n%+v\n%v %v %v", m.books.Accounts(m.Now()), all, late, books.Spent, books.GPUs, books.Outstanding)
}

// again returns the machine after a restart from a snapshot.
func again(t *testing.T, m *Machine) *Machine {
	t.Helper()
	text, err := m.Snapshot()
	must.Do(t, err)
	r, err := Restore(text)
	must.Do(t, err)
	return r
}

// Archiving does not change any sum over jobs, not even after a restart or when archived jobs are loaded again. An
// archived job uses no memory here.
func TestArchive_KeepsAllSums(t *testing.T) {
	a, kept := newArchiving(t, time.Hour, time.Hour), newArchiving(t, 0, 0)
	for n := range 6 {
		for _, w := range []*archiving{a, kept} {
			w.job(fmt.Sprint("j", n), []string{"done", "cancelled"}[n%2], n%3 > 0)
			w.step(2*time.Hour, Tick{})
		}
		if x, y := sums(a.m), sums(kept.m); x != y {
			t.Fatalf("with archived jobs:\n%s\nwithout:\n%s", x, y)
		}
		a.m = again(t, a.m)
		if x, y := sums(a.m), sums(kept.m); x != y {
			t.Fatalf("with archived jobs, after a restart:\n%s\nwithout:\n%s", x, y)
		}
	}
	if n, _ := a.m.State().ArchivedJobs(); n < 5 || a.m.Len() != 6-n || len(a.records) != n {
		t.Fatalf("%d jobs are archived, %d are here, and %d records are kept", n, a.m.Len(), len(a.records))
	}
	for _, id := range []string{"j0", "j3"} {
		a.rehydrate(id)
		if _, ok := a.m.Job(id); !ok {
			t.Fatalf("%s is not back", id)
		}
		a.bill(id, 9e12)
		kept.now = kept.now.Add(time.Second)
		kept.bill(id, 9e12)
		kept.now = a.now
		if x, y := sums(a.m), sums(kept.m); x != y {
			t.Fatalf("after a late bill of %s, with archived jobs:\n%s\nwithout:\n%s", id, x, y)
		}
		a.m = again(t, a.m)
		if x, y := sums(a.m), sums(kept.m); x != y {
			t.Fatalf("after a late bill of %s and a restart, with archived jobs:\n%s\nwithout:\n%s", id, x, y)
		}
		before := len(a.records)
		a.step(2*time.Hour, Tick{})
		kept.step(2*time.Hour, Tick{})
		if len(a.records) != before+1 {
			t.Fatalf("%s is not archived again", id)
		}
	}
}

// The core rejects a record that differs from the archived one.
func TestArchive_RefusesAChangedRecord(t *testing.T) {
	a := newArchiving(t, time.Hour, time.Hour)
	a.job("j", "done", true)
	a.step(2*time.Hour, Tick{})
	record := a.records["j"]
	if record == nil {
		t.Fatal("the job is not archived")
	}
	other := slices.Clone(record)
	other[len(other)/2] ^= 1
	for name, b := range map[string]Rehydrated{
		"another record": {Job: "j", Record: other, Hash: state.RecordHash(record)},
		"another hash":   {Job: "j", Record: record, Hash: state.RecordHash(other)},
		"another job":    {Job: "k", Record: record, Hash: state.RecordHash(record)},
		"no record":      {Job: "j"},
	} {
		if out := a.step(time.Second, b); len(out.Facts) > 0 || a.m.Len() > 0 {
			t.Errorf("%s was taken: %v", name, out.Facts)
		}
	}
	if a.rehydrate("j"); a.m.Len() != 1 {
		t.Error("the record itself was not taken")
	}
}

// A job stays until its bill is due, and as long as something refers to it.
func TestArchive_WaitsForBillsAndReferences(t *testing.T) {
	a := newArchiving(t, time.Hour, 48*time.Hour)
	a.job("billed", "done", true)
	a.job("unbilled", "done", false)
	a.step(2*time.Hour, Tick{})
	if _, there := a.m.Job("billed"); there {
		t.Error("a job with its bill stays")
	}
	if _, there := a.m.Job("unbilled"); !there {
		t.Error("a job whose bill may come is archived")
	}
	out := a.step(48*time.Hour, Tick{})
	if _, there := a.m.Job("unbilled"); there {
		t.Error("a job whose bill never came stays for ever")
	}
	if !slices.ContainsFunc(out.Facts, func(f Fact) bool { _, ok := f.(state.JobArchived); return ok }) || out.Sample {
		t.Errorf("the event that archives has the facts %v", out.Facts)
	}
	if got := a.m.jobs.Missing(Event{Body: JobResumed{Job: "billed"}}, Event{Body: BillReceived{Launch: "unbilled.1"}}, Event{Body: JobEnded{}}); !slices.Equal(got, []string{"billed", "unbilled"}) {
		t.Errorf("events are about %v", got)
	}
}
