package trigger

import (
	"go.yaml.in/yaml/v3"

	"scrimp/internal/work/pipeline"
)

// Warm reads warm_start of a stage. joined gives a path of the stage its form.
func (r *Reader) Warm(n *yaml.Node, field string, joined func(string) string) *pipeline.Warm {
	w := &pipeline.Warm{}
	if n.Kind != yaml.MappingNode {
		r.wrong(n, field, "is no map", "write warm_start: {from: model.bin, to: start.bin}")
		return w
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, v := n.Content[i], n.Content[i+1]
		at := field + "." + key.Value
		switch {
		case key.Value != "from" && key.Value != "to":
			r.wrong(key, at, "is no field of warm_start", "write from and to")
		case v.Kind != yaml.ScalarNode || isNull(v) || v.Value == "":
			r.wrong(v, at, "is no path", "write one path behind it")
		case key.Value == "from":
			w.From = joined(v.Value)
		default:
			w.To = joined(v.Value)
		}
	}
	return w
}
