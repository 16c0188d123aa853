package spec

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// Note is a remark about a valid job file.
type Note struct {
	Field string `json:"field"`
	Text  string `json:"text"`
}

func (n Note) String() string { return "`" + n.Field + "` " + n.Text }

// secretName matches names of variables whose values do not belong in a log.
var secretName = regexp.MustCompile(`(?i)(^|_)(token|secret|password|passwd|api_?key|access_?key)$`)

// notes lists what a run would refuse, if the job is read for another use, what a run leaves to the program, and values
// that should be secrets.
func notes(j Job, u Use) []Note {
	var list []Note
	if u != Run {
		for _, p := range j.Refused(Run) {
			list = append(list, Note{p.Field, p.Cause + ", and a run is refused: " + p.Fix})
		}
	} else {
		list = unread(j)
	}
	for _, name := range slices.Sorted(maps.Keys(j.Env)) {
		if secretName.MatchString(name) && j.Env[name] != "" {
			list = append(list, Note{"env." + name,
				"looks like a secret, and env is kept in the log: name it under secrets instead"})
		}
	}
	for i, name := range j.Inherit {
		if secretName.MatchString(name) {
			list = append(list, Note{fmt.Sprintf("inherit[%d]", i),
				name + " looks like a secret: under secrets it is masked in the output, and reaches every machine"})
		}
	}
	return list
}

// unread lists fields that plans and checks use and a run ignores.
func unread(j Job) (list []Note) {
	if slices.ContainsFunc(j.Data, func(d Data) bool { return d.Name == "" }) {
		list = append(list, Note{"data", "is weighed by what reading it from another region costs; a run brings inputs " +
			"with a name only: the program reads the others itself"})
	}
	for i, d := range j.Data {
		switch at := fmt.Sprintf("data[%d]", i); {
		case !strings.Contains(d.Path, "://"):
		case d.Region == "":
			list = append(list, Note{at + ".region", "is missing, so that a run does not count what reading it costs"})
		case d.Size == 0:
			list = append(list, Note{at + ".size", "is missing, so that what reading it elsewhere costs is unknown: the job " +
				"runs in " + d.Region + " only"})
		}
	}
	w := j.Work
	if (w.Epochs > 0 || w.Samples > 0 || w.Tokens > 0) && w.Steps == 0 && w.Time == 0 {
		list = append(list, Note{"work", "has neither steps nor time: a run goes by the total that the program reports, " +
			"and cannot plan for a deadline before"})
	}
	return list
}

// hasDefault reports whether a value equals the field's default.
func hasDefault(v reflect.Value, tag reflect.StructTag) bool {
	text, ok := tag.Lookup("default")
	return ok && fmt.Sprint(v.Interface()) == text
}
