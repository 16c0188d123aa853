package sim

import (
	"maps"
	"math/rand/v2"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/state"
	"scrimp/internal/work/groups"
	"scrimp/internal/work/pipeline"
)

// drawDeploy lets a stage of some pipelines deploy. It has its own random source. All pipelines of a life deploy the
// same model.
func (w *World) drawDeploy(name string, list []pipeline.Stage) {
	rng := rand.New(rand.NewPCG(w.seed, 0xdeb1+uint64(len(name))))
	if rng.IntN(3) == 0 {
		list[rng.IntN(len(list))].Deploy = true
	}
}

// reusable returns the stage whose outputs a stage with that key may reuse: for a stage that deploys, only the stage
// whose version is in place.
func (w *World) reusable(g *state.Group, stage int, key string) (groups.Stage, bool) {
	s := w.m.State()
	ref, ok := s.MadeOf(g, key)
	if stage == g.Terms.Pipeline.Deploys() {
		ref, _, ok = s.Deployed(g)
		_, _, broken := s.Broken(g)
		ok = ok && !broken
	}
	if !ok {
		return groups.Stage{}, false
	}
	was := w.group(ref.Group).Stages[ref.Stage]
	return was, was.Key == key
}

// deploys is what the twin derives about the model from the facts alone.
type deploys struct {
	now    string // the stage that is deploying a version; "": none
	last   string // the job whose version is in place; "": none, or nobody knows
	stages map[string]bool
}

func (d deploys) clone() deploys {
	d.stages = maps.Clone(d.stages)
	return d
}

// deployBegins verifies that no other stage is deploying when one begins to deploy.
func (t *twin) deployBegins(g *state.Group, job string, stage int) {
	d := &t.flow.deploys
	if stage != g.Terms.Pipeline.Deploys() {
		return
	}
	t.w.saw("a stage deploys")
	if d.now != "" && d.now != job {
		t.w.breaks("pipeline: %s deploys while %s does", job, d.now)
	}
	d.now, d.stages[job] = job, true
}

// deployEnds records that the job of a stage has ended without success.
func (t *twin) deployEnds(f state.JobOver) {
	d := &t.flow.deploys
	if d.stages[f.Job] && f.State != core.Succeeded {
		if d.last = ""; d.now == f.Job {
			d.now = ""
		}
	}
}

// deploySettles verifies that a stage is reused only while its version is in place.
func (t *twin) deploySettles(g *state.Group, stage int) {
	d, x, id := &t.flow.deploys, &g.Stages[stage], g.StageID(stage)
	if stage != g.Terms.Pipeline.Deploys() {
		return
	}
	switch x.Phase {
	case groups.Reused:
		t.w.saw("a deploy is reused")
		if x.Job != d.last || d.now != "" {
			t.w.breaks("pipeline: %s reuses the deploy of %s, in place is that of %q, and %q deploys", id, x.Job, d.last, d.now)
		}
	case groups.Done:
		d.last = id
	case groups.StageFailed:
		if d.stages[id] { // its job has run
			d.last = ""
		}
	case groups.Waiting, groups.Running, groups.Made, groups.Skipped:
	}
	if d.now == id && x.Phase.Settled() {
		d.now = ""
	}
}

// deployAbandoned records that a run has ended although nobody has checked what it deployed.
func (t *twin) deployAbandoned(g *state.Group) {
	d, n := &t.flow.deploys, g.Terms.Pipeline.Deploys()
	if n >= 0 && d.now == g.StageID(n) {
		d.now, d.last = "", ""
	}
}
