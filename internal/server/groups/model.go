package groups

import (
	"maps"
	"net/http"
	"slices"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/state"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/reply"
	"scrimp/internal/view"
	"scrimp/internal/wire/api"
	"scrimp/internal/work/groups"
	"scrimp/internal/work/pipeline"
)

// Models lists the versions that pipelines have made, as far as the caller sees them.
func (d *Service) Models(w http.ResponseWriter, r *http.Request) {
	list, c, q := []api.ModelVersion{}, auth.CallerOf(r), r.URL.Query()
	for name := range q {
		if name != "pipeline" && name != "project" {
			reply.Problem(w, http.StatusBadRequest, "the query has no "+name, "give pipeline or project", nil)
			return
		}
	}
	name, project := q.Get("pipeline"), q.Get("project")
	past, ok := d.archived(w, r, func(g view.ArchivedGroup) bool {
		return g.Version > 0 && (name == "" || g.Title == name) && (project == "" || g.Project == project)
	})
	if !ok {
		return
	}
	d.Control.Read(func(m *core.Machine) {
		for _, g := range (known{m: m, past: past}).models() {
			if sees(c, g) && (name == "" || g.Terms.Member.Name == name) &&
				(project == "" || g.Terms.Owner.Project == project) {
				list = append(list, d.model(m, g))
			}
		}
	})
	reply.JSON(w, list)
}

// Model shows the version that a run has made.
func (d *Service) Model(w http.ResponseWriter, r *http.Request) {
	id, found := r.PathValue("id"), false
	var v api.ModelVersion
	d.Control.Group(id, func(m *core.Machine, g *state.Group) {
		if g.Version > 0 && sees(auth.CallerOf(r), g) {
			v, found = d.model(m, g), true
			v.Lineage = lineage(g)
		}
	})
	if !found {
		reply.Problem(w, http.StatusNotFound, id+" has made no version of a model", "scrimp models lists those that have",
			nil)
		return
	}
	reply.JSON(w, v)
}

// model is a version without its lineage.
func (d *Service) model(m *core.Machine, g *state.Group) api.ModelVersion {
	clock, t, n := d.Control.Clock(), &g.Terms, g.Terms.Pipeline.Deploys()
	x := &g.Stages[n]
	v := api.ModelVersion{Pipeline: t.Member.Name, Version: g.Version, Run: g.Name, Team: t.Owner.Team,
		Project: t.Owner.Project, User: g.User(), Currency: t.Member.Currency, Why: x.Why,
		Stage: t.Pipeline.Stages[n].Name, Job: x.Job, Submitted: clock.ToWall(g.Opened),
		Cost: m.GroupSpent(g, d.Control.Now()), Verdict: verdict(g), Metrics: map[string]string{}}
	ref, _, _ := m.State().Deployed(g)
	last := ref.Group == g.Name
	v.State = modelState(g, x, last)
	if broken, _, ok := m.State().Broken(g); ok && (last || broken.Group == g.Name) {
		if v.UnknownSince = broken.Group; last {
			v.State = "unknown"
		}
	}
	v.Deployed = last && v.UnknownSince == ""
	if !g.Finished.IsZero() {
		v.Finished = new(clock.ToWall(g.Finished))
	}
	if !x.Ended.IsZero() && x.Phase == groups.Done {
		v.DeployedAt = new(clock.ToWall(x.Ended))
	} else if j := m.State().Job(x.Job); j != nil && x.Phase == groups.Done && !j.Finished().IsZero() {
		v.DeployedAt = new(clock.ToWall(j.Finished()))
	}
	for i := range g.Stages {
		if t.Pipeline.Stages[i].Sample != "" { // what it reports is not of this version
			continue
		}
		v.Gates = append(v.Gates, verdicts(g.Stages[i].Gates)...)
		for name, value := range g.Stages[i].Metrics {
			v.Metrics[t.Pipeline.Stages[i].Name+"."+name] = value
		}
	}
	return v
}

// modelState is how a version stands, by its run and by the stage that deploys.
func modelState(g *state.Group, x *groups.Stage, deployed bool) string {
	switch {
	case deployed:
		return "deployed"
	case x.Phase == groups.Done:
		return "replaced"
	case x.Phase == groups.Reused:
		return "unchanged"
	case x.Phase == groups.Skipped:
		return "skipped"
	case x.Phase == groups.StageFailed:
		return "failed"
	case g.Phase == state.GroupOver:
		return "ended"
	}
	return "running"
}

// verdict is what all gates of a run say together.
func verdict(g *state.Group) string {
	has, open := false, false
	for i := range g.Stages {
		x := &g.Stages[i]
		gates := len(g.Terms.Pipeline.Stages[i].All())
		switch has = has || gates > 0; {
		case pipeline.Fails(x.Gates) != nil:
			return "not_passed"
		case len(x.Gates) >= gates || x.Phase.Good() || x.Phase == groups.Running || x.Phase == groups.Made:
		case x.Phase == groups.StageFailed:
			return "failed"
		default:
			open = true
		}
	}
	switch {
	case !has:
		return "none"
	case open:
		return "open"
	}
	return "passed"
}

// lineage is what the stages of a run have read and made.
func lineage(g *state.Group) (list []api.ModelStage) {
	for i := range g.Stages {
		x, spec := &g.Stages[i], &g.Terms.Pipeline.Stages[i]
		if spec.Sample != "" { // nothing of the version comes from it
			continue
		}
		list = append(list, api.ModelStage{Stage: spec.Name, State: stageStates[x.Phase], Job: x.Job, Key: x.Key,
			Inputs: contents(x.Inputs), Params: maps.Clone(spec.Params), Program: spec.Program,
			Outs: slices.Clip(contents(x.Outs)), WarmStart: warmStart(x.Warm)})
	}
	return list
}
