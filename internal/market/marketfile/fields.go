package marketfile

import (
	"cmp"
	"reflect"
	"regexp"
	"strings"

	"scrimp/internal/lib/nearest"
)

// unknown and misfit match the YAML library's errors for an unknown field, with Go's name of the type that lacks it,
// and for a value of the wrong kind, with YAML's name of its kind and Go's name of the field's type.
var (
	unknown = regexp.MustCompile(`field (\S+) not found in type (\S+)`)
	misfit  = regexp.MustCompile("cannot unmarshal !!(\\w+)( `[^`]*`)? into (\\S+)")
)

// kinds describes YAML's kinds of values in words, and belongs what a Go type takes.
var (
	kinds = map[string]string{"seq": "a list", "map": "a map of fields", "int": "the number", "float": "the number",
		"bool": "true or false", "str": "the text", "null": "nothing"}
	belongs = map[string]string{"int": "a whole number", "float64": "a number", "string": "text",
		"time.Duration": "a span such as 90s or 1h30m"}
)

// inWords rewrites an error of the YAML library in terms of the file, in one line.
func inWords(err error) string {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	text = strings.Join(strings.Fields(strings.TrimPrefix(text, "unmarshal errors:")), " ")
	text = unknown.ReplaceAllStringFunc(text, func(s string) string {
		m := unknown.FindStringSubmatch(s)
		return lacks(m[1], m[2])
	})
	return misfit.ReplaceAllStringFunc(text, func(s string) string {
		m := misfit.FindStringSubmatch(s)
		takes := belongs[m[3]]
		if takes == "" && strings.Contains(m[3], "[]") {
			takes = "a list"
		}
		return cmp.Or(kinds[m[1]], "a value") + m[2] + " stands where " + cmp.Or(takes, "a map of fields") + " belongs"
	})
}

// lacks says that a part of the file has no such field, with the field that the user may have meant.
func lacks(field, in string) string {
	part, of := "a part of an offer", reflect.Type(nil)
	switch {
	case in == "marketfile.file":
		part, of = "a market file", reflect.TypeFor[file]()
	case in == "marketfile.fileOffer":
		part, of = "an offer", reflect.TypeFor[fileOffer]()
	}
	text := field + " is no field of " + part
	if of == nil {
		return text
	}
	var names []string
	for f := range of.Fields() {
		names = append(names, f.Tag.Get("yaml"))
	}
	if meant := nearest.Of(field, names); meant != "" {
		return text + ": did you mean " + meant + "?"
	}
	return text + ", which has " + strings.Join(names, ", ")
}
