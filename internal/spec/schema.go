package spec

import (
	"encoding/json"
	"reflect"
	"strings"
)

// Schema is the JSON schema of the job file, made from the Go types, so that
// editors complete it.
func Schema() []byte {
	s := object(reflect.TypeFor[Job]())
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = "scrimp job file"
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		panic(err) // maps of strings always encode
	}
	return append(b, '\n')
}

func object(t reflect.Type) map[string]any {
	properties := map[string]any{}
	for i := range t.NumField() {
		f := t.Field(i)
		p := schema(f.Type)
		if doc := f.Tag.Get("doc"); doc != "" {
			p["description"] = doc
		}
		if words := f.Tag.Get("enum"); words != "" {
			list := strings.Split(words, ",")
			if items, ok := p["items"].(map[string]any); ok {
				items["enum"] = list
			} else {
				p["enum"] = list
			}
		}
		properties[fieldName(f)] = p
	}
	return map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
}

func schema(t reflect.Type) map[string]any {
	if t.Kind() == reflect.Pointer {
		return schema(t.Elem())
	}
	switch {
	case t == budgetType:
		return map[string]any{"anyOf": []any{map[string]any{"type": []string{"string", "number"}}, object(t)}}
	case t == amountType || t == rateType:
		return map[string]any{"type": []string{"string", "number"}, "examples": []string{"$4.00"}}
	case t == bytesType:
		return map[string]any{"type": "string", "examples": []string{"80GiB"}}
	case reflect.PointerTo(t).Implements(textType):
		return map[string]any{"type": []string{"string", "number"}}
	}
	switch t.Kind() {
	case reflect.Struct:
		return object(t)
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": map[string]any{"type": []string{"string", "number", "boolean"}}}
	case reflect.Slice:
		item := schema(t.Elem())
		if item["type"] == "object" {
			return map[string]any{"type": "array", "items": item}
		}
		return map[string]any{"type": []string{"array", "string", "number"}, "items": item}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int, reflect.Int64:
		return map[string]any{"type": "integer", "minimum": 0}
	case reflect.Float64:
		return map[string]any{"type": "number"}
	}
	return map[string]any{"type": "string"}
}
