package state

import (
	"fmt"
	"slices"

	"scrimp/internal/work/groups"
	"scrimp/internal/work/pipeline"
)

// StageSettled: what became of a stage of a pipeline without its job. The event has the move.
type StageSettled struct {
	Group string `json:"group"`
	Stage int    `json:"stage"`
}

func (StageSettled) Fact() string { return "stage_settled" }

func init() { reads[StageSettled]() }

// StageJob is the name of the job of a stage.
func StageJob(group string, stage *pipeline.Stage) string { return group + "." + stage.Label() }

// StageID is the name of the job of a stage, by its position.
func (g *Group) StageID(stage int) string { return StageJob(g.Name, &g.Terms.Pipeline.Stages[stage]) }

// stageJob is the submission of the job of a stage; nil where there is none of that label.
func (g *Group) stageJob(job, label string) *JobSubmitted {
	n := g.Terms.Pipeline.Find(label)
	if n < 0 || job != g.StageID(n) {
		return nil
	}
	b := &JobSubmitted{Job: job, Terms: g.Terms.Stages[n]}
	b.Terms.Index, b.Terms.Stage = n, g.Terms.Pipeline.Stages[n].Name
	return g.owns(b, b.Terms.Stage)
}

// Stage is the submission of the job of a stage, by its position.
func (g *Group) Stage(stage int) *JobSubmitted { return g.member(g.StageID(stage)) }

// stagesSucceeded reports whether the stages of a pipeline are all there, but for those that a gate skipped.
func (g *Group) stagesSucceeded() bool {
	return g.Ends != CancelMembers && !slices.ContainsFunc(g.Stages, func(x groups.Stage) bool {
		return x.Phase == groups.StageFailed || !x.Phase.Settled()
	})
}

// StageRef is a stage of a pipeline, by its position.
type StageRef struct {
	Group string
	Stage int
}

// scopedKey is the key of a stage in a project, whose members share what was made.
type scopedKey struct{ team, project, key string }

// stageIndex says which outputs are made now, and which were made.
type stageIndex struct {
	making map[scopedKey]string // by the job
	made   map[scopedKey]StageRef
	models map[scopedName]*models
}

func (g *Group) scoped(key string) scopedKey {
	return scopedKey{g.Terms.Owner.Team, g.Terms.Owner.Project, key}
}

// Making is the job that makes what a stage of the group with that key would make; "": none does.
func (s *State) Making(g *Group, key string) string { return s.stages.making[g.scoped(key)] }

// MadeOf is the newest stage with that key in the project of the group whose outputs were there when it was done.
func (s *State) MadeOf(g *Group, key string) (ref StageRef, ok bool) {
	ref, ok = s.stages.made[g.scoped(key)]
	return ref, ok
}

// indexStage notes where a stage stands.
func (s *State) indexStage(g *Group, stage int) {
	x := &g.Stages[stage]
	if x.Key == "" {
		return
	}
	k := g.scoped(x.Key)
	switch x.Phase {
	case groups.Running, groups.Made:
		s.stages.making[k] = x.Job
	case groups.Done:
		if was, ok := s.stages.made[k]; !ok || s.groups[was.Group].Stages[was.Stage].Since <= x.Since {
			s.stages.made[k] = StageRef{g.Name, stage}
		}
		fallthrough
	case groups.Waiting, groups.Reused, groups.Skipped, groups.StageFailed:
		if s.stages.making[k] == x.Job {
			delete(s.stages.making, k)
		}
	}
}

// indexStages notes where all stages of a group stand.
func (s *State) indexStages(g *Group) {
	for n := range g.Stages {
		s.indexStage(g, n)
	}
}

// StageJobs are the jobs whose outputs pipelines that are not over may still read, and those that have the examples of
// deployed versions.
func (s *State) StageJobs() map[string]bool {
	jobs := map[string]bool{}
	for _, g := range s.groups {
		if g.Phase == GroupOver {
			continue
		}
		for n := range g.Stages {
			if g.Stages[n].Job != "" {
				jobs[g.Stages[n].Job] = true
			}
		}
	}
	for _, m := range s.stages.models { // gates compare with the examples of what is deployed
		g := s.groups[m.deployed.Group]
		for n := 0; g != nil && n < len(g.Stages); n++ {
			if g.Terms.Pipeline.Stages[n].Examples != "" && g.Stages[n].Job != "" {
				jobs[g.Stages[n].Job] = true
			}
		}
	}
	return jobs
}

// StageOf are the pipeline and the stage of a job; nil where it is none of a pipeline.
func (s *State) StageOf(j *Job) (*Group, *groups.Stage) {
	g := s.groups[j.r.Terms.Group]
	if g == nil || g.Terms.Pipeline == nil || j.r.Terms.Index >= len(g.Stages) {
		return nil, nil
	}
	return g, &g.Stages[j.r.Terms.Index]
}

// stageMove is what an event proposes for a stage.
func stageMove(e *Event, stage int) *groups.Move {
	b := e.Body.(Proposed)
	for i := range b.Moves {
		if of := b.Moves[i].Of; of != nil && of.Stage == stage {
			return &b.Moves[i]
		}
	}
	panic("state: the event says nothing of the stage")
}

// stageBegins notes that the job of a stage begins.
func (s *State) stageBegins(g *Group, e *Event, j *Job) {
	_, x := s.StageOf(j)
	if x == nil {
		return
	}
	of := stageMove(e, j.r.Terms.Index).Of
	x.Phase, x.Job, x.Key, x.Inputs, x.Why = groups.Running, j.r.ID, of.Key, of.Inputs, ""
	x.Judged = of.Judged
	g.Begun = append(g.Begun, j.r.Terms.Index)
	s.indexStage(g, j.r.Terms.Index)
	s.indexDeploy(g, j.r.Terms.Index)
}

// stageEnds notes that the job of a stage is over, or, with by -1, that it goes on.
func (s *State) stageEnds(j *Job, by int) {
	g, x := s.StageOf(j)
	switch {
	case x == nil:
		return
	case by < 0:
		x.Phase, x.Why = groups.Running, ""
	case j.r.State == Succeeded:
		x.Phase = groups.Made
	default:
		x.Phase, x.Why = groups.StageFailed, fmt.Sprintf("its job is %s: %s", j.r.State, j.Why())
	}
	s.indexStage(g, j.r.Terms.Index)
	s.indexDeploy(g, j.r.Terms.Index)
}

// settlesStage takes what became of a stage.
func (s *State) settlesStage(e *Event, f StageSettled) {
	v, g := stageMove(e, f.Stage), s.groups[f.Group]
	x := &g.Stages[f.Stage]
	x.Why = v.Why
	if v.Do != groups.Keep {
		x.Judged = v.Of.Judged
	}
	switch v.Do {
	case groups.Reuse:
		x.Phase, x.Key, x.Inputs, x.Job, x.Product = groups.Reused, v.Of.Key, v.Of.Inputs, v.Of.From, v.Of.Product
	case groups.Keep:
		x.Phase, x.Product, x.Why, x.Since = groups.Done, v.Of.Product, "", s.seq
	case groups.Skip:
		x.Phase = groups.Skipped
	default:
		x.Phase = groups.StageFailed
	}
	s.indexStage(g, f.Stage)
	s.indexDeploy(g, f.Stage)
}
