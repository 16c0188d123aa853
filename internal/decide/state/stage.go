package state

import (
	"fmt"
	"slices"
	"time"

	"scrimp/internal/work/groups"
	"scrimp/internal/work/pipeline"
)

// StageSettled: a stage of a pipeline is settled without its job. The event has the move.
type StageSettled struct {
	Group string `json:"group"`
	Stage int    `json:"stage"`
}

func (StageSettled) Fact() string { return "stage_settled" }

func init() { reads[StageSettled]() }

// StageJob returns the ID of the job of a stage.
func StageJob(group string, stage *pipeline.Stage) string { return group + "." + stage.Label() }

// StageID returns the ID of the job of the stage at a position.
func (g *Group) StageID(stage int) string { return StageJob(g.Name, &g.Terms.Pipeline.Stages[stage]) }

// stageJob returns the submission of a stage's job, or nil if no stage has that label.
func (g *Group) stageJob(job, label string) *JobSubmitted {
	n := g.Terms.Pipeline.Find(label)
	if n < 0 || job != g.StageID(n) {
		return nil
	}
	b := &JobSubmitted{Job: job, Terms: g.Terms.Stages[n]}
	b.Terms.Index, b.Terms.Stage = n, g.Terms.Pipeline.Stages[n].Name
	return g.owns(b, b.Terms.Stage)
}

// Stage returns the submission of the job of the stage at a position.
func (g *Group) Stage(stage int) *JobSubmitted { return g.member(g.StageID(stage)) }

// stagesSucceeded reports whether every stage is done, apart from those that a gate skipped.
func (g *Group) stagesSucceeded() bool {
	return g.Ends != CancelMembers && !slices.ContainsFunc(g.Stages, func(x groups.Stage) bool {
		return x.Phase == groups.StageFailed || !x.Phase.Settled()
	})
}

// StageRef identifies a stage of a pipeline by its position.
type StageRef struct {
	Group string
	Stage int
}

// scopedKey is a stage key within a project. Members of the project share its outputs.
type scopedKey struct{ team, project, key string }

// stageIndex records which outputs are being made, and which exist.
type stageIndex struct {
	making map[scopedKey]string // ID of the job
	made   map[scopedKey]StageRef
	models map[scopedName]*models
}

func (g *Group) scoped(key string) scopedKey {
	return scopedKey{g.Terms.Owner.Team, g.Terms.Owner.Project, key}
}

// Making returns the job that is making the outputs of that key in the group's project, or "".
func (s *State) Making(g *Group, key string) string { return s.stages.making[g.scoped(key)] }

// MadeOf returns the newest stage with that key in the group's project whose outputs existed when it finished.
func (s *State) MadeOf(g *Group, key string) (ref StageRef, ok bool) {
	ref, ok = s.stages.made[g.scoped(key)]
	return ref, ok
}

// indexStage updates the index after a stage changed.
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

// indexStages indexes all stages of a group.
func (s *State) indexStages(g *Group) {
	for n := range g.Stages {
		s.indexStage(g, n)
	}
}

// StageJobs returns the jobs whose outputs pipelines that are not over may still read, and those with the examples of
// deployed versions or the inputs of warm starts.
func (s *State) StageJobs() map[string]bool {
	jobs := map[string]bool{}
	for _, g := range s.groups {
		if g.Phase == GroupOver {
			continue
		}
		s.warmJobs(jobs, g)
		for n := range g.Stages {
			if g.Stages[n].Job != "" {
				jobs[g.Stages[n].Job] = true
			}
		}
	}
	for _, m := range s.stages.models { // gates and warm starts read what is deployed
		g := s.groups[m.deployed.Group]
		for n := 0; g != nil && n < len(g.Stages); n++ {
			if g.Terms.Pipeline.Stages[n].Examples != "" && g.Stages[n].Job != "" {
				jobs[g.Stages[n].Job] = true
			}
		}
		if g != nil {
			s.warmJobs(jobs, g)
		}
	}
	return jobs
}

// warmJobs adds the jobs whose outputs the warm starts of a pipeline, or of the runs of a schedule, begin with.
func (s *State) warmJobs(jobs map[string]bool, g *Group) {
	if g.Terms.Run != nil {
		g = &Group{Terms: *g.Terms.Run}
	}
	if g.Terms.Pipeline == nil {
		return
	}
	for i := range g.Terms.Pipeline.Stages {
		if w := g.Terms.Pipeline.Stages[i].Warm; w != nil {
			if job, _ := s.WarmOf(g, *w); job != "" {
				jobs[job] = true
			}
		}
	}
}

// WarmOf returns the job whose output a warm start of a pipeline begins with, and the run that deployed it. run is nil
// if no version is deployed; job is "" if no stage of the run made such an output.
func (s *State) WarmOf(g *Group, w pipeline.Warm) (job string, run *Group) {
	ref, _, ok := s.Deployed(g)
	if !ok {
		return "", nil
	}
	run = s.groups[ref.Group]
	if n := run.Terms.Pipeline.MakerOf(w.From); n >= 0 {
		job = run.Stages[n].Job
	}
	return job, run
}

// StageOf returns the pipeline and the stage of a job, or nil if it has none.
func (s *State) StageOf(j *Job) (*Group, *groups.Stage) {
	g := s.groups[j.r.Terms.Group]
	if g == nil || g.Terms.Pipeline == nil || j.r.Terms.Index >= len(g.Stages) {
		return nil, nil
	}
	return g, &g.Stages[j.r.Terms.Index]
}

// stageMove returns the move that an event proposes for a stage.
func stageMove(e *Event, stage int) *groups.Move {
	b := e.Body.(Proposed)
	for i := range b.Moves {
		if of := b.Moves[i].Of; of != nil && of.Stage == stage {
			return &b.Moves[i]
		}
	}
	panic("state: the event does not name the stage")
}

// stageBegins records that the job of a stage starts.
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

// stageEnds records that the job of a stage has ended, or that it continues (by is -1).
func (s *State) stageEnds(j *Job, by int) {
	g, x := s.StageOf(j)
	switch {
	case x == nil:
		return
	case by < 0:
		x.Phase, x.Why, x.Ended = groups.Running, "", time.Time{}
	case j.r.State == Succeeded:
		x.Phase, x.Ended = groups.Made, s.now
	default:
		x.Phase, x.Why = groups.StageFailed, fmt.Sprintf("its job is %s: %s", j.r.State, j.Why())
		if len(j.Attempts()) > 0 { // its program may have run
			x.Since = s.seq
		}
	}
	s.indexStage(g, j.r.Terms.Index)
	s.indexDeploy(g, j.r.Terms.Index)
}

// abandonsStages fails the stages of a group that is over whose outputs nobody has checked: the group ended between
// the end of their jobs and the check. Otherwise they would count as being made for ever.
func (s *State) abandonsStages(g *Group) {
	for n := range g.Stages {
		if x := &g.Stages[n]; x.Phase == groups.Made {
			x.Phase, x.Why, x.Since = groups.StageFailed, "the run ended before its outputs were checked", s.seq
			s.indexStage(g, n)
			s.indexDeploy(g, n)
		}
	}
}

// settlesStage records how a stage was settled.
func (s *State) settlesStage(e *Event, f StageSettled) {
	v, g := stageMove(e, f.Stage), s.groups[f.Group]
	x := &g.Stages[f.Stage]
	x.Why = v.Why
	if v.Do != groups.Keep {
		x.Judged = v.Of.Judged
	}
	switch v.Do {
	case groups.Reuse:
		x.Reuse(*v)
	case groups.Keep:
		x.Phase, x.Product, x.Why, x.Since = groups.Done, v.Of.Product, "", s.seq
	case groups.Skip:
		x.Phase = groups.Skipped
	default:
		if x.Phase == groups.Made { // its job has run
			x.Since = s.seq
		}
		x.Phase = groups.StageFailed
	}
	s.indexStage(g, f.Stage)
	s.indexDeploy(g, f.Stage)
}
