package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
)

// deepest bounds the nesting of objects in a JSON line.
const deepest = 6

// Objects reads the rows of JSON lines, or of one JSON array. The name of a nested field includes its parents:
// "service.description". A list stays JSON.
type Objects struct {
	*lines // nil for an array
	array  *json.Decoder
	ration *ration
	begun  bool
	n      int // elements of the array so far
}

// ration fails once more than left bytes are read for an element, which bounds its memory.
type ration struct {
	from       io.Reader
	most, left int
}

func (r *ration) Read(p []byte) (int, error) {
	if r.left <= 0 {
		return 0, errLong
	}
	n, err := r.from.Read(p[:min(len(p), r.left)])
	r.left -= n
	return n, err
}

var (
	errLong = errors.New("the row is longer than any of a bill")
	errRest = errors.New("the JSON array is torn")
)

func newArray(in io.Reader, most int) *Objects {
	r := &ration{in, most, most}
	return &Objects{array: json.NewDecoder(r), ration: r}
}

// element returns the next element of the array, whose number replaces the line.
func (o *Objects) element() (line, error) {
	o.ration.left = o.ration.most
	if !o.begun {
		if _, err := o.array.Token(); err != nil {
			return line{n: 1}, torn(err)
		}
		o.begun = true
	}
	o.n++
	if !o.array.More() {
		if _, err := o.array.Token(); err != nil {
			return line{n: o.n}, torn(err)
		}
		return line{n: o.n}, io.EOF
	}
	var raw json.RawMessage
	if err := o.array.Decode(&raw); err != nil {
		return line{n: o.n}, torn(err)
	}
	return line{n: o.n, text: string(raw)}, nil
}

func torn(err error) error {
	if errors.Is(err, errLong) {
		return err
	}
	return errRest
}

// Next returns the next row; io.EOF after the last.
func (o *Objects) Next() (Record, error) {
	next := o.element
	if o.array == nil {
		next = o.next
	}
	l, err := next()
	for err == nil && strings.TrimSpace(l.text) == "" && !l.cut {
		l, err = next()
	}
	c := Record{Line: l.n, Sum: SumOf(l.text)}
	if err != nil {
		return c, err
	}
	if l.cut {
		c.Fault = errLong.Error()
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

// Arrange puts an object's values in column order. The object stays: later rows may have fields that no column has.
func (o *Objects) Arrange(c Record, header []string) Record {
	if c.Object == nil {
		return c
	}
	c.Fields = make([]string, len(header))
	for i, name := range header {
		c.Fields[i] = c.Object[name]
	}
	return c
}
