// Package yamlerror puts errors of the YAML library in the words of the file that it read.
package yamlerror

import (
	"cmp"
	"regexp"
	"strings"
)

// misfit matches the YAML library's error for a value of the wrong kind. It contains YAML's name of
// the value's kind and Go's name of the field's type.
var misfit = regexp.MustCompile("cannot unmarshal !!(\\w+)( `[^`]*`)? into (\\S+)")

// unknown matches the YAML library's error for an unknown field, also of a Go type without a name.
var unknown = regexp.MustCompile(`field (\S+) not found in type (struct \{.*? \}|\S+)`)

// kinds describes YAML's kinds of values in words.
var kinds = map[string]string{"seq": "a list", "map": "a map of fields", "int": "a number", "float": "a number",
	"bool": "true or false", "str": "text", "null": "nothing"}

// Type describes a Go type in the words of the file.
type Type struct {
	Fields string // the fields that it has, as a sentence
	Value  string // which values it takes
}

// InOneLine rewrites an error of the YAML library in terms of the file, without line breaks. types describes Go types
// by name, such as engine.Setting.
func InOneLine(err error, types map[string]Type) string {
	text := strings.TrimPrefix(err.Error(), "yaml: unmarshal errors:")
	text = strings.Join(strings.Fields(strings.TrimPrefix(text, "yaml: ")), " ")
	text = unknown.ReplaceAllStringFunc(text, func(s string) string {
		m := unknown.FindStringSubmatch(s)
		text := m[1] + " is unknown there"
		if has := types[m[2]].Fields; has != "" {
			text += ": " + has
		}
		return text
	})
	return misfit.ReplaceAllStringFunc(text, func(s string) string {
		m := misfit.FindStringSubmatch(s)
		text := cmp.Or(kinds[m[1]], "a value") + m[2]
		if takes := cmp.Or(types[m[3]].Value, belongs(m[3])); takes != "" {
			return text + " stands where " + takes + " belongs"
		}
		return text + " does not belong there"
	})
}

// belongs describes the values of a Go type in words, or returns "".
func belongs(t string) string {
	switch {
	case strings.HasPrefix(t, "[]"):
		return "a list"
	case strings.HasPrefix(t, "int"), strings.HasPrefix(t, "float"), strings.HasPrefix(t, "uint"):
		return "a number"
	case t == "bool":
		return "true or false"
	case t == "string":
		return "text"
	}
	return ""
}
