package spec

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// YAML returns the job as a job file for people to edit, in the order of the reference. It leaves out fields with their
// default values; Parse reads the same job from it.
func (j Job) YAML() ([]byte, error) {
	text, err := j.Encode()
	if err != nil {
		return nil, err
	}
	normal, err := Default().Encode()
	if err != nil {
		return nil, err
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil { // JSON is YAML
		return nil, err
	}
	var standard map[string]any
	if err := json.Unmarshal(normal, &standard); err != nil {
		return nil, err
	}
	root := doc.Content[0]
	shorten(root, standard)
	block(root)
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(root); err != nil {
		return nil, err
	}
	return b.Bytes(), e.Close()
}

// spans lists the fields that hold a time.
var spans = []string{"time", "deadline", "grace", "idle", "for", "wall_clock", "move_time"}

// roundSpan leaves out zero minutes and seconds: 6h for 6h0m0s.
func roundSpan(text string) string {
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// shorten removes the fields of a map that have their default values.
func shorten(m *yaml.Node, standard map[string]any) {
	var kept []*yaml.Node
	for i := 0; i+1 < len(m.Content); i += 2 {
		key, value := m.Content[i], m.Content[i+1]
		usual, known := standard[key.Value]
		if value.Kind == yaml.MappingNode && key.Value != "env" && key.Value != "tags" { // their keys are no fields
			below, _ := usual.(map[string]any)
			if shorten(value, below); len(value.Content) == 0 {
				continue
			}
		}
		var v any
		if known && value.Decode(&v) == nil && same(v, usual) {
			continue
		}
		if value.Kind == yaml.ScalarNode && slices.Contains(spans, key.Value) {
			value.Value = roundSpan(value.Value)
		}
		kept = append(kept, key, value)
	}
	m.Content = kept
}

// same compares a value of YAML with one of JSON, in which every number is a float.
func same(v, usual any) bool {
	if n, ok := v.(int); ok {
		v = float64(n)
	}
	return reflect.DeepEqual(v, usual)
}

// block writes a node and those below it in lines rather than in braces. Lists of plain values stay on one line.
func block(n *yaml.Node) {
	n.Style = 0
	plain := n.Kind == yaml.SequenceNode
	for _, c := range n.Content {
		block(c)
		plain = plain && c.Kind == yaml.ScalarNode
	}
	if plain {
		n.Style = yaml.FlowStyle
	}
}
