package groups

import (
	"fmt"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/state"
	"scrimp/internal/wire/api"
	"scrimp/internal/work/groups"
	"scrimp/internal/work/pipeline"
)

// stageStates maps phases to their names in the API.
var stageStates = map[groups.StagePhase]string{groups.Waiting: "waiting", groups.Running: "running",
	groups.Made: "keeping", groups.Done: "done",
	groups.Reused: "reused", groups.Skipped: "skipped", groups.StageFailed: "failed"}

// pipelineOf returns the state of a pipeline.
func (d *Service) pipelineOf(k known, g *state.Group) *api.PipelineState {
	v := &api.PipelineState{Stages: make([]api.StageState, 0, len(g.Stages)), GroupLimits: d.limitsOf(k, g)}
	for n := range g.Stages {
		x, spec := &g.Stages[n], &g.Terms.Pipeline.Stages[n]
		s := api.StageState{Name: spec.Name, State: stageStates[x.Phase], Why: x.Why, Job: x.Job, Key: x.Key,
			Inputs: contents(x.Inputs), Outs: contents(x.Outs), Bytes: x.Bytes, Metrics: x.Metrics,
			Params: spec.Params, Program: spec.Program, Gates: verdicts(x.Gates), Spared: x.Spared,
			Sample: spec.Sample, Of: spec.Of, Taken: x.Taken, TakenOf: x.TakenOf}
		if d := x.Drift; d != nil {
			s.Drift = &api.DriftVerdict{PipelineDrift: api.PipelineDrift(d.Drift), Pass: d.Pass, Why: d.Why}
			for _, c := range d.Values {
				s.Drift.Values = append(s.Drift.Values, api.ColumnDrift(c))
			}
		}
		if x.Phase == groups.Waiting && g.Phase == state.GroupOver {
			s.State = "not_begun"
		}
		s.WarmStart = warmStart(x.Warm)
		for _, need := range spec.Needs {
			s.Needs = append(s.Needs, g.Terms.Pipeline.Stages[need].Name)
		}
		if j := k.job(x.Job); j != nil {
			spent := j.Spent(d.Control.Now())
			if x.Phase == groups.StageFailed && j.State() != state.Succeeded {
				s.Why = failure(x.Why, j)
			}
			switch {
			case x.Phase != groups.Reused:
				s.Cost, s.CostOpen = spent, !j.Priced()
				d.times(&s, j)
			case j.Priced():
				s.Saved = &spent
				v.Saved = v.Saved.Add(spent)
			}
		}
		v.Stages = append(v.Stages, s)
	}
	return v
}

// countStages counts a stage that failed as failed, also if its job succeeded without its outputs, or if it had no job
// because its gate could not judge.
func countStages(v *api.Group, k known, g *state.Group) {
	for n := range g.Stages {
		x := &g.Stages[n]
		if x.Phase != groups.StageFailed {
			continue
		}
		j := k.job(x.Job)
		switch {
		case j == nil && x.Job == "":
			v.Failed++
		case j != nil && j.State() == state.Succeeded:
			v.Failed, v.Succeeded = v.Failed+1, v.Succeeded-1
		}
	}
}

// failure says why the job of a stage failed and what to do, in the words of its agent where it has said so.
func failure(why string, j *core.Job) string {
	switch {
	case j.Detail() != "":
		why = "its job failed: " + j.Detail()
	case j.Exit() != 0:
		why = fmt.Sprintf("its job failed with exit code %d", j.Exit())
	}
	return fmt.Sprintf("%s; scrimp logs %s says more, and the next run goes on here", why, j.ID())
}

// warmStart is what a stage began with, for the API.
func warmStart(w *pipeline.Warmed) *api.WarmStart {
	if w == nil {
		return nil
	}
	why := fmt.Sprintf("it began with %s of version %d (%s), at %s", w.From, w.Version, w.Run, w.To)
	if w.Version == 0 {
		why = fmt.Sprintf("it began with %s of the work folder: no version was deployed", w.To)
	}
	return &api.WarmStart{PipelineWarm: api.PipelineWarm(w.Warm), Version: w.Version, Run: w.Run, Digest: w.Digest,
		Why: why}
}

// verdicts are what gates compared, for the API.
func verdicts(list []pipeline.Verdict) (all []api.GateVerdict) {
	for _, v := range list {
		x := api.GateVerdict{Stage: v.Stage, Metric: v.Metric, Pass: v.Pass, Why: v.Why, Value: v.Value, Min: v.Min,
			Max: v.Max, Against: v.Against, Version: v.Version, Run: v.Run, Failed: v.Failed, Base: v.Base, Gain: v.Gain,
			Limit: v.Limit, Goal: v.Goal}
		if v.Interval != nil {
			x.Interval = new(api.GateInterval(*v.Interval))
		}
		all = append(all, x)
	}
	return all
}

func (d *Service) times(s *api.StageState, j *core.Job) {
	if a := j.Attempts(); len(a) > 0 && !a[0].From().IsZero() {
		s.Started = new(d.Control.Clock().ToWall(a[0].From()))
	}
	if !j.Finished().IsZero() {
		s.Finished = new(d.Control.Clock().ToWall(j.Finished()))
	}
}

func contents(list []pipeline.Content) (all []api.StageContent) {
	for _, c := range list {
		all = append(all, api.StageContent(c))
	}
	return all
}
