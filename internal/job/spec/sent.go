package spec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// ParseJSON parses a job file that is a JSON object, with the words and short forms of the YAML text. It works like
// Parse, but its problems have no lines. It accepts the output of Encode.
func ParseJSON(u Use, text []byte, name string, now time.Time) (Job, []Note, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	root, err := node(d, 0)
	if err == nil && d.More() {
		err = errors.New("there is more behind it")
	}
	if err != nil {
		return Job{}, nil, Problems{{Cause: "is not JSON (" + err.Error() + ")", Fix: "send one object of fields"}}
	}
	return parse(u, reader{at: map[string]place{}}, root, name, now)
}

// node returns the next JSON value as a YAML node. A string is always text, and a repeated name appears twice.
func node(d *json.Decoder, depth int) (*yaml.Node, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	single := func(tag, text string) (*yaml.Node, error) {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: text}, nil
	}
	switch v := token.(type) {
	case json.Delim:
		return nodes(d, v, depth+1)
	case string:
		return single("!!str", v)
	case json.Number:
		return single("!!float", v.String())
	case bool:
		return single("!!bool", fmt.Sprint(v))
	default:
		return single("!!null", "null")
	}
}

// mostNested exceeds the nesting of any job file. Without a limit, a request of open brackets needs a stack of hundreds
// of megabytes.
const mostNested = 100

// nodes reads an object or a list after its opening bracket.
func nodes(d *json.Decoder, open json.Delim, depth int) (*yaml.Node, error) {
	if depth > mostNested {
		return nil, fmt.Errorf("it nests deeper than %d", mostNested)
	}
	n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	if open == '{' {
		n.Kind, n.Tag = yaml.MappingNode, "!!map"
	}
	for d.More() {
		if open == '{' {
			name, err := node(d, depth)
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, name)
		}
		item, err := node(d, depth)
		if err != nil {
			return nil, err
		}
		n.Content = append(n.Content, item)
	}
	_, err := d.Token() // the closing bracket
	return n, err
}

// ofProgram names a job after its program, if neither its file nor a folder gives a name.
func ofProgram(j Job) string {
	words := j.Args
	if len(words) == 0 {
		words = strings.Fields(j.Command)
	}
	if len(words) > 1 && words[0] == "exec" {
		words = words[1:]
	}
	if len(words) == 0 {
		return ""
	}
	return nameOf(words)
}
