package spec

import (
	"reflect"
	"strconv"
	"strings"
)

// Use is what a job file is read for.
type Use int

// What a job file may be read for.
const (
	Read Use = iota // it is shown or judged: it may say whatever a job file can
	Rank            // machines are ranked for it
	Run             // it runs, or is played forward as it would run
)

// Refused says, as Problems without lines, which fields of the job are not honoured
// yet: what would be done otherwise than its file says is refused, and not done.
func (j Job) Refused(u Use) Problems {
	if u == Read {
		return nil
	}
	return refused(reflect.ValueOf(j), u, "")
}

func refused(v reflect.Value, u Use, path string) (list Problems) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name := strings.TrimPrefix(path+"."+fieldName(f), ".")
		switch m := meaningOf(v.Type(), f); {
		case v.Field(i).IsZero() || hasDefault(v.Field(i), f.Tag):
		case m.later != "":
			if u == Rank && m.planless || m.honoured != "" && v.Field(i).String() == m.honoured {
				continue
			}
			list = append(list, Problem{Field: name, Cause: "is not honoured until scrimp has " + m.later, Fix: m.fix})
		case f.Type.Kind() == reflect.Slice && isGroup(f.Type.Elem()):
			for k := range v.Field(i).Len() {
				list = append(list, refused(v.Field(i).Index(k), u, name+"["+strconv.Itoa(k)+"]")...)
			}
		case isGroup(f.Type):
			list = append(list, refused(v.Field(i), u, name)...)
		}
	}
	return list
}

// isGroup reports whether t is a group of fields, and no value that is written as text.
func isGroup(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && !reflect.PointerTo(t).Implements(textType)
}
