package pages

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"scrimp/client"
)

// modelsPage is the versions of the models that pipelines deploy.
type modelsPage struct {
	Models    []client.ModelVersion // newest first
	Pipelines []option
	More      int // versions that are left out
	asked     string
	pipeline  string
}

func (p *modelsPage) twin() string { return p.asked }

func (p *modelsPage) command() string {
	if p.pipeline == "" {
		return "scrimp models"
	}
	return "scrimp models " + p.pipeline
}

// modelsAPage is how many versions a page lists.
const modelsAPage = 200

func models(v *visit) (any, error) {
	p := &modelsPage{asked: "/v1/models", pipeline: v.r.URL.Query().Get("pipeline")}
	var all []client.ModelVersion
	if err := v.get("/v1/models", &all); err != nil {
		return nil, err
	}
	p.Pipelines = append(p.Pipelines, option{"", "all pipelines", p.pipeline == ""})
	for _, m := range all {
		if p.Pipelines[len(p.Pipelines)-1].Value != m.Pipeline {
			p.Pipelines = append(p.Pipelines, option{m.Pipeline, m.Pipeline, m.Pipeline == p.pipeline})
		}
		if p.pipeline == "" || m.Pipeline == p.pipeline {
			p.Models = append(p.Models, m)
		}
	}
	if p.pipeline != "" {
		p.asked = "/v1/models?" + url.Values{"pipeline": {p.pipeline}}.Encode()
	}
	slices.SortFunc(p.Pipelines[1:], func(a, b option) int { return strings.Compare(a.Value, b.Value) })
	p.Pipelines = slices.Compact(p.Pipelines)
	slices.SortStableFunc(p.Models, func(a, b client.ModelVersion) int {
		return cmp.Or(b.Submitted.Compare(a.Submitted), b.Version-a.Version)
	})
	p.More = max(0, len(p.Models)-modelsAPage)
	p.Models = p.Models[:len(p.Models)-p.More]
	return p, nil
}
