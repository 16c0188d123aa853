package spec

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"scrimp/internal/test/must"
)

var update = flag.Bool("update", false,
	"rewrite schema/job.schema.json and the tables of docs/job-file.md; read the diff before you commit it")

const (
	schemaFile = "../../../schema/job.schema.json"
	docFile    = "../../../docs/job-file.md"
)

var types = []reflect.Type{
	reflect.TypeFor[Job](), reflect.TypeFor[Resources](), reflect.TypeFor[Budget](), reflect.TypeFor[Work](),
	reflect.TypeFor[Metric](),
	reflect.TypeFor[Checkpoint](), reflect.TypeFor[Progress](), reflect.TypeFor[Notify](), reflect.TypeFor[Retry](), reflect.TypeFor[Variant](),
	reflect.TypeFor[Rung](),
	reflect.TypeFor[Model](), reflect.TypeFor[Data](),
}

func golden(t *testing.T, file string, want []byte) {
	t.Helper()
	if *update {
		must.Do(t, os.MkdirAll(filepath.Dir(file), 0o755))
		must.Do(t, os.WriteFile(file, want, 0o644))
	}
	have, err := os.ReadFile(file)
	must.Do(t, err)
	if !bytes.Equal(have, want) {
		t.Errorf("%s is not what the types say: go test ./internal/job/spec -update, and read the diff", file)
	}
}

func TestSchema_FileMatchesTypes(t *testing.T) { golden(t, schemaFile, Schema()) }

func TestReference_MatchesTypes(t *testing.T) {
	text, err := os.ReadFile(docFile)
	must.Do(t, err)
	for _, typ := range types {
		block := regexp.MustCompile(`(?s)<!-- fields ` + typ.Name() + ` -->\n.*?<!-- end -->`)
		if !block.Match(text) {
			t.Errorf("%s has no place for the fields of %s", docFile, typ.Name())
		}
		table := "<!-- fields " + typ.Name() + " -->\n" + reference(typ) + "<!-- end -->"
		text = block.ReplaceAllLiteral(text, []byte(table))
	}
	golden(t, docFile, text)
}

// reference returns the table of the fields of t.
func reference(t reflect.Type) string {
	var b strings.Builder
	b.WriteString("| field | is | meaning | default | example |\n| --- | --- | --- | --- | --- |\n")
	code := func(s string) string {
		if s == "" {
			return ""
		}
		return "`" + s + "`"
	}
	for i := range t.NumField() {
		f := t.Field(i)
		doc := meaningOf(t, f).doc
		if words := f.Tag.Get("enum"); words != "" {
			doc += " One of `" + strings.ReplaceAll(words, ",", "`, `") + "`."
		}
		if also := f.Tag.Get("also"); also != "" {
			doc += " `" + also + "` is read too."
		}
		if no := meaningOf(t, f).refused(); no != "" {
			doc += " *" + no + "*"
		}
		cells := []string{code(fieldName(f)), kind(f.Type), doc, code(f.Tag.Get("default")), code(f.Tag.Get("eg"))}
		for k := range cells {
			cells[k] = strings.ReplaceAll(cells[k], "|", `\|`)
		}
		fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
	}
	return b.String()
}

func kind(t reflect.Type) string {
	switch t {
	case amountType:
		return "amount"
	case rateType:
		return "price"
	case bytesType:
		return "size"
	case reflect.TypeFor[Duration]():
		return "span"
	case reflect.TypeFor[Range](), reflect.TypeFor[Sizes]():
		return "range"
	case reflect.TypeFor[Deadline]():
		return "deadline"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return kind(t.Elem())
	case reflect.Slice:
		return "list"
	case reflect.Map:
		return "map"
	case reflect.Struct:
		return "fields below"
	case reflect.Int, reflect.Int64:
		return "count"
	case reflect.Float64:
		return "number"
	case reflect.Bool:
		return "true, false"
	}
	return "text"
}

func TestMeanings_EveryFieldHasDescriptionAndValidExample(t *testing.T) {
	for _, typ := range types {
		for i := range typ.NumField() {
			f := typ.Field(i)
			name := typ.Name() + "." + fieldName(f)
			if !strings.HasSuffix(meaningOf(typ, f).doc, ".") {
				t.Errorf("%s is not described in a sentence", name)
			}
			for _, tag := range []string{"eg", "default"} {
				text, ok := f.Tag.Lookup(tag)
				if !ok {
					continue
				}
				var doc yaml.Node
				if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
					t.Errorf("%s of %s is not YAML: %v", tag, name, err)
					continue
				}
				r := reader{at: map[string]place{}}
				r.value(doc.Content[0], reflect.New(f.Type).Elem(), name, f.Tag)
				if tag == "eg" && len(r.problems) > 0 {
					t.Errorf("the example of %s: %v", name, r.problems)
				}
			}
			if f.Tag.Get("eg") == "" && f.Tag.Get("enum") == "" && kind(f.Type) != "fields below" &&
				kind(f.Type) != "list" {
				t.Errorf("%s has no example", name)
			}
		}
	}
}

// documents returns the job files that users see: the examples, and the code blocks of the documents. A partial block
// gets a command.
func documents(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	files, err := filepath.Glob("../../../examples/*/job.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no example has a job file: %v", err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		must.Do(t, err)
		found[f] = string(text)
	}
	text, err := os.ReadFile(docFile)
	must.Do(t, err)
	for i, m := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		block := m[1]
		if !regexp.MustCompile(`(?m)^(command|args):`).MatchString(block) {
			block = "command: run\n" + block
		}
		found[fmt.Sprintf("%s, block %d", docFile, i+1)] = block
	}
	return found
}

func TestDocs_ExamplesAreJobFiles(t *testing.T) {
	var schema map[string]any
	must.Do(t, json.Unmarshal(Schema(), &schema))
	found := documents(t)
	if len(found) < 15 {
		t.Errorf("only %d job files found", len(found))
	}
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for name, text := range found {
		if _, _, err := Parse(Run, "job.yaml", []byte(text), "folder", now); err != nil {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
		for _, p := range against(schema, value(t, text), "") {
			t.Errorf("%s does not follow the schema: %s", name, p)
		}
	}
}

// The schema refuses errors that an editor should mark, which shows that the test's validator can fail.
func TestSchema_RefusesErrors(t *testing.T) {
	var schema map[string]any
	must.Do(t, json.Unmarshal(Schema(), &schema))
	for _, bad := range []string{
		"name: a", "command: a\nbuget: 4", "command: a\npriority: high", "command: a\nnodes: two",
		"command: a\nresources: {cpus: many}",
		"command: a\nresources: {memory: 8}", "command: a\ngrace: 90", "command: a\nbudget: {dollars: 4 dollars}",
		"command: a\nenv: {A: [b]}",
		"command: a\nresources: {capacity: [spot, ondemand]}", "command: a\ndeadline: tomorrow",
		"command: a\nwork: {steps: -5}", "command: a\nwork: {steps: 100000000001}", "command: a\nbudget: {gpu_hours: 3e6}",
	} {
		if len(against(schema, value(t, bad), "")) == 0 {
			t.Errorf("the schema allows %q", bad)
		}
	}
}

// value decodes text as a validator sees it, through JSON.
func value(t *testing.T, text string) any {
	t.Helper()
	var v any
	must.Do(t, yaml.Unmarshal([]byte(text), &v))
	b, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(b, &v)
	}
	must.Do(t, err)
	return v
}

// against validates v against the part of JSON schema that Schema uses.
func against(schema map[string]any, v any, at string) (wrong []string) {
	bad := func(format string, args ...any) { wrong = append(wrong, at+": "+fmt.Sprintf(format, args...)) }
	for keyword, want := range schema {
		switch keyword {
		case "$schema", "title", "description", "default", "examples", "additionalProperties", "patternProperties":
		case "type":
			allowed, ok := want.([]any)
			if !ok {
				allowed = []any{want}
			}
			if !slices.ContainsFunc(allowed, func(a any) bool {
				return typeOf(v) == a || typeOf(v) == "integer" && a == "number"
			}) {
				bad("is %v, a %s", v, typeOf(v))
			}
		case "enum":
			if !slices.Contains(want.([]any), v) {
				bad("is %v", v)
			}
		case "pattern":
			if s, ok := v.(string); ok && !regexp.MustCompile(want.(string)).MatchString(s) {
				bad("is %q", s)
			}
		case "maxLength":
			if text, ok := v.(string); ok && len(text) > int(want.(float64)) {
				bad("is longer than %v", want)
			}
		case "maxItems":
			if list, ok := v.([]any); ok && len(list) > int(want.(float64)) {
				bad("has more than %v items", want)
			}
		case "maxProperties":
			if m, ok := v.(map[string]any); ok && len(m) > int(want.(float64)) {
				bad("has more than %v items", want)
			}
		case "propertyNames":
			m, _ := v.(map[string]any)
			for name := range m {
				wrong = append(wrong, against(want.(map[string]any), name, at+"."+name)...)
			}
		case "minimum":
			if n, ok := v.(float64); ok && n < want.(float64) {
				bad("is %v", n)
			}
		case "maximum":
			if n, ok := v.(float64); ok && n > want.(float64) {
				bad("is %v", n)
			}
		case "exclusiveMinimum":
			if n, ok := v.(float64); ok && n <= want.(float64) {
				bad("is %v", n)
			}
		case "items":
			list, _ := v.([]any)
			for i, item := range list {
				wrong = append(wrong, against(want.(map[string]any), item, fmt.Sprintf("%s[%d]", at, i))...)
			}
		case "required":
			m, ok := v.(map[string]any)
			for _, name := range want.([]any) {
				if _, has := m[name.(string)]; ok && !has {
					bad("has no %s", name)
				}
			}
		case "anyOf":
			if !slices.ContainsFunc(want.([]any), func(s any) bool { return len(against(s.(map[string]any), v, at)) == 0 }) {
				bad("is none of what is allowed: %v", v)
			}
		case "properties":
			m, _ := v.(map[string]any)
			for name, item := range m {
				if p, ok := want.(map[string]any)[name]; ok {
					wrong = append(wrong, against(p.(map[string]any), item, at+"."+name)...)
				} else if schema["additionalProperties"] == false && !strings.HasPrefix(name, "x-") {
					bad("has the unknown field %s", name)
				}
			}
		default:
			bad("the test does not know the keyword %s", keyword)
		}
		if keyword == "additionalProperties" {
			if p, ok := want.(map[string]any); ok {
				m, _ := v.(map[string]any)
				for name, item := range m {
					wrong = append(wrong, against(p, item, at+"."+name)...)
				}
			}
		}
	}
	return wrong
}

func typeOf(v any) string {
	switch v := v.(type) {
	case string:
		return "string"
	case bool:
		return "boolean"
	case float64:
		if v == float64(int64(v)) {
			return "integer"
		}
		return "number"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	}
	return "null"
}
