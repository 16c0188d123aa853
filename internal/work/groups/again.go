package groups

import (
	"maps"
	"slices"
)

// Again returns the variables, as NAME=VALUE, with which a member of a group runs again as a job of its own. A trial
// and a stage do not: the parameters of the one and the inputs of the other belong to the group.
func Again(kind Kind, group, job string, of Indexes, index int) ([]string, error) {
	switch kind {
	case Array:
		env := of.Env(group, index)
		var list []string
		for _, name := range slices.Sorted(maps.Keys(env)) {
			list = append(list, name+"="+env[name])
		}
		return list, nil
	case Study:
		return nil, MemberError{job + " is a trial, and its parameters belong to the study", "scrimp tune trials " + group +
			" lists them: submit the job with those that you want, with scrimp run"}
	case Pipeline:
		return nil, MemberError{job + " is a stage, and its inputs belong to the pipeline", "scrimp pipeline run runs the " +
			"stages again that have not succeeded or have changed"}
	case Schedule:
	}
	return nil, MemberError{job + " belongs to " + group + ", which is no array", "submit its job with scrimp run"}
}

// MemberError says why a member of a group does not run again alone, and what to do instead.
type MemberError struct{ Cause, Fix string }

func (e MemberError) Error() string { return e.Cause + ": " + e.Fix }
