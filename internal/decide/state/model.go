package state

import (
	"cmp"
	"slices"

	"scrimp/internal/work/groups"
	"scrimp/internal/work/pipeline"
)

// scopedName is a pipeline by the name that its runs share.
type scopedName struct{ team, project, name string }

// models holds the versions of the model that the runs of a pipeline make.
type models struct {
	runs      []*Group // by version
	newest    int      // the largest version
	deployed  StageRef // the stage that deployed the present version; Group "": none
	since     uint64   // the event that deployed it
	deploying string   // the job that is deploying a version; "": none
	failed    StageRef // the last deploy stage that failed after its job had begun; Group "": none
	failedAt  uint64   // the event at which it failed
}

// modelName returns the pipeline of a run whose stages deploy a model; false: they deploy none.
func (g *Group) modelName() (scopedName, bool) {
	p := g.Terms.Pipeline
	if p == nil || g.Terms.Member == nil || p.Deploys() < 0 {
		return scopedName{}, false
	}
	return scopedName{g.Terms.Owner.Team, g.Terms.Owner.Project, g.Terms.Member.Name}, true
}

// modelsOf returns the versions of the pipeline of a run; nil: it deploys none.
func (s *State) modelsOf(g *Group) *models {
	k, ok := g.modelName()
	if !ok {
		return nil
	}
	return s.stages.models[k]
}

// listsModel adds a run to the versions of its pipeline, with the next version unless it has one. Versions never
// repeat, because the run with the newest one is never archived.
func (s *State) listsModel(g *Group) {
	k, ok := g.modelName()
	if !ok {
		return
	}
	m := s.stages.models[k]
	if m == nil {
		m = &models{}
		s.stages.models[k] = m
	}
	if g.Version == 0 {
		g.Version = m.newest + 1
	}
	m.newest, m.runs = max(m.newest, g.Version), append(m.runs, g)
}

// numbersModels lists the runs of a restored state by version. Runs in a snapshot from before versions existed get
// theirs in the order in which they were opened.
func (s *State) numbersModels() {
	var runs []*Group
	for _, g := range s.Groups() {
		if _, ok := g.modelName(); ok {
			runs = append(runs, g)
		}
	}
	slices.SortStableFunc(runs, func(a, b *Group) int {
		return cmp.Or(cmp.Compare(a.Version, b.Version), a.Opened.Compare(b.Opened), cmp.Compare(a.Event, b.Event),
			cmp.Compare(len(a.Name), len(b.Name)))
	})
	for _, g := range runs {
		s.listsModel(g)
		s.indexDeploy(g, g.Terms.Pipeline.Deploys())
	}
}

// indexDeploy updates the index after a change of the run's stage that deploys.
func (s *State) indexDeploy(g *Group, stage int) {
	if p := g.Terms.Pipeline; !p.Stages[stage].MayDeploy() || stage != p.Deploys() {
		return
	}
	m := s.modelsOf(g)
	if m == nil {
		return
	}
	job, x := g.StageID(stage), &g.Stages[stage]
	if x.Phase != groups.Done && x.Since > m.failedAt { // a job that goes on after a failure keeps its Since
		m.failed, m.failedAt = StageRef{g.Name, stage}, x.Since
	}
	switch x.Phase {
	case groups.Running, groups.Made:
		m.deploying = job
		return
	case groups.Done:
		if x.Since > m.since {
			m.deployed, m.since = StageRef{g.Name, stage}, x.Since
		}
	case groups.Waiting, groups.Reused, groups.Skipped, groups.StageFailed:
	}
	if m.deploying == job {
		m.deploying = ""
	}
}

// Deployed returns the last stage of the run's pipeline that deployed a version, and the event that deployed it; false:
// none has. Its version is still in place unless Broken returns a later stage that failed.
func (s *State) Deployed(g *Group) (ref StageRef, since uint64, ok bool) {
	m := s.modelsOf(g)
	if m == nil || m.deployed.Group == "" {
		return ref, 0, false
	}
	return m.deployed, m.since, true
}

// Broken returns the stage that began to deploy after the last successful one, and failed, with the event of the
// failure. From then on nobody knows which version of the run's pipeline is in place. ok is false if no such stage
// failed.
func (s *State) Broken(g *Group) (ref StageRef, since uint64, ok bool) {
	m := s.modelsOf(g)
	if m == nil || m.failedAt <= m.since {
		return ref, 0, false
	}
	return m.failed, m.failedAt, true
}

// Deploying returns the job that is deploying another version of the run's pipeline; "": none.
func (s *State) Deploying(g *Group) string {
	if m := s.modelsOf(g); m != nil {
		return m.deploying
	}
	return ""
}

// Models returns the runs in memory of all pipelines that deploy a model, by team, project, name and version.
func (s *State) Models() (list []*Group) {
	for _, m := range s.stages.models {
		list = append(list, m.runs...)
	}
	slices.SortFunc(list, CompareModels)
	return list
}

// CompareModels orders runs that deploy a model by team, project, name and version.
func CompareModels(a, b *Group) int {
	x, _ := a.modelName()
	y, _ := b.modelName()
	return cmp.Or(cmp.Compare(x.team, y.team), cmp.Compare(x.project, y.project), cmp.Compare(x.name, y.name),
		cmp.Compare(a.Version, b.Version))
}

// DeployedOf returns the version that the run's pipeline deployed last, with the metrics of its stages, and the run
// whose deploying stage has failed since. It is nil if no such stage has begun, or if no gate of the run compares with
// the version.
func (s *State) DeployedOf(g *Group) *pipeline.Deployed {
	if p := g.Terms.Pipeline; p == nil || !slices.ContainsFunc(p.Stages, func(x pipeline.Stage) bool {
		return x.ComparesDeployed()
	}) {
		return nil
	}
	ref, _, ok := s.Deployed(g)
	broken, _, unknown := s.Broken(g)
	if !ok {
		if unknown {
			return &pipeline.Deployed{Failed: broken.Group}
		}
		return nil
	}
	run := s.groups[ref.Group]
	d := &pipeline.Deployed{Version: run.Version, Run: run.Name, Failed: broken.Group,
		Metrics: map[string]map[string]string{}}
	for n := range run.Stages {
		if m := run.Stages[n].Metrics; m != nil {
			d.Metrics[run.Terms.Pipeline.Stages[n].Name] = m
		}
	}
	return d
}
