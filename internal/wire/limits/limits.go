// Package limits limits the size of each field of requests and of agents' reports. It checks requests before the server
// uses them, because the log keeps what the server accepts for ever, and every page reads it again.
package limits

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"scrimp/internal/lib/quantity"
)

// ExcessError is a field that exceeds its bound.
type ExcessError struct {
	Field string // as in the request, such as messages[3].step.metrics
	What  string // bytes, items, digits
	Most  int
	Kind  *quantity.Kind // kind of a number out of bounds; nil: another error
}

func (e *ExcessError) Error() string {
	at := e.Field
	if at == "" {
		at = "the request"
	}
	if e.Kind != nil {
		return fmt.Sprintf("%s is out of bounds: %s are %s", at, e.Kind.Name, e.Kind.Range())
	}
	return fmt.Sprintf("%s has more than %d %s", at, e.Most, e.What)
}

// Fix returns what to send instead.
func (e *ExcessError) Fix() string {
	if e.Kind != nil {
		return "send a number from " + e.Kind.Range()
	}
	return fmt.Sprintf("send at most %d %s", e.Most, e.What)
}

// in adds the enclosing field to the path of the error.
func in(outer string, err error) error {
	e, ok := err.(*ExcessError) //nolint:errorlint // it is ours, and never wrapped here
	if !ok {
		return err
	}
	if e.Field != "" && !strings.HasPrefix(e.Field, "[") {
		outer += "."
	}
	e.Field = outer + e.Field
	return e
}

// Check checks JSON text against the bounds of t, and reads no further than needed. It accepts text that is not JSON or
// does not decode into t, because the decoder reports that. Numbers in a report pass, too, and are clipped later:
// otherwise a wrong total of a program would cost a whole job.
func Check(t reflect.Type, text []byte) error {
	d := jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true),
		jsontext.AllowInvalidUTF8(true))
	b := Standard
	if t.Kind() == reflect.Slice {
		b = OfList(t)
	}
	if err, ok := read(d, t, b).(*ExcessError); ok { //nolint:errorlint // likewise
		return err
	}
	return nil
}

var rawJSON = reflect.TypeFor[json.RawMessage]()

// read checks one value.
func read(d *jsontext.Decoder, t reflect.Type, b Bound) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	kind := d.PeekKind()
	switch {
	case t == rawJSON, kind == '"', kind == '0':
		return scalar(d, kind, t, b)
	case kind == '{' && t.Kind() == reflect.Struct:
		return structure(d, t)
	case kind == '{' && t.Kind() == reflect.Map:
		return dictionary(d, t.Elem(), b)
	case kind == '[' && t.Kind() == reflect.Slice:
		return list(d, t.Elem(), b)
	}
	return d.SkipValue()
}

// scalar checks a string, a number, or a value with an encoding of its own.
func scalar(d *jsontext.Decoder, kind jsontext.Kind, t reflect.Type, b Bound) error {
	v, err := d.ReadValue()
	switch {
	case err != nil:
		return err
	case t == rawJSON && len(v) > b.Bytes:
		return &ExcessError{What: "bytes", Most: b.Bytes}
	case t == rawJSON:
		return nil
	case kind == '"' && len(v)-2 > b.Bytes:
		return &ExcessError{What: "bytes", Most: b.Bytes}
	case kind == '0' && len(v) > longestNumber:
		return &ExcessError{What: "digits", Most: longestNumber}
	}
	return number(b.kind, t, v)
}

func parseFloat(text []byte) (float64, error) {
	f, err := strconv.ParseFloat(string(text), 64)
	if errors.Is(err, strconv.ErrRange) {
		err = nil // infinite, so out of all bounds
	}
	return f, err
}

func structure(d *jsontext.Decoder, t reflect.Type) error {
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	known := fields(t)
	for d.PeekKind() == '"' {
		token, err := d.ReadToken()
		if err != nil {
			return err
		}
		name := token.String()
		f, ok := known[name]
		if !ok { // the decoder ignores case in names
			name, f, ok = folded(known, name)
		}
		if !ok {
			err = d.SkipValue()
		} else {
			err = read(d, f.of, f.bound)
		}
		if err != nil {
			return in(name, err)
		}
	}
	_, err := d.ReadToken()
	return err
}

func folded(known map[string]field, name string) (string, field, bool) {
	for k, f := range known {
		if strings.EqualFold(k, name) {
			return k, f, true
		}
	}
	return name, field{}, false
}

func dictionary(d *jsontext.Decoder, of reflect.Type, b Bound) error {
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for n := 0; d.PeekKind() == '"'; n++ {
		token, err := d.ReadToken()
		if err != nil {
			return err
		}
		name := token.String()
		switch {
		case n == b.Items:
			return &ExcessError{What: "items", Most: b.Items}
		case len(name) > b.Key:
			return in(fmt.Sprintf("%.20s…", name), &ExcessError{What: "bytes in its name", Most: b.Key})
		}
		if err := read(d, of, b); err != nil {
			return in(name, err)
		}
	}
	_, err := d.ReadToken()
	return err
}

func list(d *jsontext.Decoder, of reflect.Type, b Bound) error {
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for n := 0; d.PeekKind() != ']' && d.PeekKind() != 0; n++ {
		if n == b.Items {
			return &ExcessError{What: "items", Most: b.Items}
		}
		if err := read(d, of, b); err != nil {
			return in(fmt.Sprintf("[%d]", n), err)
		}
	}
	_, err := d.ReadToken()
	return err
}

var seen sync.Map // fields of a struct, by type

func fields(t reflect.Type) map[string]field {
	if known, ok := seen.Load(t); ok {
		return known.(map[string]field) //nolint:forcetypeassert // nothing else is put there
	}
	list := fieldsOf(t)
	seen.Store(t, list)
	return list
}
