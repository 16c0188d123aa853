package engine

import (
	"cmp"
	"regexp"
	"strings"
)

// misfit matches the YAML library's error for a value of the wrong kind. It contains YAML's name of
// the value's kind and Go's name of the field's type.
var misfit = regexp.MustCompile("cannot unmarshal !!(\\w+)( `[^`]*`)? into (\\S+)")

// unknown matches the YAML library's error for an unknown field.
var unknown = regexp.MustCompile(`field (\S+) not found in type (\S+)`)

// kinds describes YAML's kinds of values in words.
var kinds = map[string]string{"seq": "a list", "map": "a map of fields", "int": "a number", "float": "a number",
	"bool": "true or false", "str": "text", "null": "nothing"}

// inOneLine rewrites an error of the YAML library in terms of the file, without line breaks.
func inOneLine(err error) string {
	text := strings.TrimPrefix(err.Error(), "yaml: unmarshal errors:")
	text = strings.Join(strings.Fields(strings.TrimPrefix(text, "yaml: ")), " ")
	text = unknown.ReplaceAllStringFunc(text, func(s string) string {
		m := unknown.FindStringSubmatch(s)
		text := m[1] + " is unknown there"
		switch m[2] {
		case "engine.Setting":
			text += ": an engine has name, kind, agents, users, seats, timing and with; what is of its kind alone, as " +
				"market or machines, stands under with"
		case "engine.settingsFile":
			text += ": the file has engines, a list of them"
		}
		return text
	})
	return misfit.ReplaceAllStringFunc(text, func(s string) string {
		m := misfit.FindStringSubmatch(s)
		text := cmp.Or(kinds[m[1]], "a value") + m[2]
		if takes := belongs(m[3]); takes != "" {
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
	case t == "engine.Setting":
		return "a map of fields"
	case t == "string":
		return "text"
	}
	return ""
}
