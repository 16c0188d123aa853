package group

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

	"scrimp/internal/decide/core"
	"scrimp/internal/job/spec"
	"scrimp/internal/server/reply"
	"scrimp/internal/wire/api"
	"scrimp/internal/work/groups"
	"scrimp/internal/work/pipeline"
	"scrimp/internal/work/sample"
)

// ofPipeline returns the terms of a pipeline without those of its stages.
func ofPipeline(b *api.Pipeline) (t core.GroupTerms, field string, err error) {
	t = core.GroupTerms{Kind: groups.Pipeline, AtOnce: b.AtOnce}
	if b.AtOnce < 1 || b.AtOnce > 1000 {
		return t, "pipeline.at_once", fmt.Errorf("%d stages at once: give 1 to 1000", b.AtOnce)
	}
	stages := make([]pipeline.Stage, 0, len(b.Stages))
	for _, s := range b.Stages {
		x := pipeline.Stage{Name: s.Name, After: s.After, Deps: s.Deps, Outs: s.Outs, Metrics: s.Metrics, Params: s.Params,
			Always: s.Always, Examples: s.Examples, Deploy: s.Deploy}
		if s.Gate != nil {
			x.Gate = new(pipeline.Gate(*s.Gate))
		}
		if s.OnDrift != nil {
			x.Drift = new(pipeline.Drift(*s.OnDrift))
		}
		if s.WarmStart != nil {
			x.Warm = new(pipeline.Warm(*s.WarmStart))
		}
		for _, g := range s.Gates {
			x.Gates = append(x.Gates, pipeline.Gate(g))
		}
		stages = append(stages, x)
	}
	t.Pipeline, err = pipeline.New(stages)
	if wrong, ok := errors.AsType[*pipeline.Problem](err); ok {
		field = "pipeline.stages"
		if i := slices.IndexFunc(stages, func(s pipeline.Stage) bool { return s.Name == wrong.Stage }); i >= 0 {
			field = fmt.Sprintf("pipeline.stages[%d]", i)
			if wrong.Field != "" {
				field += "." + wrong.Field
			}
		}
		return t, field, err
	}
	if err == nil && b.Sample != nil {
		var x pipeline.Sample
		if x, err = sampleOf(b.Sample); err == nil {
			t.Pipeline, err = t.Pipeline.Sampled(x)
		}
		if err != nil {
			return t, "pipeline.sample", err
		}
	}
	return t, "", err
}

// sampleOf returns the sample of a pipeline.
func sampleOf(b *api.PipelineSample) (x pipeline.Sample, err error) {
	x.Data = b.Data
	for _, g := range b.Gates {
		x.Gates = append(x.Gates, pipeline.Gate(g))
	}
	if x.Parts, err = sample.Fractions(b.Parts); err != nil {
		return x, fmt.Errorf("parts: one of them %w", err)
	}
	return x, nil
}

// FitsStage returns why a job cannot be a stage; nil: it can.
func FitsStage(j spec.Job) *reply.Refusal {
	no := func(field, title, fix string) *reply.Refusal {
		return &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: field, Title: title, Fix: fix}
	}
	switch {
	case j.Deadline != spec.Deadline{}:
		return no("deadline", "a stage has no deadline of its own", "leave it out")
	case j.MostNodes() > 1 && len(j.Outputs) > 0:
		return no("nodes", "outputs of stages on several machines are not supported yet", "leave nodes out")
	case len(j.Secrets)+len(j.Inherit) > 0:
		return no("secrets", "secrets of stages are not supported yet", "name them in the pipeline as a whole")
	}
	return nil
}

// fitsPipeline returns why a job file cannot be that of a whole pipeline; nil: it can.
func fitsPipeline(t *core.GroupTerms, j spec.Job) *reply.Refusal {
	no := func(field, title, fix string) *reply.Refusal {
		return &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: field, Title: title, Fix: fix}
	}
	switch {
	case !t.HasBudget || t.Budget.IsZero():
		return no("budget", "a pipeline needs a budget", "write how much all stages together may cost, as budget: $25")
	case j.Deadline != spec.Deadline{}:
		return no("deadline", "a deadline of a pipeline is not supported yet", "leave it out")
	}
	return nil
}
