package spec

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// Note is something the user should know about a job file that is not wrong.
type Note struct {
	Field string `json:"field"`
	Text  string `json:"text"`
}

func (n Note) String() string { return "`" + n.Field + "` " + n.Text }

// secretName is how variables are called whose value should not be in a log.
var secretName = regexp.MustCompile(`(?i)(^|_)(token|secret|password|passwd|api_?key|access_?key)$`)

// notes says which fields this release keeps and does not use yet, and which
// values had better be secrets.
func notes(j Job) []Note {
	list := later(reflect.ValueOf(j), "")
	if r := j.Resources; r.CPUs.Max > r.CPUs.Min || r.Memory.Max > r.Memory.Min {
		list = append(list, Note{"resources",
			"has an upper limit, which is kept and not used yet: the cheapest machine with at least the lower one is taken"})
	}
	for _, name := range slices.Sorted(maps.Keys(j.Env)) {
		if secretName.MatchString(name) && j.Env[name] != "" {
			list = append(list, Note{"env." + name,
				"looks like a secret, and env is kept in the log: name it under secrets instead"})
		}
	}
	return list
}

// later returns the notes on fields that are kept and not used yet.
func later(v reflect.Value, path string) []Note {
	var list []Note
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name := strings.TrimPrefix(path+"."+fieldName(f), ".")
		why := meaningOf(v.Type(), f).later
		switch {
		case v.Field(i).IsZero() || hasDefault(v.Field(i), f.Tag):
		case why != "":
			list = append(list, Note{name, "is kept and not used yet: " + why})
		case f.Type.Kind() == reflect.Struct && !reflect.PointerTo(f.Type).Implements(textType):
			list = append(list, later(v.Field(i), name)...)
		}
	}
	return list
}

// hasDefault reports whether a single value is what holds without it.
func hasDefault(v reflect.Value, tag reflect.StructTag) bool {
	text, ok := tag.Lookup("default")
	return ok && fmt.Sprint(v.Interface()) == text
}
