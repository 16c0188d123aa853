package pipelinefile

import (
	"bytes"
	"fmt"
	"strings"

	"scrimp/internal/work/pipelinefile/document"

	"go.yaml.in/yaml/v3"
)

// Bounds of the input. Aliases and templates must not make a short file long.
const (
	maxNodes = 1_000_000 // values of all stages, with aliases followed and templates filled
	maxBytes = 64 << 20  // of all texts from templates
)

// plain copies a tree without aliases and merges. Unreadable parts become problems.
func (r *reader) plain(n *yaml.Node, field string, depth int) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	c := &yaml.Node{Kind: n.Kind, Tag: n.ShortTag(), Value: n.Value, Line: n.Line, Column: n.Column}
	switch {
	case depth > document.MaxDepth:
		r.wrong(n, field, fmt.Sprintf("nests deeper than %d", document.MaxDepth),
			"use fewer lists and maps within each other")
		return null(n)
	case !r.room(n, field):
		return null(n)
	case !strings.HasPrefix(c.Tag, "!!"):
		r.wrong(n, field, "has the type "+c.Tag+", which scrimp does not read", "leave the type away")
		return null(n)
	case n.Kind == yaml.SequenceNode:
		for _, item := range n.Content {
			c.Content = append(c.Content, r.plain(item, field, depth+1))
		}
	case n.Kind == yaml.MappingNode:
		r.fields(n, c, field, depth)
	}
	return c
}

// fields copies the fields of a map, and those of merged maps (<<) that it does not have itself.
func (r *reader) fields(n, to *yaml.Node, field string, depth int) {
	var merged []*yaml.Node
	at := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		switch {
		case key.Tag == "!!merge":
			merged = append(merged, value)
		case key.Kind != yaml.ScalarNode:
			r.wrong(key, field, "has a key that is a list or a map", "write name: value")
		case at[key.Value]:
			r.wrong(key, join(field, key.Value), "is there twice", "leave one out")
		default:
			at[key.Value] = true
			to.Content = append(to.Content, str(key, key.Value), r.plain(value, join(field, key.Value), depth+1))
		}
	}
	for ; len(merged) > 0; merged = merged[1:] {
		from := r.plain(merged[0], field, depth+1)
		maps := []*yaml.Node{from}
		if from.Kind == yaml.SequenceNode {
			maps = from.Content
		}
		for _, m := range maps {
			if m.Kind != yaml.MappingNode {
				r.wrong(merged[0], field, "merges what is no map", "give << an alias of one, such as *base")
				return
			}
			for i := 0; i+1 < len(m.Content); i += 2 {
				if key := m.Content[i]; !at[key.Value] {
					at[key.Value] = true
					to.Content = append(to.Content, key, m.Content[i+1])
				}
			}
		}
	}
}

// room counts a value, and returns false beyond the limit of all stages.
func (r *reader) room(n *yaml.Node, field string) bool {
	if r.nodes++; r.nodes == maxNodes+1 {
		r.wrong(n, field, "makes the pipeline too large", "use fewer aliases, or fewer values in each stage")
	}
	return r.nodes <= maxNodes
}

func null(at *yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Line: at.Line, Column: at.Column}
}

func str(at *yaml.Node, text string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text, Line: at.Line, Column: at.Column}
}

func isNull(n *yaml.Node) bool { return n == nil || n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// merge adds missing fields from one map to another, recursively; lists and scalars stay unchanged, and so do the
// sources. It calls differs with the fields that have different values in both.
func merge(to, from *yaml.Node, field string, differs func(field string)) *yaml.Node {
	out := *to
	out.Content = append([]*yaml.Node{}, to.Content...)
	at := make(map[string]int, len(out.Content)/2)
	for i := 0; i+1 < len(out.Content); i += 2 {
		at[out.Content[i].Value] = i + 1
	}
	for i := 0; i+1 < len(from.Content); i += 2 {
		key, value := from.Content[i], from.Content[i+1]
		have, there := at[key.Value]
		switch {
		case !there:
			out.Content = append(out.Content, key, value)
		case out.Content[have].Kind == yaml.MappingNode && value.Kind == yaml.MappingNode:
			out.Content[have] = merge(out.Content[have], value, join(field, key.Value), differs)
		case !bytes.Equal(document.JSON(out.Content[have]), document.JSON(value)):
			differs(join(field, key.Value))
		}
	}
	return &out
}

// texts returns a tree as JSON with a string for each scalar, as the job-file parser expects. It omits fields without a
// value.
func texts(n *yaml.Node) any {
	switch n.Kind {
	case yaml.MappingNode:
		m := map[string]any{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			m[n.Content[i].Value] = texts(n.Content[i+1])
		}
		return m
	case yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, item := range n.Content {
			list[i] = texts(item)
		}
		return list
	}
	if isNull(n) {
		return nil
	}
	return n.Value
}

func join(field, name string) string {
	if field == "" {
		return name
	}
	return field + "." + name
}
