package openapi

import (
	"encoding"
	"reflect"

	"scrimp/internal/lib/quantity"
	"scrimp/internal/wire/limits"
)

// ask marks a type as a part of requests.
func (g *schemas) ask(t reflect.Type) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || g.asked[t] || known(t) != nil {
		return
	}
	g.asked[t] = true
	for f := range t.Fields() {
		g.ask(f.Type)
	}
}

// limit adds the bound of a field to its schema.
func limit(schema map[string]any, t reflect.Type, b limits.Bound) {
	if t.Kind() == reflect.Pointer {
		if either, ok := schema["anyOf"].([]any); ok {
			limit(either[0].(map[string]any), t.Elem(), b) //nolint:forcetypeassert // as of wrote it
		}
		return
	}
	switch t.Kind() {
	case reflect.String:
		if !t.Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
			schema["maxLength"] = b.Bytes
		}
	case reflect.Slice:
		if schema["type"] == "string" { // bytes as text
			schema["maxLength"] = b.Bytes
			return
		}
		if schema["type"] != "array" {
			return
		}
		schema["maxItems"] = b.Items
		limit(schema["items"].(map[string]any), t.Elem(), b) //nolint:forcetypeassert // likewise
	case reflect.Map:
		schema["maxProperties"], schema["propertyNames"] = b.Items, map[string]any{"maxLength": b.Key}
		limit(schema["additionalProperties"].(map[string]any), t.Elem(), b) //nolint:forcetypeassert // likewise
	default:
	}
}

// number adds the unit and range of a field to its schema. For a list or a map, it adds them to the elements.
func number(schema map[string]any, t reflect.Type, k *quantity.Kind) {
	switch {
	case k == nil:
		return
	case t.Kind() == reflect.Pointer:
		if either, ok := schema["anyOf"].([]any); ok {
			number(either[0].(map[string]any), t.Elem(), k) //nolint:forcetypeassert // as of wrote it
		}
		return
	case t.Kind() == reflect.Slice:
		number(schema["items"].(map[string]any), t.Elem(), k) //nolint:forcetypeassert // likewise
		return
	case t.Kind() == reflect.Map:
		number(schema["additionalProperties"].(map[string]any), t.Elem(), k) //nolint:forcetypeassert // likewise
		return
	case schema["type"] == "integer", schema["type"] == "number":
		schema["minimum"], schema["maximum"] = k.Least, k.Most
	}
	says := k.Name + ", " + k.Range()
	if k == quantity.Span {
		says = "nanoseconds, " + k.Range()
	}
	schema["description"] = says
}

// limitList adds the length limit to a request that is a list.
func limitList(content map[string]any, t reflect.Type) {
	if t.Kind() != reflect.Slice {
		return
	}
	if body, ok := content["application/json"].(map[string]any); ok {
		body["schema"].(map[string]any)["maxItems"] = limits.OfList(t).Items //nolint:forcetypeassert // as of wrote it
	}
}
