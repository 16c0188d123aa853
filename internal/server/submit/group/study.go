package group

import (
	"cmp"
	"fmt"
	"net/http"

	"scrimp/internal/decide/core"
	"scrimp/internal/job/spec"
	"scrimp/internal/server/reply"
	"scrimp/internal/wire/api"
	"scrimp/internal/work/groups"
	"scrimp/internal/work/study"
	"scrimp/internal/work/tune"
	"scrimp/internal/work/tune/replay"
)

// ofStudy returns the terms of a study.
func ofStudy(b *api.Study) (t core.GroupTerms, field string, err error) {
	s := &study.Spec{Metric: b.Metric, Maximize: b.Maximize, Searcher: cmp.Or(b.Searcher, "default"), Grid: b.Grid,
		Seed: uint64(max(0, b.Seed)), Trials: b.Trials, Wall: b.WallClock, Final: b.Final}
	if b.Fidelity != nil {
		s.Fidelity = study.Fidelity(*b.Fidelity)
	}
	for _, p := range b.Params {
		s.Params = append(s.Params, study.Param{Name: p.Name, Values: p.Values, Min: p.Min, Max: p.Max, Int: p.Int,
			Log: p.Log, Q: p.Q, Mu: p.Mu, Sigma: p.Sigma})
	}
	t = core.GroupTerms{Kind: groups.Study, AtOnce: b.AtOnce, Study: s}
	if b.AtOnce < 1 || b.AtOnce > 1000 {
		return t, "study.at_once", fmt.Errorf("%d trials at once: give 1 to 1000", b.AtOnce)
	}
	if field, err := s.Check(); err != nil {
		return t, "study." + field, err
	}
	_, err = replay.New(s.Searcher, &tune.Search{Epochs: 1})
	return t, "study.searcher", err
}

// Fits returns why a job cannot be the trial of a study or a whole pipeline; nil: it can.
func Fits(t *core.GroupTerms, j spec.Job) *reply.Refusal {
	if t.Pipeline != nil {
		return fitsPipeline(t, j)
	}
	if t.Study == nil {
		return nil
	}
	no := func(field, title, fix string) *reply.Refusal {
		return &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: field, Title: title, Fix: fix}
	}
	switch {
	case !t.HasBudget || t.Budget.IsZero():
		return no("budget", "a study needs a budget", "write how much the whole search may cost, as budget: $25")
	case j.Metric.Name != t.Study.Metric:
		return no("metric.name", fmt.Sprintf("the study optimizes %q, but the metric of the job is %q", t.Study.Metric,
			j.Metric.Name), "name the same metric in both")
	case (j.Metric.Goal == "maximize") != t.Study.Maximize:
		return no("metric.goal", "the study and the job have different goals", "write the same goal in both")
	case j.Budget.GPUHours > 0:
		return no("budget.gpu_hours", "GPU hours of a study are not supported yet", "give its budget in dollars")
	case j.MostNodes() > 1:
		return no("nodes", "trials on several machines are not supported yet", "leave nodes out")
	case j.Deadline != spec.Deadline{}:
		return no("deadline", "a study has no deadline", "give it a wall clock instead: budget.wall_clock in the study file")
	case t.Study.Resumes() && j.Checkpoint.Dir == "":
		return no("checkpoint.dir", "the searcher "+t.Study.Searcher+" pauses trials and comes back to them",
			"name the folder of checkpoints in checkpoint.dir, or take the searcher asha-stop")
	}
	return nil
}
