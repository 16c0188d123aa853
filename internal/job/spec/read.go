package spec

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
)

// place is the location of a field in the file; both numbers count from 1.
type place struct{ line, column int }

// reader converts nodes to values and records the location of each field.
type reader struct {
	file     string
	problems Problems
	at       map[string]place
	nodes    int
}

func (r *reader) wrong(n *yaml.Node, field, cause, fix string) {
	if len(r.problems) < maxProblems {
		r.problems = append(r.problems,
			Problem{File: r.file, Line: n.Line, Column: n.Column, Field: field, Cause: cause, Fix: fix})
	}
}

// add adds a problem of check with its location, unless the same field was already unreadable.
func (r *reader) add(p Problem) {
	for _, q := range r.problems {
		if q.Field == p.Field || strings.HasPrefix(q.Field, p.Field+".") || strings.HasPrefix(q.Field, p.Field+"[") ||
			strings.HasPrefix(p.Field, q.Field+".") && q.Field != "" {
			return
		}
	}
	p.File = r.file
	for field := p.Field; field != ""; field = field[:max(0, strings.LastIndexAny(field, ".["))] {
		if at, ok := r.at[field]; ok {
			p.Line, p.Column = at.line, at.column
			break
		}
	}
	if len(r.problems) < maxProblems {
		r.problems = append(r.problems, p)
	}
}

var (
	amountType   = reflect.TypeFor[money.Amount]()
	rateType     = reflect.TypeFor[money.Rate]()
	bytesType    = reflect.TypeFor[size.Bytes]()
	budgetType   = reflect.TypeFor[Budget]()
	progressType = reflect.TypeFor[Progress]()
	dataType     = reflect.TypeFor[Data]()
	variantType  = reflect.TypeFor[Variant]()
	notifyType   = reflect.TypeFor[Notify]()
	textType     = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// short maps a struct type to the field that a single value sets, as in budget: $4.00.
var short = map[reflect.Type]string{budgetType: "dollars", progressType: "pattern", dataType: "path",
	variantType: "engine", notifyType: "webhook"}

// room counts a node, with aliases followed, and returns false beyond the limit of a file.
func (r *reader) room(n *yaml.Node, field string) bool {
	r.nodes++
	if r.nodes == maxNodes+1 {
		r.wrong(n, field, "makes the file too large", "use fewer aliases")
	}
	return r.nodes <= maxNodes
}

// value reads node n into v; field is its path, and tag the tag of the struct field.
func (r *reader) value(n *yaml.Node, v reflect.Value, field string, tag reflect.StructTag) {
	if !r.room(n, field) {
		return
	}
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if field != "" {
		r.at[field] = place{n.Line, n.Column}
	}
	if n.Tag == "!!null" {
		return // a field without a value is unset
	}
	if strings.HasPrefix(n.Tag, "!") && !slices.Contains(plainTags, n.Tag) {
		r.wrong(n, field, "has the type "+n.Tag+", which scrimp does not read", "leave the type away")
		return
	}
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		r.value(n, v.Elem(), field, tag)
		return
	}
	if name, ok := short[v.Type()]; ok && n.Kind == yaml.ScalarNode {
		f, _ := fieldOf(v.Type(), name)
		r.value(n, v.Field(f.index), field, f.tag)
		return
	}
	isText := reflect.PointerTo(v.Type()).Implements(textType)
	switch {
	case v.Kind() == reflect.Struct && !isText:
		r.fields(n, v, field)
	case v.Kind() == reflect.Map:
		r.entries(n, v, field, tag)
	case v.Kind() == reflect.Slice:
		r.list(n, v, field, tag)
	case n.Kind != yaml.ScalarNode:
		r.wrong(n, field, "is a "+kindName(n)+", not a single value", such(tag))
	default:
		r.scalar(n, v, field, tag)
	}
}

// plainTags lists YAML's built-in types.
var plainTags = []string{"!!str", "!!int", "!!float", "!!bool", "!!null", "!!timestamp", "!!map", "!!seq", "!!merge"}

func kindName(n *yaml.Node) string {
	if n.Kind == yaml.SequenceNode {
		return "list"
	}
	return "map"
}

// such says how to write a field.
func such(tag reflect.StructTag) string {
	if eg := tag.Get("eg"); eg != "" {
		return "write it like " + eg
	}
	if words := tag.Get("enum"); words != "" {
		return "write one of " + strings.ReplaceAll(words, ",", ", ")
	}
	return "write a value"
}

func (r *reader) scalar(n *yaml.Node, v reflect.Value, field string, tag reflect.StructTag) {
	err := setScalar(v, n.Value)
	if err != nil {
		r.wrong(n, field, "is wrong ("+err.Error()+")", such(tag))
		return
	}
	switch {
	case !v.IsZero() || tag.Get("zero") == "ok" || v.Kind() == reflect.Bool || v.Type() == amountType:
	case v.Kind() == reflect.String:
		r.wrong(n, field, "is empty", "leave it out, or "+such(tag))
	default:
		r.wrong(n, field, "is zero", "leave it out, or give more than zero")
	}
}

// setScalar parses text into v according to v's type.
func setScalar(v reflect.Value, text string) error {
	switch v.Type() {
	case amountType:
		a, err := ParseAmount(text)
		v.Set(reflect.ValueOf(a))
		return err
	case rateType:
		a, err := ParsePrice(text)
		v.SetInt(int64(a))
		return err
	case bytesType:
		b, err := size.Parse(text)
		v.SetInt(int64(b))
		return err
	}
	if t, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return t.UnmarshalText([]byte(text))
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		if text != "true" && text != "false" {
			return fmt.Errorf("%q is not true or false", text)
		}
		v.SetBool(text == "true")
	case reflect.Int, reflect.Int64:
		i, err := parseCount(text)
		if err == nil && v.OverflowInt(i) {
			err = fmt.Errorf("%q is too large", text)
		}
		v.SetInt(i)
		return err
	case reflect.Float64:
		f, err := parseNumber(text)
		v.SetFloat(f)
		return err
	default:
		return fmt.Errorf("%v cannot be read", v.Type())
	}
	return nil
}

// list reads a list; a single value counts as a list of one.
func (r *reader) list(n *yaml.Node, v reflect.Value, field string, tag reflect.StructTag) {
	items := n.Content
	switch {
	case n.Kind == yaml.ScalarNode:
		items = []*yaml.Node{n}
	case n.Kind == yaml.MappingNode:
		r.wrong(n, field, "is a map, not a list", "begin each item with a dash")
		return
	case len(items) == 0:
		r.wrong(n, field, "is an empty list", "leave it out, or "+such(tag))
		return
	}
	list := reflect.MakeSlice(v.Type(), len(items), len(items))
	for i, item := range items {
		at := field + "[" + strconv.Itoa(i) + "]"
		if item.Tag == "!!null" {
			r.wrong(item, at, "is an item without a value", "write a value or leave the dash out")
		}
		r.value(item, list.Index(i), at, tag)
	}
	v.Set(list)
}

func (r *reader) fields(n *yaml.Node, v reflect.Value, field string) {
	if n.Kind != yaml.MappingNode {
		r.wrong(n, field, "is not a map of fields", "write one field a line, name: value")
		return
	}
	seen := map[string]bool{}
	for _, p := range r.pairs(n, field, 0) {
		f, ok := fieldOf(v.Type(), p.key.Value)
		full := strings.TrimPrefix(field+"."+p.key.Value, ".")
		if !ok {
			if field == "" && strings.HasPrefix(p.key.Value, "x-") {
				continue // a holder of alias anchors
			}
			r.wrong(p.key, full, "is unknown", meant(v.Type(), p.key.Value))
			continue
		}
		full = strings.TrimPrefix(field+"."+f.name, ".")
		if seen[f.name] {
			r.wrong(p.key, full, "stands twice", "keep one")
			continue
		}
		seen[f.name] = true
		if full == "command" && p.value.Kind == yaml.SequenceNode { // a program without a shell
			f, _ = fieldOf(v.Type(), "args")
			r.at["args"] = place{p.value.Line, p.value.Column}
			if seen[f.name] {
				r.wrong(p.key, "args", "stands beside command", "keep one of the two")
				continue
			}
			seen[f.name] = true
		}
		r.value(p.value, v.Field(f.index), full, f.tag)
	}
}

type pair struct{ key, value *yaml.Node }

// pairs returns the entries of a map, and those of merged maps (<<) that it does not have itself.
func (r *reader) pairs(n *yaml.Node, field string, depth int) []pair {
	var own, merged []pair
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		if key.Kind != yaml.ScalarNode {
			r.wrong(key, field, "has a key that is a "+kindName(key), "write name: value")
			continue
		}
		if key.Tag != "!!merge" {
			own = append(own, pair{key, value})
			continue
		}
		sources := []*yaml.Node{value}
		if value.Kind == yaml.SequenceNode {
			sources = value.Content
		}
		for _, s := range sources {
			if s.Kind == yaml.AliasNode {
				s = s.Alias
			}
			if s.Kind != yaml.MappingNode || depth > 3 || r.nodes > maxNodes {
				r.wrong(key, field, "merges what is not a map of fields", "give << an alias of one, such as *base")
				continue
			}
			r.nodes += len(s.Content)
			merged = append(merged, r.pairs(s, field, depth+1)...)
		}
	}
	have := map[string]bool{}
	for _, p := range own {
		have[p.key.Value] = true
	}
	for _, p := range merged {
		if !have[p.key.Value] {
			own, have[p.key.Value] = append(own, p), true
		}
	}
	return own
}

func (r *reader) entries(n *yaml.Node, v reflect.Value, field string, tag reflect.StructTag) {
	if n.Kind != yaml.MappingNode {
		r.wrong(n, field, "is not a map", "write one entry a line, NAME: value")
		return
	}
	m := reflect.MakeMap(v.Type())
	for _, p := range r.pairs(n, field, 0) {
		key, item := p.key.Value, reflect.New(v.Type().Elem()).Elem()
		if m.MapIndex(reflect.ValueOf(key)).IsValid() {
			r.wrong(p.key, field+"."+key, "stands twice", "keep one")
			continue
		}
		if p.value.Tag == "!!null" {
			r.wrong(p.key, field+"."+key, "has no value", "write \"\" for an empty one, or leave it out")
			continue
		}
		r.value(p.value, item, field+"."+key, tag)
		m.SetMapIndex(reflect.ValueOf(key), item)
	}
	if m.Len() > 0 {
		v.Set(m)
	}
}
