package pipelinefile

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"scrimp/internal/work/pipeline"
)

// driftFields are the fields of on_drift.
var driftFields = []string{"file", "reference", "test", "above", "columns"}

// drift reads on_drift of a stage.
func (r *reader) drift(x *stage, n *yaml.Node, folder, field string) {
	if n.Kind != yaml.MappingNode {
		r.wrong(n, field, "is no map", "write on_drift: {file: data/new.csv, reference: data/old.csv, test: psi, above: 0.2}")
		return
	}
	d := &pipeline.Drift{}
	x.Drift = d
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, v := n.Content[i], n.Content[i+1]
		at := join(field, key.Value)
		switch {
		case !slices.Contains(driftFields, key.Value):
			r.wrong(key, at, "is no field of on_drift", "write "+strings.Join(driftFields, ", "))
		case key.Value == "columns":
			for _, c := range items(v) {
				if c.Kind != yaml.ScalarNode || isNull(c) {
					r.wrong(c, at, "has an entry that is no name", "write names of columns, as columns: [age, price]")
					continue
				}
				d.Columns = append(d.Columns, c.Value)
			}
		case v.Kind != yaml.ScalarNode || isNull(v) || v.Value == "":
			r.wrong(v, at, "is no single value", "write one value behind it")
		case key.Value == "file":
			d.File = joined(folder, v.Value)
		case key.Value == "reference":
			d.Reference = joined(folder, v.Value)
		case key.Value == "test":
			d.Test = v.Value
		default:
			d.Above = v.Value
		}
	}
}
