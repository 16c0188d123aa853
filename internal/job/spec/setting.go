package spec

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Setting is a field of a job that a command-line flag sets, replacing the job file's value. The text is as in the
// file, with its short forms; none removes a deadline, a budget or an image, and an accelerator of any kind keeps its
// count.
type Setting struct {
	Flag  string // as typed, --deadline: problems name it instead of the field
	Field string // path such as resources.accelerator
	Text  string
}

// noneOf lists the fields that none can remove.
var noneOf = []string{"deadline", "budget.dollars", "image"}

// Set replaces fields of a job that has no file, and checks the whole job for the use u.
func (j Job) Set(u Use, now time.Time, settings ...Setting) (Job, error) {
	r := reader{at: map[string]place{}}
	r.set(&j, settings)
	j.Deadline = j.Deadline.Local(now.Location())
	r.judge(j, u, now, settings)
	if len(r.problems) > 0 {
		return j, r.problems
	}
	j.normalize()
	return j, nil
}

// set replaces fields of j and drops the problems of the replaced values.
func (r *reader) set(j *Job, settings []Setting) {
	for _, s := range settings {
		r.problems = slices.DeleteFunc(r.problems, func(p Problem) bool { return s.covers(p.Field) })
		for field := range r.at {
			if s.covers(field) {
				delete(r.at, field)
			}
		}
		if cause, fix := s.outdone(j); cause != "" {
			r.problems = append(r.problems, Problem{Field: s.Flag, Cause: cause, Fix: fix})
			continue
		}
		v, tag := s.in(j)
		text := s.Text
		if kind, count, counted := strings.Cut(v.String(), ":"); text == AnyAccelerator && kind != "" && counted {
			text += ":" + count
		}
		v.SetZero()
		if text == "none" && slices.Contains(noneOf, s.Field) {
			continue
		}
		one := reader{at: map[string]place{}}
		one.value(&yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}, v, s.Field, tag)
		for _, p := range one.problems {
			r.problems = append(r.problems, Problem{Field: s.Flag, Cause: p.Cause, Fix: p.Fix})
		}
	}
}

// judge checks the whole job; problems of a field that was set name its flag.
func (r *reader) judge(j Job, u Use, now time.Time, settings []Setting) {
	for _, p := range append(check(j, now), j.Refused(u)...) {
		i := slices.IndexFunc(settings, func(s Setting) bool { return s.covers(p.Field) })
		if i < 0 {
			r.add(p)
			continue
		}
		p.Field = settings[i].Flag
		if !slices.ContainsFunc(r.problems, func(q Problem) bool { return q.Field == p.Field }) {
			r.problems = append(r.problems, p)
		}
	}
}

// covers reports whether the field is the one that s sets, or a part of it.
func (s Setting) covers(field string) bool {
	if s.Field == "budget.dollars" && field == "budget" { // its short form
		return true
	}
	rest, ok := strings.CutPrefix(field, s.Field)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// in returns the field in j, with its tag.
func (s Setting) in(j *Job) (v reflect.Value, tag reflect.StructTag) {
	v = reflect.ValueOf(j).Elem()
	for name := range strings.SplitSeq(s.Field, ".") {
		f, _ := fieldOf(v.Type(), name) // settings are our own
		v, tag = v.Field(f.index), f.tag
	}
	return v, tag
}

// outdone explains why other parts of the file would make the setting ineffective.
func (s Setting) outdone(j *Job) (cause, fix string) {
	imaged := func(v Variant) bool { return v.Image != "" }
	if s.Field == "image" && slices.ContainsFunc(j.AnyOf, imaged) {
		return "does not reach the alternatives of `any_of`, which have images of their own",
			"change any_of in the job file, or leave the flag out"
	}
	if !strings.HasPrefix(s.Field, "resources.") {
		return "", ""
	}
	own := func(v Variant) bool { return !reflect.ValueOf(v.Resources).IsZero() }
	if slices.ContainsFunc(j.AnyOf, own) {
		return "does not reach the alternatives of `any_of`, which have resources of their own",
			"change any_of in the job file, or leave the flag out"
	}
	bound := func(l Rung) bool { return l.Capacity != "" }
	if s.Field == "resources.capacity" && slices.ContainsFunc(j.Ladder, bound) {
		return "stands against `ladder`, which says what capacity is tried when",
			"change ladder in the job file, or leave the flag out"
	}
	return "", ""
}
