package pipelinefile

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"scrimp/internal/lib/nearest"
	"scrimp/internal/work/pipeline"
)

// gateFields are the fields of a gate.
var gateFields = []string{"metric", "min", "max", "min_gain", "against", "goal", "relative", "confidence"}

// gates reads a gate or a list of gates.
func (r *reader) gates(n *yaml.Node, field string) (list []pipeline.Gate) {
	if n.Kind != yaml.SequenceNode {
		n = &yaml.Node{Content: []*yaml.Node{n}}
	} else if len(n.Content) == 0 {
		r.wrong(n, field, "is empty", "write gate: {metric: evaluate.accuracy, min: 0.9}, or leave it out")
	}
	for i, one := range n.Content {
		at := field
		if n.Kind == yaml.SequenceNode {
			at = fmt.Sprintf("%s[%d]", field, i)
		}
		if g := r.gate(one, at); g != nil {
			list = append(list, *g)
		}
	}
	return list
}

func (r *reader) gate(n *yaml.Node, field string) *pipeline.Gate {
	if n.Kind != yaml.MappingNode {
		r.wrong(n, field, "is no map", "write gate: {metric: evaluate.accuracy, min: 0.9}")
		return nil
	}
	g := &pipeline.Gate{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, v := n.Content[i], n.Content[i+1]
		at := join(field, name.Value)
		to := map[string]*string{"metric": &g.Metric, "min": &g.Min, "max": &g.Max, "min_gain": &g.MinGain,
			"against": &g.Against, "goal": &g.Goal, "confidence": &g.Confidence}[name.Value]
		switch {
		case !slices.Contains(gateFields, name.Value):
			fix := "write " + strings.Join(gateFields, ", ")
			if near := nearest.Of(name.Value, gateFields); near != "" {
				fix = "did you mean `" + near + "`?"
			}
			r.wrong(name, at, "is no field of a gate", fix)
		case v.Kind != yaml.ScalarNode || isNull(v) || v.Value == "":
			r.wrong(v, at, "is no single value", "write one, such as "+gateExample(name.Value))
		case to == nil:
			g.Relative = r.truth(v, at)
		default:
			*to = v.Value
		}
	}
	return g
}

// gateExample is a value that a field of a gate may have.
func gateExample(field string) string {
	examples := map[string]string{"metric": "evaluate.accuracy", "min_gain": "0.5%", "against": "deployed",
		"goal": "minimize", "relative": "true", "confidence": "95%"}
	if text, there := examples[field]; there {
		return text
	}
	return "0.9"
}

// examples reads the file with the value of each example.
func (r *reader) examples(x *stage, v *yaml.Node, folder, field string) {
	if v.Kind != yaml.ScalarNode || isNull(v) || v.Value == "" {
		r.wrong(v, field, "is no path", "write one file, such as examples.csv")
		return
	}
	x.Examples = joined(folder, v.Value)
}

// examplesOf is the file of examples of a stage as a list.
func examplesOf(x *stage) []string {
	if x.Examples == "" {
		return nil
	}
	return []string{x.Examples}
}
