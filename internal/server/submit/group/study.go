package group

import (
	"cmp"
	"fmt"
	"net/http"

	"scrimp/internal/decide/core"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/money"
	"scrimp/internal/server/reply"
	"scrimp/internal/wire/api"
	"scrimp/internal/work/groups"
	"scrimp/internal/work/study"
	"scrimp/internal/work/tune"
	"scrimp/internal/work/tune/replay"
)

// SpecOf returns the definition of a search as the API has it. It checks only what the API's form allows to be wrong.
func SpecOf(b *api.Study) (s *study.Spec, field string, err error) {
	s = &study.Spec{Metric: b.Metric, Maximize: b.Maximize, Searcher: cmp.Or(b.Searcher, "default"), Grid: b.Grid,
		Seed: uint64(max(0, b.Seed)), Trials: b.Trials, Wall: b.WallClock, GPUHours: b.GPUHours, Final: b.Final,
		Plateau: (*study.Plateau)(b.Plateau), Proxy: (*study.Proxy)(b.Proxy)}
	if b.Fidelity != nil {
		s.Fidelity = study.Fidelity(*b.Fidelity)
	}
	for _, p := range b.Params {
		s.Params = append(s.Params, study.Param{Name: p.Name, Values: p.Values, Min: p.Min, Max: p.Max, Int: p.Int,
			Log: p.Log, Q: p.Q, Mu: p.Mu, Sigma: p.Sigma})
	}
	if s.Past, err = pastOf(s, b.Past); err != nil {
		return nil, "study.past", err
	}
	return s, "", nil
}

// ofStudy returns the terms of a study.
func ofStudy(b *api.Study) (t core.GroupTerms, field string, err error) {
	s, field, err := SpecOf(b)
	if err != nil {
		return t, field, err
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

// pastOf returns what earlier searches have found, with the parameters in the order of the space.
func pastOf(s *study.Spec, list []api.StudyPast) (past []study.Past, err error) {
	for i, b := range list {
		p := study.Past{}
		for _, q := range s.Params {
			text, said := b.Params[q.Name]
			if !said {
				return nil, fmt.Errorf("configuration %d has no %s: give each parameter of the space a value", i, q.Name)
			}
			p.Params = append(p.Params, text)
		}
		if len(b.Params) > len(s.Params) {
			return nil, fmt.Errorf("configuration %d has %d parameters, and the space has %d", i, len(b.Params), len(s.Params))
		}
		for _, v := range b.Points {
			p.Points = append(p.Points, study.Point(v))
		}
		past = append(past, p)
	}
	return past, nil
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
		return no("budget.gpu_hours", "the GPU-hours of a study are a limit of the study, and not of its job",
			"write budget.gpu_hours in the study file, which is study.gpu_hours in the API")
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

// Short refuses a study with a limit that no trial fits in. Least is what a trial needs to begin.
func Short(t *core.GroupTerms, least money.Amount) *reply.Refusal {
	if t.Study == nil {
		return nil
	}
	field, cause, fix := t.Study.Short(study.Means{AtOnce: t.AtOnce, GPUs: t.Member.Need.LeastGPUs(), Grace: t.Grace,
		Start: t.Member.Restart, Budget: t.Budget, Least: least, Currency: t.Member.Currency})
	if field == "" {
		return nil
	}
	if field = "study." + field; field == "study.usd" {
		field = "budget"
	}
	return &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: field, Title: cause, Fix: fix}
}
