package spec

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
)

// Every field of a job file refuses an empty text and an empty list, names itself and says what to write. An argument,
// a variable and the value of a tag may be empty.
func TestParse_EmptyValueIsRefused(t *testing.T) {
	tried := 0
	for _, at := range textFields(reflect.TypeFor[Job](), "command: 'true'\n", "") {
		for _, empty := range []string{`""`, "[]"} {
			text := strings.Replace(at.text, "VALUE", empty, 1)
			if at.field == "command" {
				text = strings.TrimPrefix(text, "command: 'true'\n")
			}
			_, _, err := Parse(Run, "job.yaml", []byte(text), "job", time.Unix(0, 0))
			list, _ := errors.AsType[Problems](err)
			tried++
			named := func(p Problem) bool { return p.Line > 0 && strings.HasPrefix(p.Field, at.field) && p.Cause != "" }
			if len(list) == 0 || !named(list[0]) || list[0].Fix == "" {
				t.Errorf("%q: %v", text, err)
			}
		}
	}
	if tried < 100 {
		t.Errorf("the test is void: %d values", tried)
	}
	for _, text := range []string{"args: [echo, '']", "command: [echo, '']", "command: a\nenv: {A: ''}", "command: a\ntags: {a: ''}",
		"command: a\nany_of: [{engine: lab, env: {A: ''}, args: ['']}]", "command: a\nteam:", "command: a\nenv: {}\nnotify: {}"} {
		if _, _, err := Parse(Run, "job.yaml", []byte(text), "job", time.Unix(0, 0)); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// textField is a job file with VALUE as the value of one field.
type textField struct{ field, text string }

// textFields returns a job file for every field of t that is no map and contains no fields.
func textFields(t reflect.Type, before, path string) (all []textField) {
	for i, f := range layout[t] {
		of := t.Field(i).Type
		full, line := strings.TrimPrefix(path+"."+f.name, "."), before+f.name+": "
		if path != "" {
			line = before + "{" + f.name + ": "
		}
		after := strings.Repeat("}", strings.Count(line, "{"))
		switch {
		case of.Kind() == reflect.Slice && f.group:
			below := textFields(of.Elem(), line+"[", full+"[0]")
			for k := range below {
				below[k].text += "]" + after
			}
			all = append(all, below...)
		case f.group:
			all = append(all, textFields(of, line, full)...)
		case of.Kind() != reflect.Map && f.name != "args":
			all = append(all, textField{full, line + "VALUE" + after})
		}
	}
	return all
}
