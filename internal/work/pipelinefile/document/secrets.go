package document

import (
	"slices"

	"go.yaml.in/yaml/v3"
)

// WithSecrets returns a map of values with each name of a list that it lacks as its own template, such as ${TOKEN}:
// the server fills it in.
func WithSecrets(vars, names *yaml.Node) *yaml.Node {
	if names == nil || names.Kind != yaml.SequenceNode {
		return vars
	}
	known := map[string]bool{}
	for i := 0; i < len(vars.Content); i += 2 {
		known[vars.Content[i].Value] = true
	}
	c := *vars
	c.Content = slices.Clone(c.Content)
	for _, n := range names.Content {
		if n.Kind != yaml.ScalarNode || known[n.Value] {
			continue
		}
		for _, text := range []string{n.Value, "${" + n.Value + "}"} {
			c.Content = append(c.Content, &yaml.Node{Kind: n.Kind, Tag: "!!str", Value: text, Line: n.Line, Column: n.Column})
		}
	}
	return &c
}
