// Package node builds and reads the nodes of YAML files.
package node

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Text returns a scalar that is read as text, with quotes only where they are needed.
func Text(s string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
	if plain(s) {
		n.Tag = ""
	} else if strings.Contains(s, "\n") {
		n.Style = yaml.LiteralStyle
	}
	return n
}

// plain reports whether a value such as a number needs no quotes, because it is read as text.
func plain(s string) bool {
	return regexp.MustCompile(`^[0-9][0-9A-Za-z.+$]*$`).MatchString(s) || s == "true" || s == "false"
}

// True reports whether a value is true as Python's YAML reads it: true, True, yes or on.
func True(v *yaml.Node) bool {
	return slices.Contains([]string{"true", "yes", "on"}, strings.ToLower(v.Value))
}

// Texts returns each text of a list as a scalar.
func Texts(list []string) []*yaml.Node {
	var nodes []*yaml.Node
	for _, s := range list {
		nodes = append(nodes, Text(s))
	}
	return nodes
}

// List returns a sequence.
func List(items ...*yaml.Node) *yaml.Node { return &yaml.Node{Kind: yaml.SequenceNode, Content: items} }

// Object returns a map of alternating keys and values.
func Object(content ...*yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.MappingNode, Content: content}
}

// Flow makes a map or sequence take one line, and returns it.
func Flow(n *yaml.Node) *yaml.Node {
	n.Style = yaml.FlowStyle
	return n
}

// Pairs returns the keys and values of a map in order of the keys.
func Pairs(m map[string]string) []*yaml.Node {
	var nodes []*yaml.Node
	for _, k := range slices.Sorted(maps.Keys(m)) {
		nodes = append(nodes, Text(k), Text(m[k]))
	}
	return nodes
}

// Set adds a field to a map of the draft.
func Set(m *yaml.Node, key string, v *yaml.Node) { m.Content = append(m.Content, Text(key), v) }

// Find returns the value of a key in a map, or nil.
func Find(m *yaml.Node, key string) *yaml.Node {
	if m == nil || m.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == key {
			return resolve(m.Content[i+1])
		}
	}
	return nil
}

// resolve returns the node that an alias refers to.
func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// Each calls f for every entry of a map.
func Each(m *yaml.Node, f func(key *yaml.Node, v *yaml.Node)) {
	if m == nil || m.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(m.Content); i += 2 {
		f(m.Content[i], resolve(m.Content[i+1]))
	}
}

// Items returns the values of a list; a single value counts as a list of one.
func Items(n *yaml.Node) []*yaml.Node {
	switch {
	case n == nil || n.Tag == "!!null":
		return nil
	case n.Kind == yaml.SequenceNode:
		var all []*yaml.Node
		for _, c := range n.Content {
			all = append(all, resolve(c))
		}
		return all
	}
	return []*yaml.Node{n}
}

// Values returns the texts of a list; a single value counts as a list of one.
func Values(v *yaml.Node) []string {
	var list []string
	for _, item := range Items(v) {
		list = append(list, strings.TrimRight(item.Value, "\n"))
	}
	return list
}
