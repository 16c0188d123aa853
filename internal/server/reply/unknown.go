package reply

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"scrimp/internal/lib/nearest"
)

// unknownField is a field of a body that its type lacks.
type unknownField struct {
	path string // such as study.fidelity.maxx or [2].spek
	near string // the field that may be meant; "": none is similar
}

// unknownIn returns the first field of a body that the type lacks, in the order of names; nil: none. The contents of
// types that decode themselves, such as job files, are left to them.
func unknownIn(body []byte, of reflect.Type) *unknownField {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	switch {
	case reflect.PointerTo(of).Implements(reflect.TypeFor[json.Unmarshaler]()):
	case of.Kind() == reflect.Struct:
		var values map[string]json.RawMessage
		_ = json.Unmarshal(body, &values) // another value is left to the decoder's error
		types := fieldsOf(of)
		for _, name := range slices.Sorted(maps.Keys(values)) {
			t, known := types[strings.ToLower(name)] // the decoder ignores case, too
			if !known {
				return &unknownField{path: name, near: nearest.Of(name, slices.Collect(maps.Keys(types)))}
			}
			if u := unknownIn(values[name], t); u != nil {
				return u.below(name)
			}
		}
	case of.Kind() == reflect.Map:
		var values map[string]json.RawMessage
		_ = json.Unmarshal(body, &values)
		for _, name := range slices.Sorted(maps.Keys(values)) {
			if u := unknownIn(values[name], of.Elem()); u != nil {
				return u.below(name)
			}
		}
	case of.Kind() == reflect.Slice:
		var values []json.RawMessage
		_ = json.Unmarshal(body, &values)
		for i, value := range values {
			if u := unknownIn(value, of.Elem()); u != nil {
				return u.below(fmt.Sprintf("[%d]", i))
			}
		}
	}
	return nil
}

// below returns the field as one of a value's part.
func (u *unknownField) below(part string) *unknownField {
	dot := "."
	if strings.HasPrefix(u.path, "[") {
		dot = ""
	}
	return &unknownField{part + dot + u.path, u.near}
}

func (u *unknownField) Error() string { return u.path + " is unknown" }

// fix says what to do about the field; rest is the fix for any wrong body.
func (u *unknownField) fix(rest string) string {
	if u.near != "" {
		return "did you mean " + u.near + "? Otherwise leave it out"
	}
	return "leave it out, and " + rest
}

// fieldsOf returns the types of a struct's fields by their JSON names in lower case.
func fieldsOf(of reflect.Type) map[string]reflect.Type {
	types := map[string]reflect.Type{}
	for _, f := range reflect.VisibleFields(of) {
		tag := f.Tag.Get("json")
		if !f.IsExported() || tag == "-" || f.Anonymous && tag == "" {
			continue
		}
		name, _, _ := strings.Cut(tag, ",")
		if name == "" {
			name = f.Name
		}
		types[strings.ToLower(name)] = f.Type
	}
	return types
}
