package pipeline

import (
	"errors"
	"fmt"
	"strings"

	api "scrimp/client"
	"scrimp/internal/work/pipeline"
	"scrimp/internal/work/pipelinefile"
	"scrimp/internal/work/sample"
)

// noSample is the value of --sample that leaves the sample of the file out.
const noSample = "none"

// samples applies --sample to a pipeline. The data and the gates of the file stay.
func (f flags) samples(p *pipelinefile.File) error {
	switch {
	case !f.sampleGiven:
	case f.sample == noSample:
		p.Sample = nil
	default:
		parts, err := sample.Fractions(strings.Split(f.sample, ","))
		if err != nil {
			return fmt.Errorf("--sample %w", err)
		}
		x := pipeline.Sample{}
		if p.Sample != nil {
			x = *p.Sample
		}
		x.Parts = parts
		if _, err := p.Spec.Sampled(x); err != nil {
			if wrong, ok := errors.AsType[*pipeline.Problem](err); ok {
				err = wrong.Err
			}
			return fmt.Errorf("--sample: %w", err)
		}
		p.Sample = &x
	}
	if p.Sample != nil {
		p.Notes = append(p.Notes, sampleNote(p.Sample))
	}
	return nil
}

// inFile names the line of the pipeline file in the server's refusal, which only the client knows.
func inFile(file string, p *pipelinefile.File, err error) error {
	wrong, is := errors.AsType[*api.Problem](err)
	if !is || wrong.Field == "" {
		return err
	}
	field, line := p.Index.Where(wrong.Field)
	if field == "" {
		return err
	}
	if line > 0 {
		file = fmt.Sprintf("%s:%d", file, line)
	}
	said := *wrong
	said.Field = ""
	return fmt.Errorf("%s: `%s`: %w", file, field, &said)
}

// sampleNote says in words that a sample comes first.
func sampleNote(x *pipeline.Sample) string {
	var parts []string
	for _, text := range x.Parts {
		if p, err := sample.Parse(text); err == nil {
			parts = append(parts, p.Percent())
		}
	}
	note := fmt.Sprintf("the stages run on %s of the data first, within the budget", strings.Join(parts, " and on "))
	for _, g := range x.Gates {
		note += "; the rest begins only with " + g.Text()
	}
	return note
}

// sampleOf returns the sample of a pipeline for the API.
func sampleOf(x *pipeline.Sample) *api.PipelineSample {
	if x == nil {
		return nil
	}
	b := &api.PipelineSample{Parts: x.Parts, Data: x.Data}
	for _, g := range x.Gates {
		b.Gates = append(b.Gates, api.PipelineGate(g))
	}
	return b
}
