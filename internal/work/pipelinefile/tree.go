package pipelinefile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// MaxText bounds a file, in bytes.
const MaxText = 1 << 20

// Bounds of the input. Aliases and templates must not make a short file long.
const (
	maxNodes = 1_000_000 // values of all stages, with aliases followed and templates filled
	maxBytes = 64 << 20  // of all texts from templates
	maxDepth = 50        // nested lists and maps
)

// parse parses the only document of a file, as JSON or YAML by its name; nil if it is empty.
func parse(name string, text []byte) (*yaml.Node, error) {
	if len(text) > MaxText {
		return nil, errors.New("is larger than 1 MiB")
	}
	switch path.Ext(name) {
	case ".json":
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		n, err := fromJSON(d, 0)
		if err == nil && d.More() {
			err = errors.New("there is more behind it")
		}
		if err != nil {
			return nil, fmt.Errorf("is not JSON (%w)", err)
		}
		return n, nil
	case ".toml", ".py":
		return nil, errors.New("is neither YAML nor JSON, and others are not supported: write the values into params.yaml")
	}
	var doc, more yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(text))
	err := d.Decode(&doc)
	if err == nil && d.Decode(&more) == nil {
		return nil, fmt.Errorf("has a second document, from line %d on: keep one", more.Line)
	}
	switch {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("is not YAML (%s)", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	return doc.Content[0], nil
}

// fromJSON returns the next JSON value as a YAML tree with ordered fields.
func fromJSON(d *json.Decoder, depth int) (*yaml.Node, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("it nests deeper than %d", maxDepth)
	}
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	n := &yaml.Node{Kind: yaml.ScalarNode}
	switch v := token.(type) {
	case string:
		n.Tag, n.Value = "!!str", v
	case json.Number:
		if n.Tag, n.Value = "!!int", v.String(); strings.ContainsAny(n.Value, ".eE") {
			n.Tag = "!!float"
		}
	case bool:
		n.Tag, n.Value = "!!bool", strconv.FormatBool(v)
	case json.Delim:
		if n.Kind, n.Tag = yaml.SequenceNode, "!!seq"; v == '{' {
			n.Kind, n.Tag = yaml.MappingNode, "!!map"
		}
		for d.More() {
			item, err := fromJSON(d, depth+1)
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, item)
		}
		_, err = d.Token() // the closing bracket
	default:
		n.Tag, n.Value = "!!null", "null"
	}
	return n, err
}

// plain copies a tree without aliases and merges. Unreadable parts become problems.
func (r *reader) plain(n *yaml.Node, field string, depth int) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	c := &yaml.Node{Kind: n.Kind, Tag: n.ShortTag(), Value: n.Value, Line: n.Line, Column: n.Column}
	switch {
	case depth > maxDepth:
		r.wrong(n, field, fmt.Sprintf("nests deeper than %d", maxDepth), "use fewer lists and maps within each other")
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

// in returns a field of a map, or nil.
func in(n *yaml.Node, name string) *yaml.Node {
	for i := 0; n != nil && n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i+1]
		}
	}
	return nil
}

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
		case !bytes.Equal(canonical(out.Content[have]), canonical(value)):
			differs(join(field, key.Value))
		}
	}
	return &out
}

// canonical returns a value as JSON: equal values have equal JSON, however YAML has written them.
func canonical(n *yaml.Node) []byte {
	text, err := json.Marshal(value(n))
	if err != nil {
		return []byte("null") // value returns nothing that JSON cannot write
	}
	return text
}

// value returns the contents of a tree in JSON types.
func value(n *yaml.Node) any {
	switch n.Kind {
	case yaml.MappingNode:
		m := make(map[string]any, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			m[n.Content[i].Value] = value(n.Content[i+1])
		}
		return m
	case yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, item := range n.Content {
			list[i] = value(item)
		}
		return list
	}
	switch n.Tag {
	case "!!null":
		return nil
	case "!!bool":
		return n.Value == "true" || n.Value == "True" || n.Value == "TRUE"
	case "!!int":
		if v, err := strconv.ParseInt(strings.ReplaceAll(n.Value, "_", ""), 0, 64); err == nil {
			return v
		}
	case "!!float":
		v, err := strconv.ParseFloat(strings.ReplaceAll(n.Value, "_", ""), 64)
		if err == nil && !math.IsInf(v, 0) && !math.IsNaN(v) {
			return v
		}
	}
	return n.Value
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
