package core_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
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
)

// models is a world of runs of two pipelines that deploy, with planners that answer late. It derives from the facts
// alone which version is deployed.
type models struct {
	t         testing.TB
	rng       *rand.Rand
	m         *core.Machine
	now       time.Time
	log       []written
	asked     []core.Propose
	live      []string            // attempts whose programs run
	opened    map[string][]string // runs by pipeline, in the order in which they were opened
	version   map[string]int      // by run
	deployed  map[string]string   // by pipeline: the run whose version is in place
	deploying map[string]string   // by pipeline: the job that deploys
	seen      map[string]int
	broken    map[string]string // by pipeline: the run whose deploy stage failed after that; "": none
	launched  map[string]bool   // by job: a program of it may have run
	trusts    bool              // planted: a deploy stage is reused although a later one failed
	late      bool              // a planner has not seen the newest state yet
	archived  map[string]bool   // runs that have left memory
}

// modelsSpec is a pipeline that evaluates and deploys: the pipeline retrain deploys if the new version is better than
// the deployed one, the other one always.
func modelsSpec(t testing.TB, name string) *pipeline.Spec {
	t.Helper()
	gate := &pipeline.Gate{Metric: "acc", MinGain: "1"}
	if name != "retrain" {
		gate = nil
	}
	s, err := pipeline.New([]pipeline.Stage{
		{Name: "evaluate", Deps: []string{"data"}, Outs: []string{"report.json"}, Metrics: []string{"report.json"}},
		{Name: "deploy", Deps: []string{"report.json"}, Outs: []string{"live"}, Gate: gate},
	})
	must.Do(t, err)
	return s
}

func newModels(t testing.TB, seed uint64) *models {
	w := &models{t: t, rng: rand.New(rand.NewPCG(seed, 5)), m: core.New(), now: time.Date(2026, 11, 2, 0, 0, 0, 0, time.UTC), opened: map[string][]string{},
		version: map[string]int{}, deployed: map[string]string{}, deploying: map[string]string{}, seen: map[string]int{},
		broken: map[string]string{}, launched: map[string]bool{}, archived: map[string]bool{}}
	y := newYard(t, 20) // its log opens the market
	if seed%2 == 1 {
		cfg := *y.m.State().Config()
		cfg.ArchiveAfter, cfg.ArchiveUnbilled = 5*time.Minute, 5*time.Minute
		y.step("", core.Configured{Config: cfg})
	}
	w.m, w.log = y.m, y.log
	return w
}

func (w *models) step(b core.Body) {
	w.t.Helper()
	e := core.Event{At: w.now, Schema: core.Schema, Tenant: "t", Body: b}
	out := w.m.Step(e)
	if !out.Nothing {
		w.log = append(w.log, written{e, out})
	}
	for _, f := range out.Facts {
		w.fact(b, f)
	}
	for _, a := range out.Actions {
		switch a := a.(type) {
		case core.Launch:
			w.step(core.LaunchDone{Launch: a.Allocation, Instance: "i-" + a.Allocation, Offer: a.Offer, Rate: 1e12, From: w.now})
			w.launched[w.m.State().AttemptOf(a.Allocation).Job()] = true
			w.step(core.AttemptStarted{Attempt: a.Allocation, Message: 1})
			w.live = append(w.live, a.Allocation)
		case core.Propose:
			w.asked = append(w.asked, a)
		case core.Terminate:
			w.step(core.InstanceEnded{Instance: a.Instance, Until: w.now, Cause: "terminated"})
		}
	}
}

// fact checks a fact about a stage that deploys against the expected state, and updates that.
func (w *models) fact(b core.Body, f state.Fact) {
	w.t.Helper()
	switch f := f.(type) {
	case state.GroupArchived:
		w.archived[f.Group] = true
		w.seen["a run is archived"]++
	case state.GroupGranted:
		name := w.m.State().Group(f.Group).Terms.Member.Name
		w.opened[name] = append(w.opened[name], f.Group)
		w.version[f.Group] = len(w.opened[name])
	case state.JobQueued:
		g, stage := w.of(f.Job)
		if stage != 1 {
			return
		}
		name := g.Terms.Member.Name
		if other := w.deploying[name]; other != "" {
			w.t.Errorf("%s deploys while %s does", f.Job, other)
		}
		w.deploying[name] = f.Job
		w.holds(g, g.Stages[1].Gates)
	case state.JobOver:
		g, stage := w.of(f.Job)
		if stage == 1 && f.State != core.Succeeded {
			delete(w.deploying, g.Terms.Member.Name)
			w.seen["a deploy "+string(f.State)]++
			if w.launched[f.Job] {
				w.broken[g.Terms.Member.Name] = g.Name
			}
		}
	case state.GroupFinished:
		g := w.m.State().Group(f.Group)
		if name := g.Terms.Member.Name; w.deploying[name] == g.StageID(1) { // nobody has checked what its job deployed
			delete(w.deploying, name)
			w.broken[name] = g.Name
			w.seen["a deploy is not checked"]++
		}
	case state.StageSettled:
		g := w.m.State().Group(f.Group)
		name, x := g.Terms.Member.Name, g.Stages[f.Stage]
		w.seen["a stage is "+string(x.Phase)]++
		if f.Stage != 1 {
			return
		}
		switch x.Phase {
		case groups.Reused:
			was := w.deployed[name]
			if was == "" || w.broken[name] != "" || w.deploying[name] != "" || w.model(was) != w.model(f.Group) {
				w.t.Errorf("%s reuses the deploy stage: deployed is %q, failed is %q, and %q deploys", f.Group, was,
					w.broken[name], w.deploying[name])
			}
		case groups.Done:
			w.deployed[name] = f.Group
			delete(w.broken, name)
			delete(w.deploying, name)
		case groups.Skipped:
			if len(x.Gates) > 0 {
				w.holds(g, x.Gates)
			}
		default:
		}
	}
}

// holds checks that a gate compared with the deployed version.
func (w *models) holds(g *state.Group, gates []pipeline.Verdict) {
	w.t.Helper()
	name := g.Terms.Member.Name
	run := w.deployed[name]
	if name != "retrain" {
		return
	}
	if run != "" && len(gates) == 1 && gates[0].Failed != w.broken[name] {
		w.t.Errorf("%s was compared as %+v, and the deploy stage of %q has failed", g.Name, gates, w.broken[name])
	}
	if len(gates) != 1 || gates[0].Run != run || gates[0].Version != w.version[run] || gates[0].Value != w.accuracy(g.Name) {
		w.t.Errorf("%s was compared as %+v, and in place is %q, version %d", g.Name, gates, run, w.version[run])
		return
	}
	want := run == "" || int(w.accuracy(g.Name)[0]-'0') > int(w.accuracy(run)[0]-'0')
	if gates[0].Pass != want {
		w.t.Errorf("%s with %s against %s of %s passes: %v", g.Name, gates[0].Value, gates[0].Base, run, gates[0].Pass)
	}
}

// of returns the run and the stage of a job; -1: the job is not a stage of a pipeline.
func (w *models) of(job string) (*state.Group, int) {
	for _, g := range w.m.State().Groups() {
		for n := range g.Stages {
			if g.StageID(n) == job {
				return g, n
			}
		}
	}
	return nil, -1
}

// accuracy is the accuracy that a run reaches: one digit.
func (w *models) accuracy(run string) string {
	sum := uint64(0)
	for _, c := range []byte(run) {
		sum = sum*31 + uint64(c)
	}
	return fmt.Sprint(rand.New(rand.NewPCG(sum, 1)).IntN(10))
}

// model is the content that a run deploys.
func (w *models) model(run string) string { return "model" + string(w.accuracy(run)[0]%3+'0') }

// reuses turns a move that starts a deploy stage into one that reuses it, as the server does, if the deployed version
// is the same.
func (w *models) reuses(s groups.Snapshot, v *groups.Move) {
	g := w.m.State().Group(s.Group)
	ref, _, ok := w.m.State().Deployed(g)
	_, _, broken := w.m.State().Broken(g)
	if w.trusts {
		broken = false
	}
	if !ok || broken {
		return
	}
	if was := w.m.State().Group(ref.Group).Stages[ref.Stage]; was.Key == v.Of.Key {
		v.Do, v.Of.From, v.Of.Product = groups.Reuse, was.Job, was.Product
	}
}

// plans answers one of the planners with a state from some steps ago.
func (w *models) plans(lag int) {
	w.t.Helper()
	n := w.rng.IntN(len(w.asked))
	a := w.asked[n]
	w.asked = append(w.asked[:n], w.asked[n+1:]...)
	s, ok := w.m.GroupSnapshot(a.Group)
	if !ok {
		return
	}
	moves := propose.Moves(s)
	for i := range moves {
		v := &moves[i]
		if v.Of == nil {
			continue
		}
		switch v.Do {
		case groups.Start:
			v.Of.Key = s.Group + s.Pipeline.Stages[v.Of.Stage].Name
			if v.Of.Stage == 1 && s.Pipeline.Stages[1].Gate == nil {
				v.Of.Key = w.model(s.Group)
				w.reuses(s, v)
			}
		case groups.Keep:
			v.Of.Outs = []pipeline.Content{{Path: s.Pipeline.Stages[v.Of.Stage].Outs[0], Digest: s.Group}}
			if v.Of.Stage == 0 {
				v.Of.Metrics = map[string]string{"acc": w.accuracy(s.Group)}
			}
		default:
		}
	}
	was := w.late
	w.late = true
	for range lag {
		w.happens()
	}
	w.late = was
	w.step(core.Proposed{Group: a.Group, Base: s.Base, Moves: moves})
}

// happens takes one random step.
func (w *models) happens() {
	w.t.Helper()
	switch n := w.rng.IntN(10); {
	case n < 2:
		w.now = w.now.Add(time.Duration(1+w.rng.IntN(120)) * time.Second)
		w.step(core.Tick{})
	case n < 5 && len(w.live) > 0:
		k := w.rng.IntN(len(w.live))
		id := w.live[k]
		w.live = append(w.live[:k], w.live[k+1:]...)
		if a := w.m.State().AttemptOf(id); a == nil {
			return
		}
		reason, exit := "completed", 0
		if w.rng.IntN(8) == 0 {
			reason, exit = "failed", 1
		}
		w.step(core.AttemptEnded{Attempt: id, Message: 2, Reason: reason, Exit: exit})
	case n < 9 && len(w.asked) > 0 && w.late:
		w.plans(0)
	case n < 9 && len(w.asked) > 0:
		w.plans(w.rng.IntN(6))
	}
}

func (w *models) opens(n int) {
	w.t.Helper()
	owner := ledger.Owner{Team: "a", Project: "p"}
	name := []string{"retrain", "other"}[w.rng.IntN(2)]
	member := core.Terms{Name: name, Currency: money.USD, Priority: 1, Restart: time.Minute, Owner: owner}
	t := core.GroupTerms{Kind: groups.Pipeline, Owner: owner, AtOnce: 2, Member: &member, Budget: money.Picos(100e12), HasBudget: true,
		Pipeline: modelsSpec(w.t, name), Stages: []core.Terms{member, member}}
	w.step(core.GroupOpened{Group: fmt.Sprint("run", n), Terms: t})
}

// cancels ends a run, or one with a stage that deploys.
func (w *models) cancels(run string) {
	w.t.Helper()
	if job := w.deploying["other"]; job != "" && w.rng.IntN(2) == 0 {
		g, _ := w.of(job)
		run = g.Name
	}
	for _, g := range w.m.State().Groups() { // its job is over, and nobody has checked its outputs
		if g.Phase == state.GroupOpen && g.Stages[1].Phase == groups.Made && w.rng.IntN(2) == 0 {
			run = g.Name
		}
	}
	w.step(core.GroupClosed{Group: run, Members: state.CancelMembers})
}

// check compares the versions and the deployed one with the expected state.
func (w *models) check() {
	w.t.Helper()
	var list []string
	count := map[string]int{}
	for _, g := range w.m.State().Models() {
		name := g.Terms.Member.Name
		for count[name]++; w.archived[w.opened[name][count[name]-1]]; {
			count[name]++
		}
		if g.Version != count[name] || g.Version != w.version[g.Name] {
			w.t.Errorf("%s is version %d, want %d", g.Name, g.Version, w.version[g.Name])
		}
		ref, _, ok := w.m.State().Deployed(g)
		if ref.Group != w.deployed[name] || ok != (w.deployed[name] != "") {
			w.t.Errorf("in place of %s is %q, want %q", name, ref.Group, w.deployed[name])
		}
		if ref, _, _ := w.m.State().Broken(g); ref.Group != w.broken[name] {
			w.t.Errorf("the failed deploy stage of %s is that of %q, want %q", name, ref.Group, w.broken[name])
		}
		if is := w.m.State().Deploying(g); is != w.deploying[name] {
			w.t.Errorf("%q deploys %s, want %q", is, name, w.deploying[name])
		}
		list = append(list, g.Name)
	}
	if len(list)+len(w.archived) != len(w.version) {
		w.t.Errorf("there are the versions %v of %v, and %v are archived", list, w.version, w.archived)
	}
}

// restarts continues from a snapshot. Planners that were asked before never answer.
func (w *models) restarts() {
	w.t.Helper()
	text, err := w.m.Snapshot()
	must.Do(w.t, err)
	s := state.New()
	for n, x := range w.log {
		s.Replay(uint64(n+1), x.event, x.out.Facts, x.out.Postings)
	}
	if again, _ := s.Snapshot(); !bytes.Equal(again, text) {
		w.t.Fatalf("the log gives\n%s\nnot\n%s", again, text)
	}
	if w.m, err = core.Restore(text); err != nil {
		w.t.Fatal(err)
	}
	w.m.Break(core.Faults{Trusts: w.trusts})
	w.asked = nil
}

// counted is a testing.TB that counts errors and goes on.
type counted struct {
	testing.TB
	wrong int
}

func (c *counted) Helper()               {}
func (c *counted) Errorf(string, ...any) { c.wrong++ }
func (c *counted) Failed() bool          { return false }

// The test notices a deploy stage that is reused although a later one has failed.
func TestModels_TestNoticesReuseAfterAFailedDeploy(t *testing.T) {
	for seed := range uint64(40) {
		c := &counted{TB: t}
		w := newModels(c, seed)
		w.trusts = true
		w.m.Break(core.Faults{Trusts: true})
		w.lives()
		if c.wrong > 0 {
			return
		}
	}
	t.Error("40 lives notice nothing")
}

// lives takes 600 random steps, or fewer if one is wrong.
func (w *models) lives() {
	w.t.Helper()
	runs := 0
	for n := range 600 {
		switch {
		case n < 400 && w.rng.IntN(25) == 0:
			runs++
			w.opens(runs)
		case runs > 0 && w.rng.IntN(40) == 0:
			w.cancels(fmt.Sprint("run", 1+w.rng.IntN(runs)))
		case w.rng.IntN(60) == 0:
			w.restarts()
			w.seen["a restart"]++
		default:
			w.happens()
		}
		if w.check(); w.t.Failed() {
			w.t.Logf("at step %d", n)
			return
		}
	}
	w.restarts()
}

// Concurrent runs, failing programs, cancelled runs, late planners and restarts never repeat a version. At most one
// version is deployed, and at most one run deploys at a time. Each gate compares with the version that was deployed
// when its stage began or was skipped. The log alone gives the same verdicts.
func TestModels_HaveUniqueVersionsAndGatesUseTheDeployedOne(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(40) {
		w := newModels(t, seed)
		if w.lives(); t.Failed() {
			t.Fatalf("seed %d", seed)
		}
		for what, n := range w.seen {
			seen[what] += n
		}
	}
	for _, what := range []string{"a stage is done", "a stage is skipped", "a stage is reused", "a deploy failed",
		"a deploy cancelled", "a deploy is not checked", "a restart", "a run is archived"} {
		if seen[what] < 3 {
			t.Errorf("%s %d times: the test does not get there: %v", what, seen[what], seen)
		}
	}
}

// Runs in a snapshot from before versions existed get the versions that they would have got.
func TestModels_OfAnOldSnapshotAreNumbered(t *testing.T) {
	w := newModels(t, 2) // archives nothing
	for n := range 12 {
		w.opens(n + 1)
		w.now = w.now.Add(time.Minute)
		for range 20 {
			w.happens()
		}
	}
	text, err := w.m.Snapshot()
	must.Do(t, err)
	var all map[string]any
	d := json.NewDecoder(bytes.NewReader(text))
	if d.UseNumber(); d.Decode(&all) != nil {
		t.Fatalf("%.200s", text)
	}
	removed := 0
	var strip func(v any)
	strip = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if _, group := v["phase"]; group && v["terms"] != nil && v["version"] != nil {
				delete(v, "version")
				removed++
			}
			for _, x := range v {
				strip(x)
			}
		case []any:
			for _, x := range v {
				strip(x)
			}
		}
	}
	strip(all)
	old, err := json.Marshal(all)
	if err != nil || removed != 12 {
		t.Fatalf("%d versions were removed, want 12: %v", removed, err)
	}
	if w.m, err = core.Restore(old); err != nil {
		t.Fatal(err)
	}
	w.check()
}
