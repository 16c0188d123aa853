package groups

import (
	"fmt"
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
		return nil, fmt.Errorf("%s is a trial, and its parameters belong to the study: scrimp tune trials %s lists them: "+
			"submit the job with those that you want, with scrimp run", job, group)
	case Pipeline:
		return nil, fmt.Errorf("%s is a stage, and its inputs belong to the pipeline: scrimp pipeline run runs the stages "+
			"again that have not succeeded or have changed", job)
	case Schedule:
	}
	return nil, fmt.Errorf("%s belongs to %s, which is no array: submit its job with scrimp run", job, group)
}
