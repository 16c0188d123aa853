package document

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// In returns a field of a map, or nil.
func In(n *yaml.Node, name string) *yaml.Node {
	for i := 0; n != nil && n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i+1]
		}
	}
	return nil
}

// Find returns the value of a field such as resources.cpus or any_of[0].image, or the closest one above it.
func Find(n *yaml.Node, field string) *yaml.Node {
	for part := range strings.SplitSeq(strings.ReplaceAll(field, "[", ".["), ".") {
		below := In(n, part)
		if index, isIndex := strings.CutPrefix(part, "["); isIndex && n.Kind == yaml.SequenceNode {
			if i, err := strconv.Atoi(strings.TrimSuffix(index, "]")); err == nil && i < len(n.Content) {
				below = n.Content[i]
			}
		}
		if below == nil {
			return n
		}
		n = below
	}
	return n
}

// Index finds the lines of a pipeline file.
type Index struct {
	Root   *yaml.Node
	Known  []string // fields of the file that the API has, too
	Stages []Stage  // in the order in which they are submitted
}

// Stage is a stage in the file.
type Stage struct {
	Name   string
	Key    *yaml.Node
	Fields *yaml.Node
}

// renamed maps the API's fields of a stage to those of the file.
var renamed = map[string]string{"command": "cmd", "always": "always_changed", "gates": "gate"}

// Where returns the field of the file for a field of the API, such as pipeline.stages[0].deps[1], and its line; 0: the
// file does not have it. An empty field: it is none of a pipeline.
func (x *Index) Where(sent string) (field string, line int) {
	rest, ofStage := strings.CutPrefix(sent, "pipeline.stages[")
	index, rest, _ := strings.Cut(rest, "]")
	var i int
	if _, err := fmt.Sscanf(index, "%d", &i); !ofStage || err != nil || i < 0 || i >= len(x.Stages) {
		sent = strings.TrimPrefix(sent, "pipeline.")
		if first, _, _ := strings.Cut(sent, "."); !slices.Contains(x.Known, first) {
			return "", 0
		}
		return sent, lineOf(x.Root, sent)
	}
	s := x.Stages[i]
	rest = strings.TrimPrefix(strings.TrimPrefix(rest, "."), "job.")
	first, more, _ := strings.Cut(rest, ".")
	if renamed[first] != "" {
		rest = strings.TrimSuffix(renamed[first]+"."+more, ".")
	}
	field = strings.TrimSuffix("stages."+s.Name+"."+rest, ".")
	if line = lineOf(s.Fields, rest); line == 0 {
		line = s.Key.Line
	}
	return field, line
}

// lineOf returns the line of the closest field that a map has, or 0 if it has not even the first one.
func lineOf(n *yaml.Node, field string) int {
	if found := Find(n, field); found != n {
		return found.Line
	}
	return 0
}
