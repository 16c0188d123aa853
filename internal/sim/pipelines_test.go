package sim

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/work/groups"
	"scrimp/internal/work/pipeline"
)

// drawPipelines submits, in some lives without an array or study, two pipelines of one project that share some stage
// keys. Its own random source leaves the other lives unchanged.
func (w *World) drawPipelines(gpus int) {
	rng := rand.New(rand.NewPCG(w.seed, 0xf10e))
	if w.calm5() || w.array != nil || w.study != nil || rng.IntN(2) > 0 {
		return
	}
	main := w.rng
	w.rng = rng
	defer func() { w.rng = main }()
	w.stages, w.members, w.look = map[string]*simJob{}, w.begins, w.looks
	at := 10*time.Minute + time.Duration(rng.IntN(20*60))*time.Minute
	for _, name := range []string{"flow", "again"} {
		b := w.drawPipeline(name, gpus)
		if name == "again" && rng.IntN(3) == 0 {
			b = scheduled(b, rng)
			w.conditional(b.Terms.Schedule)
		}
		w.after(at, func() { w.opensPipeline(b) })
		w.after(at+96*time.Hour, func() { w.closesPipeline(name, state.CancelMembers) })
		if rng.IntN(6) == 0 {
			ends := []state.EndMembers{state.LetMembers, state.StopMembers, state.CancelMembers}[rng.IntN(3)]
			w.after(at+time.Duration(rng.IntN(20*60))*time.Minute, func() { w.closesPipeline(name, ends) })
		}
		at += time.Duration(rng.IntN(10*60)) * time.Minute
	}
}

// drawPipeline draws stages. Each reads the outputs of some earlier ones.
func (w *World) drawPipeline(name string, gpus int) core.GroupOpened {
	b := core.GroupOpened{Group: name, Terms: core.GroupTerms{Kind: groups.Pipeline, AtOnce: 1 + w.rng.IntN(3),
		Owner: ledger.Owner{Team: "team0", Project: "p"}, Grace: 3 * time.Minute, HasBudget: true}}
	limits := rand.New(rand.NewPCG(w.seed, uint64(len(name))+0x11a1))
	switch limits.IntN(3) {
	case 0:
		b.Terms.GPUHours = float64(gpus) * (0.2 + 4*limits.Float64())
	case 1:
		b.Terms.WallClock = time.Duration((1 + 9*limits.Float64()) * float64(time.Hour))
	}
	var list []pipeline.Stage
	hours := 0.0
	for n := range 1 + w.rng.IntN(5) {
		s := pipeline.Stage{Name: fmt.Sprint("s", n), Outs: []string{fmt.Sprint("out", n)}, Deps: []string{"data"},
			Program: fmt.Sprint(n, w.rng.IntN(2)), Always: w.rng.IntN(10) == 0}
		for before := range n {
			if w.rng.IntN(2) == 0 {
				s.Deps = append(s.Deps, fmt.Sprint("out", before))
			}
		}
		if n > 0 && w.rng.IntN(4) == 0 {
			s.Gate = &pipeline.Gate{Metric: s.Deps[len(s.Deps)-1], Min: "5"}
			if s.Gate.Metric == "data" {
				s.Gate = nil
			}
		}
		s.Metrics = s.Outs
		list = append(list, s)
	}
	for n := range list { // the gate judges the stage that is read last
		if g := list[n].Gate; g != nil {
			g.Metric = "s" + g.Metric[len("out"):] + ".value"
		}
	}
	w.drawDeploy(name, list)
	spec, err := pipeline.New(list)
	if err != nil {
		w.breaks("pipeline: it is not valid: %v", err)
		return b
	}
	b.Terms.Pipeline = spec
	for n := range spec.Stages {
		one := w.drawJob(name+"."+spec.Stages[n].Label(), gpus)
		t := &one.terms
		t.Owner, t.DeadlineFirst, t.Deadline = b.Terms.Owner, false, time.Time{}
		t.Budget, t.HasBudget, t.WallClock, t.GPUHours, t.IdleLimit = money.Amount{}, false, 0, 0, 0
		t.Nodes, t.LeastNodes = 0, 0
		one.dips, one.hangs = 0, 0
		w.stages[one.id] = &one
		hours += t.Work.Hours()
		b.Terms.Stages, b.Specs = append(b.Terms.Stages, *t), append(b.Specs, one.spec)
		whole := *t
		whole.Name = "model" // name shared by the versions of all pipelines
		b.Spec, b.Terms.Member = one.spec, &whole
	}
	b.Terms.Budget = usd(hours * (0.5 + 4*w.rng.Float64()))
	return b
}

func (w *World) opensPipeline(b core.GroupOpened) {
	if !w.step(b) {
		w.after(time.Minute, func() { w.opensPipeline(b) })
		return
	}
	if w.group(b.Group) == nil {
		w.saw("a pipeline is refused")
	}
}

func (w *World) closesPipeline(name string, ends state.EndMembers) {
	if w.group(name) != nil {
		w.insist(core.GroupClosed{Group: name, Members: ends})
	}
}

// looks answers a planner's questions about stage files: a stage's outputs are a function of its key, and some stages
// have none.
func (w *World) looks(s groups.Snapshot, moves []groups.Move) []groups.Move {
	for i := range moves {
		v := &moves[i]
		if v.Do == groups.Start && v.Run != nil && s.Schedule.When.Any() {
			*v = w.weighs(&s, *v)
		}
		if v.Of == nil {
			continue
		}
		stage := &s.Pipeline.Stages[v.Of.Stage]
		switch v.Do {
		case groups.Start:
			inputs := []pipeline.Content{{Path: "data", Digest: "d"}}
			for _, n := range s.Pipeline.Reads(v.Of.Stage) {
				inputs = append(inputs, s.Stages[n].Outs...)
			}
			v.Of.Key, v.Of.Inputs = stage.Key(inputs), inputs
			g := w.group(s.Group)
			if was, ok := w.reusable(g, v.Of.Stage, v.Of.Key); ok && !stage.Always {
				v.Do, v.Of.From, v.Of.Product = groups.Reuse, was.Job, was.Product
			}
		case groups.Keep:
			key := s.Stages[v.Of.Stage].Key
			if key[0] == '0' {
				v.Do, v.Why = groups.Fail, "it has made nothing"
				continue
			}
			v.Of.Outs = []pipeline.Content{{Path: stage.Outs[0], Digest: key}}
			v.Of.Metrics = map[string]string{"value": fmt.Sprint(int(key[1]) % 10)}
		case groups.Pause, groups.Resume, groups.Stop, groups.Finish, groups.Reuse, groups.Fail, groups.Skip, groups.Await:
		}
	}
	// Programs are in a list, and only the last can be removed again, so this is a random one of the starting stages.
	rng := rand.New(rand.NewPCG(w.seed, s.Base))
	starts := 0
	for _, v := range moves {
		if v.Do == groups.Start {
			starts++
		}
	}
	keep := rng.IntN(max(1, starts))
	return slices.DeleteFunc(moves, func(v groups.Move) bool {
		if v.Do != groups.Start {
			return false
		}
		keep--
		return keep != -1
	})
}

// flow is what the twin knows about pipelines from the facts alone.
type flow struct {
	outs map[string]string // by stage: digest of its outputs, made or reused
	runs map[string]string // by key: the running stage
	made map[string]bool   // keys whose outputs exist
	keys map[string]string // by stage: its key at its start
	deploys
}

func newFlow() flow {
	return flow{outs: map[string]string{}, runs: map[string]string{}, made: map[string]bool{}, keys: map[string]string{},
		deploys: deploys{stages: map[string]bool{}}}
}

func (f flow) clone() flow {
	return flow{maps.Clone(f.outs), maps.Clone(f.runs), maps.Clone(f.made), maps.Clone(f.keys), f.deploys.clone()}
}

// pipelines verifies that a stage starts after its dependencies and with their outputs, that no two stages make the
// same output at once, that only existing outputs are reused, and that stages together get no more than their
// pipeline's budget.
func (t *twin) pipelines(e core.Event, out core.Outcome) {
	w := t.w
	if w.stages == nil {
		return
	}
	t.withinHours(e)
	b, proposed := e.Body.(core.Proposed)
	for _, f := range out.Facts {
		switch f := f.(type) {
		case state.JobQueued:
			if g := w.group(b.Group); proposed && g != nil && g.Terms.Pipeline != nil {
				t.stageBegins(g, f.Job, b.Moves)
			}
		case state.JobOver:
			t.deployEnds(f)
			if key := t.flow.keys[f.Job]; key != "" && f.State != core.Succeeded && t.flow.runs[key] == f.Job {
				delete(t.flow.runs, key)
			}
		case state.StageSettled:
			g := w.group(f.Group)
			id, x := g.StageID(f.Stage), g.Stages[f.Stage]
			w.saw("a stage is " + string(x.Phase))
			t.deploySettles(g, f.Stage)
			if x.Phase == groups.Reused && !t.flow.made[x.Key] {
				w.breaks("pipeline: %s reuses what was not made", id)
			}
			if x.Phase == groups.Done {
				t.flow.made[x.Key] = true
			}
			if x.Phase.Good() {
				t.flow.outs[id] = x.Outs[0].Digest
			}
			if t.flow.runs[x.Key] == id {
				delete(t.flow.runs, x.Key)
			}
		case state.GroupFinished:
			if g := w.group(f.Group); g.Terms.Pipeline != nil {
				w.saw("a pipeline is over")
				w.saw("a pipeline is over: " + g.Why)
				t.deployAbandoned(g)
				for n, x := range g.Stages {
					if f.Why == core.AllOver && !x.Phase.Settled() {
						w.breaks("pipeline: it is over, and stage %d is %q", n, x.Phase)
					}
					if t.flow.runs[x.Key] == g.StageID(n) { // its outputs were never checked, so it made nothing
						delete(t.flow.runs, x.Key)
					}
				}
			}
		}
	}
	t.schedules(b, out)
	if g := w.group(b.Group); proposed && g != nil && g.Terms.Pipeline != nil && begins(out) {
		given := money.Amount{}
		for n := range g.Began {
			if j, ok := w.known(g.MemberID(n)); ok {
				given = given.Add(claim(w, j))
			}
		}
		if given.Cmp(g.Terms.Budget) > 0 {
			w.breaks("pipeline: its stages may cost %v, and it has %v", given, g.Terms.Budget)
		}
		if g.Open > g.Terms.AtOnce {
			w.breaks("pipeline: %d stages run, at most %d may", g.Open, g.Terms.AtOnce)
		}
	}
}

// withinHours verifies that the stages of an open pipeline have not used more than its GPU-hours. scrimp ends nothing
// until it knows its machines.
func (t *twin) withinHours(e core.Event) {
	for _, name := range []string{"flow", "again"} {
		g := t.w.group(name)
		if g == nil || g.Terms.GPUHours == 0 || g.Phase != state.GroupOpen || t.w.m.State().Undecided() {
			continue
		}
		if used, _ := t.w.m.GPUTime(g, e.At); used.Hours() > g.Terms.GPUHours {
			t.w.breaks("pipeline: the stages of %s have used %v, and it has %g GPU-hours", name, used, g.Terms.GPUHours)
		}
	}
}

// stageBegins compares the start of a stage with what is known about its dependencies.
func (t *twin) stageBegins(g *state.Group, job string, moves []groups.Move) {
	w := t.w
	for _, v := range moves {
		if v.Do != groups.Start || g.StageID(v.Of.Stage) != job {
			continue
		}
		w.saw("a stage begins")
		for _, n := range g.Terms.Pipeline.Stages[v.Of.Stage].Needs {
			made, ok := t.flow.outs[g.StageID(n)]
			if !ok {
				w.breaks("pipeline: %s begins before %s is done", job, g.StageID(n))
				continue
			}
			found := false
			for _, i := range v.Of.Inputs {
				found = found || i.Digest == made
			}
			if !found {
				w.breaks("pipeline: %s begins with other inputs than %s has made", job, g.StageID(n))
			}
		}
		if other := t.flow.runs[v.Of.Key]; other != "" {
			w.breaks("pipeline: %s makes what %s makes already", job, other)
		}
		t.flow.runs[v.Of.Key], t.flow.keys[job] = job, v.Of.Key
		t.deployBegins(g, job, v.Of.Stage)
	}
}
