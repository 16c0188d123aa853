// Package document reads a YAML or JSON file as a tree with ordered fields, and compares values by their JSON.
package document

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

// MaxDepth bounds how deep lists and maps nest.
const MaxDepth = 50

// Read parses the only document of a file, as JSON or YAML by its name; nil if it is empty.
func Read(name string, text []byte) (*yaml.Node, error) {
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
	if depth > MaxDepth {
		return nil, fmt.Errorf("it nests deeper than %d", MaxDepth)
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

// JSON returns a value as JSON: equal values have equal JSON, however YAML has written them.
func JSON(n *yaml.Node) []byte {
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
