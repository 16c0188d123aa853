package pipelinefile

import (
	"errors"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"scrimp/internal/lib/nearest"
	"scrimp/internal/work/pipeline"
	"scrimp/internal/work/sample"
)

// sampleFields are the fields of a sample.
var sampleFields = []string{"part", "data", "gate"}

// sample reads the sample of the file: a part, two parts, or a map of fields.
func (r *reader) sample(n *yaml.Node) {
	x := &pipeline.Sample{}
	if n.Kind != yaml.MappingNode {
		x.Parts = r.parts(n, "sample")
		r.f.Sample = x
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, v := n.Content[i], n.Content[i+1]
		at := join("sample", name.Value)
		switch name.Value {
		case "part":
			x.Parts = r.parts(v, at)
		case "data":
			x.Data = r.paths(v, ".", at)
		case "gate":
			s := &stage{}
			r.gates(s, v, at)
			x.Gates = s.All()
		default:
			fix := "write " + strings.Join(sampleFields, ", ")
			if slices.Contains([]string{"rows", "files", "bytes"}, name.Value) {
				fix = "write part: and a percentage of the " + name.Value
			} else if near := nearest.Of(name.Value, sampleFields); near != "" {
				fix = "did you mean `" + near + "`?"
			}
			r.wrong(name, at, "is no field of a sample", fix)
		}
	}
	if in(n, "part") == nil {
		r.wrong(n, "sample.part", "is missing", "write how much of the data the sample has, such as part: 1%")
	}
	r.f.Sample = x
}

// parts reads one part of the data or a list of two.
func (r *reader) parts(n *yaml.Node, field string) []string {
	var texts []string
	for _, v := range items(n) {
		if v.Kind != yaml.ScalarNode || isNull(v) {
			r.wrong(v, field, "has an entry that is no percentage", "write one, such as 1%")
			return nil
		}
		texts = append(texts, v.Value)
	}
	list, err := sample.Fractions(texts)
	if err != nil {
		cause, fix, _ := strings.Cut(err.Error(), ": ")
		r.wrong(n, field, cause, fix)
	}
	return list
}

// checkSample reports what is wrong with the sample of the pipeline.
func (r *reader) checkSample(n *yaml.Node) {
	if r.f.Sample == nil || len(r.problems) > 0 {
		return
	}
	if _, err := r.f.Spec.Sampled(*r.f.Sample); err != nil {
		if wrong, ok := errors.AsType[*pipeline.Problem](err); ok {
			err = wrong.Err
		}
		cause, fix, _ := strings.Cut(err.Error(), ": ")
		r.wrong(n, "sample", cause, fix)
	}
}
