package spec

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Schema returns the JSON schema of the job file, generated from the Go types, for completion in editors. It accepts
// everything that Parse accepts, but checks less: not the rules about several fields, and not times.
func Schema() []byte {
	s := object{
		{"$schema", "http://json-schema.org/draft-07/schema#"},
		{"title", "scrimp job file"},
	}
	s = append(s, objectOf(reflect.TypeFor[Job]())...)
	s = append(s,
		member{"patternProperties",
			object{{"^x-", object{{"description", "Not read: a place for what aliases stand for."}}}}},
		member{"anyOf", []any{object{{"required", []string{"command"}}}, object{{"required", []string{"args"}}}}})
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // maps and lists of strings always encode
	}
	var out bytes.Buffer
	if err := json.Indent(&out, b, "", "  "); err != nil {
		panic(err)
	}
	return append(out.Bytes(), '\n')
}

// object is a JSON object with ordered members.
type object []member

type member struct {
	name  string
	value any
}

// MarshalJSON writes the members in order.
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := e.Encode(m.name); err != nil {
			return nil, err
		}
		b.WriteByte(':')
		if err := e.Encode(m.value); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

func objectOf(t reflect.Type) object {
	var properties object
	for i := range t.NumField() {
		f := t.Field(i)
		properties = append(properties, member{fieldName(f), property(t, f)})
		if also := f.Tag.Get("also"); also != "" {
			properties = append(properties,
				member{also, append(object{{"description", "Another name of " + fieldName(f) + "."}}, formOf(f.Type, f.Tag)...)})
		}
	}
	return object{{"type", "object"}, {"additionalProperties", false}, {"properties", properties}}
}

func property(t reflect.Type, f reflect.StructField) object {
	m := meaningOf(t, f)
	if no := m.refused(); no != "" {
		m.doc += " " + no
	}
	p := object{{"description", m.doc + atMost(f.Type, f.Tag)}}
	if d, ok := f.Tag.Lookup("default"); ok {
		p = append(p, member{"default", plain(d)})
	}
	if eg := f.Tag.Get("eg"); eg != "" {
		p = append(p, member{"examples", []any{plain(eg)}})
	}
	b := boundOf(t, fieldName(f))
	if fieldName(f) == "command" {
		return append(p, member{"type", []string{"string", "array"}}, member{"maxLength", b.bytes},
			member{"items", object{{"type", scalars}}})
	}
	return append(p, bounded(formOf(f.Type, f.Tag), f, b)...)
}

// bounded adds a field's bounds. JSON schema counts characters instead of bytes; a text never has more characters than
// bytes.
func bounded(form object, f reflect.StructField, b bound) object {
	switch {
	case f.Type.Kind() == reflect.Map:
		return append(form, member{"maxProperties", b.items},
			member{"propertyNames", object{{"maxLength", b.key}}})
	case f.Type.Kind() == reflect.Slice:
		return append(form, member{"maxItems", b.items})
	case f.Type.Kind() == reflect.String && f.Tag.Get("enum") == "":
		return append(form, member{"maxLength", b.bytes})
	}
	return form
}

// plain returns the value of a piece of YAML.
func plain(text string) any {
	var v any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		return text
	}
	return v
}

// Patterns of text forms. Numbers may be written without quotes.
const (
	amountForm   = `^\$?[0-9]+(\.[0-9]{1,12})?$`
	priceForm    = `^\$?[0-9]+(\.[0-9]{1,12})?(/h)?$`
	spanForm     = `^([0-9.]+ *[a-zµ]+ *)+$`
	sizeForm     = `^[0-9.]+ ?([KMGT]i?B|kB|B)$`
	sizesForm    = `^[0-9.]+ ?([KMGT]i?B|kB|B)?(\+|\.\.[0-9.]+ ?([KMGT]i?B|kB|B))?$`
	rangeForm    = `^[0-9]+ ?(\+|\.\. ?[0-9]+)?$`
	deadlineForm = `^(in .+|[0-9.]+ *[a-zµ].*|[0-9]{4}-[0-9]{2}-[0-9]{2}[T ].+)$`
	countForm    = `^[0-9_]+(\.[0-9]+)?[KMBT]?$`
	numberForm   = `^[0-9_]+(\.[0-9]+)?[KMBTx%]?$`
)

var scalars = []string{"string", "number", "boolean"}

// writtenAs holds the patterns of types with a form of their own, and the types that they allow besides text.
var writtenAs = map[reflect.Type]struct {
	pattern string
	types   []string
}{
	amountType:                  {amountForm, []string{"number"}},
	rateType:                    {priceForm, []string{"number"}},
	bytesType:                   {sizeForm, nil},
	reflect.TypeFor[Duration](): {spanForm, nil},
	reflect.TypeFor[Range]():    {rangeForm, []string{"integer"}},
	reflect.TypeFor[Sizes]():    {sizesForm, nil},
	reflect.TypeFor[Deadline](): {deadlineForm, nil},
}

func formOf(t reflect.Type, tag reflect.StructTag) object {
	text := func(pattern string, types ...string) object {
		return object{{"type", append(slices.Clone(types), "string")}, {"pattern", pattern}}
	}
	if t.Kind() == reflect.Pointer {
		return formOf(t.Elem(), tag)
	}
	if name, ok := short[t]; ok {
		f, _ := fieldOf(t, name)
		return object{{"anyOf", []any{formOf(t.Field(f.index).Type, f.tag), objectOf(t)}}}
	}
	if f, ok := writtenAs[t]; ok {
		return text(f.pattern, f.types...)
	}
	switch t.Kind() {
	case reflect.Struct:
		return objectOf(t)
	case reflect.Map:
		return object{{"type", "object"}, {"additionalProperties", object{{"type", scalars}}}}
	case reflect.Slice:
		item := formOf(t.Elem(), tag)
		return object{{"anyOf", []any{object{{"type", "array"}, {"items", item}}, item}}}
	case reflect.Bool:
		return object{{"type", "boolean"}}
	case reflect.Int, reflect.Int64:
		return append(text(countForm, "integer"), member{"minimum", 1}, member{"maximum", most(kindOf(t, tag), tag)})
	case reflect.Float64:
		if tag.Get("zero") == "ok" {
			return object{{"type", "number"}, {"minimum", kindOf(t, tag).Least}, {"maximum", most(kindOf(t, tag), tag)}}
		}
		return append(text(numberForm, "number"), member{"exclusiveMinimum", 0}, member{"maximum", most(kindOf(t, tag), tag)})
	}
	if words := tag.Get("enum"); words != "" {
		return object{{"enum", strings.Split(words, ",")}}
	}
	return object{{"type", scalars}}
}
