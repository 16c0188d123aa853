package trigger

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

// Sample reads the sample of a file: a part of the data, a list of two, or a map of fields. paths and gates read the
// fields with such values.
func (r *Reader) Sample(n *yaml.Node, paths func(*yaml.Node, string) []string,
	gates func(*yaml.Node, string) []pipeline.Gate) *pipeline.Sample {
	x := &pipeline.Sample{}
	if n.Kind != yaml.MappingNode {
		x.Parts = r.parts(n, "sample")
		return x
	}
	given := false
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, v := n.Content[i], n.Content[i+1]
		at := "sample." + name.Value
		switch name.Value {
		case "part":
			x.Parts, given = r.parts(v, at), true
		case "data":
			x.Data = paths(v, at)
		case "gate":
			x.Gates = gates(v, at)
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
	if !given {
		r.wrong(n, "sample.part", "is missing", "write how much of the data the sample has, such as part: 1%")
	}
	return x
}

// parts reads one part of the data or a list of two.
func (r *Reader) parts(n *yaml.Node, field string) []string {
	list := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		list = n.Content
	}
	var texts []string
	for _, v := range list {
		if v.Kind != yaml.ScalarNode || isNull(v) {
			r.wrong(v, field, "has an entry that is no percentage", "write one, such as 1%")
			return nil
		}
		texts = append(texts, v.Value)
	}
	parts, err := sample.Fractions(texts)
	if err != nil {
		r.wrong(n, field, err.Error(), "")
	}
	return parts
}

// CheckSample reports what is wrong with the sample of a pipeline, which may have none.
func (r *Reader) CheckSample(n *yaml.Node, x *pipeline.Sample, p *pipeline.Spec) {
	if x == nil || len(x.Parts) == 0 {
		return
	}
	_, err := p.Sampled(*x)
	if wrong, ok := errors.AsType[*pipeline.Problem](err); ok {
		r.wrong(n, "sample", wrong.Err.Error(), "")
	}
}
