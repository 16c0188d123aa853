package record

import (
	"bytes"
	"encoding/json"
	"strings"
)

// deepest bounds the nesting of objects in a JSON line.
const deepest = 6

// Objects reads the rows of JSON lines. The name of a nested field includes its parents: "service.description". A list
// stays JSON.
type Objects struct {
	*lines
}

// Next returns the next row; io.EOF after the last.
func (o *Objects) Next() (Record, error) {
	l, err := o.next()
	for err == nil && strings.TrimSpace(l.text) == "" && !l.cut {
		l, err = o.next()
	}
	c := Record{Line: l.n, Sum: hashOf(l.text)}
	if err != nil {
		return c, err
	}
	if l.cut {
		c.Fault = "the row is longer than any of a bill"
		return c, nil
	}
	d := json.NewDecoder(strings.NewReader(l.text))
	d.UseNumber()
	var raw map[string]json.RawMessage
	if err := d.Decode(&raw); err != nil || d.More() {
		c.Fault = "the row is torn: it is no JSON object"
		return c, nil
	}
	c.Object = map[string]string{}
	flatten(c.Object, "", raw, 0)
	return c, nil
}

func flatten(to map[string]string, prefix string, raw map[string]json.RawMessage, depth int) {
	for name, value := range raw {
		name = prefix + name
		switch value = bytes.TrimSpace(value); value[0] {
		case '{':
			to[Key(name)] = string(value)
			var inner map[string]json.RawMessage
			if depth < deepest && json.Unmarshal(value, &inner) == nil {
				flatten(to, name+".", inner, depth+1)
			}
		case '"':
			var text string
			_ = json.Unmarshal(value, &text) // it is a string, and the line is valid
			to[Key(name)] = text
		case 'n': // null is no value
		default:
			to[Key(name)] = string(value)
		}
	}
}

// Arrange puts an object's values in column order.
func (o *Objects) Arrange(c Record, header []string) Record {
	if c.Object == nil {
		return c
	}
	c.Fields = make([]string, len(header))
	for i, name := range header {
		c.Fields[i] = c.Object[name]
	}
	c.Object = nil
	return c
}
