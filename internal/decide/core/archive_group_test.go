package core_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/test/must"
	"scrimp/internal/work/groups"
	"scrimp/internal/work/pipeline"
	"scrimp/internal/work/propose"
	"scrimp/internal/work/schedule"
)

// attic is a yard that archives jobs and groups an hour after their end, and keeps their records.
type attic struct {
	*yard
	jobs, groups map[string]json.RawMessage
	read         int // entries of the log that are in the maps
}

func newAttic(t testing.TB) *attic {
	a := &attic{yard: newYard(t, 100), jobs: map[string]json.RawMessage{}, groups: map[string]json.RawMessage{}}
	cfg := *a.m.State().Config()
	cfg.ArchiveAfter, cfg.ArchiveUnbilled = time.Hour, time.Hour
	a.step("", core.Configured{Config: cfg})
	return a
}

// days lets time pass until the groups that are over are archived.
func (a *attic) days(n int) {
	for range 24 * n {
		a.tick(time.Hour)
	}
	for ; a.read < len(a.log); a.read++ {
		for _, f := range a.log[a.read].out.Facts {
			switch f := f.(type) {
			case state.JobArchived:
				a.jobs[f.Job] = f.Record
			case state.JobRehydrated:
				delete(a.jobs, f.Job)
			case state.GroupArchived:
				a.groups[f.Group] = f.Record
			case state.GroupRehydrated:
				delete(a.groups, f.Group)
			}
		}
	}
}

// cost is the sum of the postings of the groups whose name begins with a text, computed from the log.
func (a *attic) cost(group string) (sum money.Amount) {
	for _, x := range a.log {
		for _, p := range x.out.Postings {
			if strings.HasPrefix(p.Owner.Group, group) {
				sum = sum.Add(core.Cost(p))
			}
		}
	}
	return sum
}

// archived returns an archived group, decoded from its record.
func (a *attic) archived(name string) *state.Group {
	a.t.Helper()
	g, err := state.ReadGroup(a.groups[name])
	if err != nil {
		a.t.Fatalf("%s: %v", name, err)
	}
	return g
}

// replays verifies that the log alone yields the state, and continues from a snapshot of it.
func (a *attic) replays() (snapshot []byte) {
	a.t.Helper()
	text, err := a.m.Snapshot()
	must.Do(a.t, err)
	s := state.New()
	for n, x := range a.log {
		s.Replay(uint64(n+1), x.event, x.out.Facts, x.out.Postings)
	}
	if again, _ := s.Snapshot(); !bytes.Equal(again, text) {
		a.t.Fatalf("the log gives\n%.2000s\nnot\n%.2000s", again, text)
	}
	if a.m, err = core.Restore(text); err != nil {
		a.t.Fatal(err)
	}
	return text
}

// sweep runs an array of three members to its end.
func (a *attic) sweep(name string) {
	a.step("", array(name, 3, 3, nil))
	a.tick(20 * time.Minute)
	for n := range 3 {
		a.ends(fmt.Sprintf("%s.%d", name, 10+5*n), n%2)
	}
	a.tick(time.Minute)
}

// A group that is over leaves memory after its members and without a trace. Its record has its end and its cost.
func TestGroupArchive_LeavesNothingInMemory(t *testing.T) {
	a := newAttic(t)
	entities := func() int { return len(a.m.State().Groups()) + a.m.Len() }
	for n := range 12 {
		name := fmt.Sprintf("sweep-%d", 100+n)
		if a.sweep(name); entities() < 4 {
			t.Fatalf("%s has left before its time", name)
		}
		spent := a.m.GroupSpent(a.group(name), a.now)
		a.days(1)
		if entities() > 0 || len(a.groups) != n+1 || a.m.State().ArchivedGroups() != n+1 {
			t.Fatalf("after %s, %d groups and jobs are in memory, and %d groups are archived", name, entities(), len(a.groups))
		}
		g := a.archived(name)
		if a.m.GroupSpent(g, a.now) != spent || spent != a.cost(name) || spent.IsZero() || g.Ended.Succeeded != 2 ||
			g.Ended.Failed != 1 || g.Phase != state.GroupOver || g.Why != core.AllOver {
			t.Errorf("%s is archived with %v, it spent %v, and was posted %v: %+v", name, a.m.GroupSpent(g, a.now), spent,
				a.cost(name), g)
		}
		if text := a.replays(); bytes.Contains(text, []byte(`"groups":[`)) {
			t.Errorf("a snapshot still has groups: %.2000s", text)
		}
	}
}

// A member of an archived group that is resumed belongs to its group as before, and both are archived again.
func TestGroupArchive_ComesBackForAResumedMember(t *testing.T) {
	a := newAttic(t)
	a.sweep("sweep")
	a.days(1)
	a.replays()
	job, group := a.jobs["sweep.15"], a.groups["sweep"]
	back := core.Rehydrated{Job: "sweep.15", Record: job, Hash: state.RecordHash(job)}
	if name := a.m.MissingGroup(back); name != "sweep" {
		t.Fatalf("before its member comes back %q must", name)
	}
	if a.step("", back); a.m.Len() > 0 {
		t.Fatal("a member comes back without its group")
	}
	wrong := bytes.Replace(group, []byte(`"failed":1`), []byte(`"failed":2`), 1)
	for name, b := range map[string]core.RehydratedGroup{
		"another record": {Group: "sweep", Record: wrong, Hash: state.RecordHash(group)},
		"another hash":   {Group: "sweep", Record: group, Hash: state.RecordHash(wrong)},
		"another group":  {Group: "sweeps", Record: group, Hash: state.RecordHash(group)},
		"no record":      {Group: "sweep"},
	} {
		if a.step("", b); len(a.m.State().Groups()) > 0 {
			t.Errorf("%s was taken", name)
		}
	}
	before := a.cost("sweep")
	a.step("", core.RehydratedGroup{Group: "sweep", Record: group, Hash: state.RecordHash(group)})
	a.step("", back)
	if a.tick(10 * time.Minute); a.group("sweep") == nil || a.m.GroupSpent(a.group("sweep"), a.now) != before {
		t.Fatalf("the group comes back as %+v", a.group("sweep"))
	}
	a.step("", core.JobResumed{Job: "sweep.15"})
	if g := a.group("sweep"); g.Open != 1 || g.Ended.Failed != 0 {
		t.Errorf("with a member that goes on the group has %d open and %+v", g.Open, g.Ended)
	}
	a.replays()
	a.days(2)
	if a.group("sweep") == nil {
		t.Fatal("a group with an open member is archived")
	}
	a.ends("sweep.15", 0)
	a.days(1)
	if a.group("sweep") != nil || a.m.Len() > 0 {
		t.Fatalf("%d jobs stay, and the group is %+v", a.m.Len(), a.group("sweep"))
	}
	if g := a.archived("sweep"); g.Ended.Succeeded != 3 || g.Archived != a.cost("sweep") || g.Archived.Cmp(before) <= 0 {
		t.Errorf("it is archived again with %+v and %v, and was posted %v", g.Ended, g.Archived, a.cost("sweep"))
	}
	a.replays()
}

// hourly is a schedule of a pipeline with one stage.
func (a *attic) hourly(runs int) {
	spec, err := pipeline.New([]pipeline.Stage{{Name: "train", Deps: []string{"data"}, Outs: []string{"model"}}})
	must.Do(a.t, err)
	owner := ledger.Owner{Team: "a", Project: "p"}
	member := core.Terms{Name: "nightly", Currency: money.USD, Priority: 1, Restart: time.Minute, Owner: owner}
	run := core.GroupTerms{Kind: groups.Pipeline, AtOnce: 1, Budget: money.Picos(10e12), HasBudget: true, Pipeline: spec,
		Stages: []core.Terms{member}}
	a.step("", core.GroupOpened{Group: "nightly", Terms: core.GroupTerms{Kind: groups.Schedule, Owner: owner, AtOnce: 1,
		Budget: money.Picos(2000e12), HasBudget: true, Member: &member, Run: &run,
		Schedule: &schedule.Spec{Cron: "0 * * * *", Zone: "UTC", Runs: runs}}})
}

// answers runs the planners of the groups that have changed.
func (a *attic) answers() {
	for again := true; again; {
		again = false
		for _, g := range a.m.State().Groups() {
			if g.Phase != state.GroupOpen {
				continue
			}
			s, _ := a.m.GroupSnapshot(g.Name)
			moves := propose.Moves(s)
			for i := range moves {
				if of := moves[i].Of; of != nil {
					of.Key, of.Outs = g.Name, []pipeline.Content{{Path: "model", Digest: g.Name}}
				}
			}
			seq := a.m.State().Seq()
			a.step("", core.Proposed{Group: g.Name, Base: s.Base, Moves: moves})
			again = again || a.m.State().Seq() > seq && len(moves) > 0 && moves[0].Do != groups.Await
		}
	}
}

// An open schedule keeps its last runs in memory, and the sums of the earlier ones.
func TestGroupArchive_ScheduleKeepsItsLastRuns(t *testing.T) {
	const runs = state.RunsKept + 30
	a := newAttic(t)
	a.hourly(runs)
	for n := range runs {
		a.answers()
		a.now = a.group("nightly").Schedule.Due
		a.tick(0)
		a.answers()
		job := state.RunOf("nightly", n+1) + ".train"
		a.tick(10 * time.Minute)
		a.ends(job, 0)
		a.answers()
		a.tick(time.Minute)
		if n%40 == 7 {
			a.days(0)
			a.replays()
		}
		if n == runs-1 {
			break
		}
		if in := len(a.m.State().Groups()) - 1; in > state.RunsKept+4 || in < min(n, state.RunsKept) || a.m.Len() > in+4 {
			t.Fatalf("after %d runs %d runs and %d jobs are in memory", n+1, in, a.m.Len())
		}
		if g := a.group("nightly"); a.m.GroupSpent(g, a.now) != a.cost("nightly") {
			t.Fatalf("after %d runs it has spent %v, and was posted %v", n+1, a.m.GroupSpent(g, a.now), a.cost("nightly"))
		}
	}
	a.answers()
	y := a.group("nightly")
	if y.Phase != state.GroupOver || y.Schedule.Archived.Succeeded < runs-state.RunsKept-4 || y.Schedule.Archived.Failed > 0 {
		t.Fatalf("at the end it is %s, with %+v archived", y.Phase, y.Schedule.Archived)
	}
	spent := a.cost("nightly")
	a.days(3)
	if n := len(a.m.State().Groups()) + a.m.Len(); n > 0 {
		t.Fatalf("%d groups and jobs stay after its end", n)
	}
	g := a.archived("nightly")
	if g.Archived != spent || g.Schedule.Archived.Succeeded != runs || len(g.Schedule.Runs) != state.RunsKept {
		t.Errorf("it is archived with %v and %+v, and was posted %v", g.Archived, g.Schedule.Archived, spent)
	}
	a.replays()
}

// BenchmarkGroupArchive reports what an array of three members leaves in memory and in a snapshot after its end.
func BenchmarkGroupArchive(b *testing.B) {
	for name, after := range map[string]time.Duration{"kept": 0, "jobs-and-groups": time.Hour} {
		b.Run(name, func(b *testing.B) {
			const sweeps = 500
			for b.Loop() {
				a := newAttic(b)
				cfg := *a.m.State().Config()
				cfg.ArchiveAfter, cfg.ArchiveUnbilled = after, after
				a.step("", core.Configured{Config: cfg})
				before := heapBytes()
				for n := range sweeps {
					a.sweep(fmt.Sprintf("sweep-%d", n))
					a.log = nil
				}
				for range 24 * 7 {
					a.tick(time.Hour)
				}
				clear(a.runs)
				a.log = nil
				groups, jobs := len(a.m.State().Groups()), a.m.Len()
				if after > 0 && groups+jobs > 0 {
					b.Fatalf("%d groups and %d jobs stay", groups, jobs)
				}
				b.ReportMetric(float64(heapBytes()-before)/sweeps, "B/group")
				text, err := a.m.Snapshot()
				must.Do(b, err)
				b.ReportMetric(float64(len(text))/sweeps, "snapshotB/group")
				b.ReportMetric(float64(groups+jobs)/sweeps, "entities/group")
			}
		})
	}
}

// heapBytes returns the bytes of all objects in use.
func heapBytes() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
