package trigger

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"scrimp/internal/work/pipeline"
)

// driftFields are the fields of on_drift.
var driftFields = []string{"file", "reference", "test", "above", "columns"}

// Drift reads on_drift of a stage. joined gives a path of the stage its form.
func (r *Reader) Drift(n *yaml.Node, field string, joined func(string) string) *pipeline.Drift {
	d := &pipeline.Drift{}
	if n.Kind != yaml.MappingNode {
		r.wrong(n, field, "is no map", "write on_drift: {file: data/new.csv, reference: data/old.csv, test: psi, above: 0.2}")
		return d
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, v := n.Content[i], n.Content[i+1]
		at := field + "." + key.Value
		switch {
		case !slices.Contains(driftFields, key.Value):
			r.wrong(key, at, "is no field of on_drift", "write "+strings.Join(driftFields, ", "))
		case key.Value == "columns":
			list := v.Content
			if v.Kind != yaml.SequenceNode {
				list = []*yaml.Node{v}
			}
			for _, c := range list {
				if c.Kind != yaml.ScalarNode || isNull(c) {
					r.wrong(c, at, "has an entry that is not a name", "write names of columns, as columns: [age, price]")
					continue
				}
				d.Columns = append(d.Columns, c.Value)
			}
		case v.Kind != yaml.ScalarNode || isNull(v) || v.Value == "":
			r.wrong(v, at, "is no single value", "write one value behind it")
		case key.Value == "file":
			d.File = joined(v.Value)
		case key.Value == "reference":
			d.Reference = joined(v.Value)
		case key.Value == "test":
			d.Test = v.Value
		default:
			d.Above = v.Value
		}
	}
	return d
}
