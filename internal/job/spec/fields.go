package spec

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"scrimp/internal/lib/nearest"
)

func fieldName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// fieldOf returns the field of t with the given name in a file.
func fieldOf(t reflect.Type, name string) (known, bool) {
	for _, f := range layout[t] {
		if name != "" && (f.name == name || f.also == name) {
			return f, true
		}
	}
	return known{}, false
}

// names returns the names of the fields of t.
func names(t reflect.Type) []string {
	var list []string
	for i := range t.NumField() {
		list = append(list, fieldName(t.Field(i)))
		if also := t.Field(i).Tag.Get("also"); also != "" {
			list = append(list, also)
		}
	}
	return list
}

// elsewhere maps other tools' names to our fields, for which similar spelling would mislead.
var elsewhere = map[string]string{
	"gpu": "accelerator", "gpus": "accelerator", "ram": "memory", "mem": "memory", "run": "command", "cmd": "command",
	"script": "command",
}

// meant returns a suggestion for an unknown field of t.
func meant(t reflect.Type, name string) string {
	if ours, known := elsewhere[name]; known {
		if f, ok := fieldOf(t, ours); ok {
			return "did you mean `" + f.name + "`?"
		}
		name = ours
	}
	for i := range t.NumField() { // a field one level below
		if f := t.Field(i); f.Type.Kind() == reflect.Struct && !reflect.PointerTo(f.Type).Implements(textType) {
			if below, ok := fieldOf(f.Type, name); ok {
				return "did you mean `" + fieldName(f) + "." + below.name + "`?"
			}
		}
	}
	if near := nearest.Of(name, names(t)); near != "" {
		return "did you mean `" + near + "`?"
	}
	return "scrimp schema prints all fields"
}

// known is a field of a struct.
type known struct {
	name    string // in a file
	also    string // another name in a file, or empty
	index   int
	tag     reflect.StructTag
	meaning meaning
	group   bool // a struct of fields, or a list of such
}

// layout caches the fields of every struct of a Job that is not text: reading the tags for each job takes longer than
// all checks.
var layout = func() map[reflect.Type][]known {
	all := map[reflect.Type][]known{}
	var add func(t reflect.Type)
	add = func(t reflect.Type) {
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			add(t.Elem())
		case reflect.Struct:
			if _, there := all[t]; there || reflect.PointerTo(t).Implements(textType) {
				return
			}
			all[t] = make([]known, t.NumField())
			for i := range t.NumField() {
				field := t.Field(i)
				of := field.Type
				if of.Kind() == reflect.Slice {
					of = of.Elem()
				}
				all[t][i] = known{fieldName(field), field.Tag.Get("also"), i, field.Tag, meaningOf(t, field), isGroup(of)}
				add(field.Type)
			}
		}
	}
	add(reflect.TypeFor[Job]())
	return all
}()

// visit calls f for every non-struct value below v, with its path and the tag of its field, in the order of the fields
// and sorted by key in maps. It skips unset fields, except in list entries.
func visit(v reflect.Value, path string, tag reflect.StructTag,
	f func(path string, v reflect.Value, tag reflect.StructTag)) {
	if v.Kind() == reflect.Pointer {
		if !v.IsNil() {
			visit(v.Elem(), path, tag, f)
		}
		return
	}
	fields, isStruct := layout[v.Type()]
	switch {
	case isStruct:
		inside := strings.ContainsRune(path, '[')
		for i, field := range fields {
			if v.Field(i).IsZero() && !inside {
				continue
			}
			name := field.name
			if path != "" {
				name = path + "." + name
			}
			visit(v.Field(i), name, field.tag, f)
		}
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			visit(v.Index(i), path+"["+strconv.Itoa(i)+"]", tag, f)
		}
	case v.Kind() == reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		for _, k := range keys {
			visit(v.MapIndex(k), path+"."+k.String(), tag, f)
		}
	default:
		f(path, v, tag)
	}
}
