package admission

import (
	"fmt"

	"scrimp/internal/decide/core/step"
	"scrimp/internal/decide/state"
)

// maxAfter is the largest number of dependencies.
const maxAfter = 100

// noDependency returns why a job or a group can never start after the others, or nil.
func (ad *Admission) noDependency(id string, after []state.Dependency) *step.Refusal {
	no := func(format string, a ...any) *step.Refusal {
		return &step.Refusal{Job: id, Why: step.NoDependency, Err: fmt.Errorf(format, a...)}
	}
	if len(after) > maxAfter {
		return no("it waits for %d jobs: name at most %d, or a group of them", len(after), maxAfter)
	}
	for _, d := range after {
		switch done, met := ad.Dependency(d); {
		case ad.State.Job(d.On) == nil && ad.State.Group(d.On) == nil:
			return no("there is no job or group %s", d.On)
		case done && !met:
			if ad.State.Group(d.On) != nil {
				return no("%s is over and not all of its members succeeded: write %s:any", d.On, d.On)
			}
			return no("%s is over and did not succeed: resume it first, or write %s:any", d.On, d.On)
		}
	}
	return nil
}

// Dependency reports whether the job or group has ended (done), and whether it ended as the dependency requires
// (met).
func (ad *Admission) Dependency(d state.Dependency) (done, met bool) {
	if g := ad.State.Group(d.On); g != nil {
		done, met = g.Phase == state.GroupOver, g.Succeeded()
	} else if j := ad.State.Job(d.On); j != nil {
		done, met = j.State().Over(), j.State() == state.Succeeded
	}
	return done, done && (met || d.Any)
}
