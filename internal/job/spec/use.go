package spec

import (
	"reflect"
	"strconv"
	"strings"
)

// Use is the purpose of reading a job file.
type Use int

// Purposes of reading a job file.
const (
	Read Use = iota // to show or judge it: any valid job file
	Rank            // to rank machines for it
	Run             // to run it, or to simulate its run
)

// Refused returns, as Problems without lines, the fields of the job that are not honoured yet. scrimp refuses them
// instead of ignoring them.
func (j Job) Refused(u Use) Problems {
	if u == Read {
		return nil
	}
	return refused(reflect.ValueOf(&j).Elem(), u, "")
}

func refused(v reflect.Value, u Use, path string) (list Problems) {
	for i, f := range layout[v.Type()] {
		if v.Field(i).IsZero() || hasDefault(v.Field(i), f.tag) {
			continue
		}
		name, m := strings.TrimPrefix(path+"."+f.name, "."), &f.meaning
		switch {
		case m.later != "":
			if u == Rank && m.planless || m.honoured != "" && v.Field(i).String() == m.honoured {
				continue
			}
			list = append(list, Problem{Field: name, Cause: "is not honoured until scrimp has " + m.later, Fix: m.fix})
		case m.unranked && u == Rank:
			list = append(list, Problem{Field: name, Cause: "is not counted by plan --catalog",
				Fix: "leave it out there: scrimp plan counts it"})
		case f.group && v.Field(i).Kind() == reflect.Slice:
			for k := range v.Field(i).Len() {
				list = append(list, refused(v.Field(i).Index(k), u, name+"["+strconv.Itoa(k)+"]")...)
			}
		case f.group:
			list = append(list, refused(v.Field(i), u, name)...)
		}
	}
	return list
}

// isGroup reports whether t is a group of fields, not a value that is written as text.
func isGroup(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && !reflect.PointerTo(t).Implements(textType)
}
