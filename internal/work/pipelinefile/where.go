package pipelinefile

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// renamed maps the API's fields of a stage to those of the file.
var renamed = map[string]string{"command": "cmd", "always": "always_changed", "gates": "gate"}

// Where returns the field of the file for a field of the API, such as pipeline.stages[0].deps[1], and its line; 0: the
// file does not have it. An empty field: it is none of a pipeline.
func (f *File) Where(sent string) (field string, line int) {
	rest, ofStage := strings.CutPrefix(sent, "pipeline.stages[")
	index, rest, _ := strings.Cut(rest, "]")
	var i int
	if _, err := fmt.Sscanf(index, "%d", &i); !ofStage || err != nil || i < 0 || i >= len(f.Spec.Stages) {
		sent = strings.TrimPrefix(sent, "pipeline.")
		if first, _, _ := strings.Cut(sent, "."); !slices.Contains(append([]string{"schedule", "sample"}, whole...), first) {
			return "", 0
		}
		return sent, lineOf(f.root, sent)
	}
	name := f.Spec.Stages[i].Name
	s := f.stages[name]
	rest = strings.TrimPrefix(strings.TrimPrefix(rest, "."), "job.")
	first, more, _ := strings.Cut(rest, ".")
	if renamed[first] != "" {
		rest = strings.TrimSuffix(renamed[first]+"."+more, ".")
	}
	field = strings.TrimSuffix("stages."+name+"."+rest, ".")
	if line = lineOf(s.node, rest); line == 0 {
		line = s.key.Line
	}
	return field, line
}

// lineOf returns the line of the closest field that a map has, or 0 if it has not even the first one.
func lineOf(n *yaml.Node, field string) int {
	if found := find(n, field); found != n {
		return found.Line
	}
	return 0
}
