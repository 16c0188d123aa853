package record

import (
	"encoding/json"
	"slices"
	"strings"
)

// mostTrees bounds the columns whose last cell in JSON is remembered.
const mostTrees = 16

// Leaves takes the cells of a row apart, so that JSON lines, CSV and Parquet give the same names and values.
type Leaves struct {
	// Common returns the form of a cell that all encodings share.
	Common func(text string, isTime bool) string
	trees  map[string]tree // the last cell in JSON of each column
}

// Plain returns a cell without what some encodings add: spaces around it, and the word that a database writes for no
// value.
func Plain(text string) string {
	text = strings.TrimSpace(text)
	if text == "NULL" || text == "null" || text == `\N` {
		return ""
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// Pairs adds a cell to the names and values of a row; an object in JSON has one pair for each of its leaves.
func (l *Leaves) Pairs(list []string, name, prefix string, isTime bool, text string) []string {
	text = Plain(text)
	if text == "" {
		return list
	}
	if text[0] != '{' && text[0] != '[' {
		return append(list, prefix+l.Common(text, isTime))
	}
	if last, is := l.trees[name]; is && last.text == text {
		return append(list, last.pairs...)
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil || d.More() {
		return append(list, prefix+text)
	}
	pairs := l.leaves(nil, name, v)
	if l.trees == nil || len(l.trees) >= mostTrees {
		l.trees = map[string]tree{}
	}
	l.trees[name] = tree{text, pairs}
	return append(list, pairs...)
}

// tree is a cell in JSON, and its leaves.
type tree struct {
	text  string
	pairs []string
}

// leaves adds the leaves of a decoded JSON value.
func (l *Leaves) leaves(list []string, name string, v any) []string {
	switch v := named(v).(type) {
	case map[string]any:
		for inner, v := range v {
			list = l.leaves(list, name+"."+inner, v)
		}
	case []any:
		if v = l.elements(v); len(v) > 0 {
			text, _ := json.Marshal(v) // texts, so it cannot fail
			list = append(list, Key(name)+"\x1e"+string(text))
		}
	default:
		if text := l.leaf(v); text != "" {
			list = append(list, Key(name)+"\x1e"+text)
		}
	}
	return list
}

// named returns a list of {"key": …, "value": …}, as Google writes labels, as an object.
func named(v any) any {
	list, is := v.([]any)
	if !is || len(list) == 0 {
		return v
	}
	object := map[string]any{}
	for _, e := range list {
		pair, _ := e.(map[string]any)
		key, ok := pair["key"].(string)
		value, has := pair["value"]
		_, twice := object[key]
		if !ok || twice || len(pair) > 2 || len(pair) == 2 && !has {
			return v
		}
		object[key] = value
	}
	return object
}

// elements returns a list's elements in their common form, without those that hold nothing.
func (l *Leaves) elements(list []any) (out []any) {
	for _, e := range list {
		switch e := named(e).(type) {
		case map[string]any:
			if pairs := l.leaves(nil, "", e); len(pairs) > 0 {
				slices.Sort(pairs)
				out = append(out, pairs)
			}
		case []any:
			if inner := l.elements(e); len(inner) > 0 {
				out = append(out, inner)
			}
		default:
			if text := l.leaf(e); text != "" {
				out = append(out, text)
			}
		}
	}
	return out
}

// leaf returns the common form of a text, number or truth value in JSON; "" for null.
func (l *Leaves) leaf(v any) string {
	switch v := v.(type) {
	case string:
		return l.Common(Plain(v), false)
	case json.Number:
		return l.Common(v.String(), false)
	case bool:
		return map[bool]string{true: "true", false: "false"}[v]
	}
	return ""
}
