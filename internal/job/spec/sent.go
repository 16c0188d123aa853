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

// ParseJSON reads a job file that is a JSON object, with the words and short forms of the YAML text: as Parse
// does, but for lines, which its problems do not name. What Encode wrote is such an object.
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

// node is the next JSON value as the YAML reader has it. A string is text whatever it looks like, and a name that
// stands twice stands there twice.
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

// mostNested is more than any job file nests. Without a limit a request of open brackets takes a stack of hundreds of
// megabytes.
const mostNested = 100

// nodes is an object or a list, behind the bracket that opens it.
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
	_, err := d.Token() // the bracket that closes it
	return n, err
}

// ofProgram names a job after what it runs, where neither its file nor a folder does.
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
