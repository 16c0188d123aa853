package state

import "slices"

// Dependency is a job or a group that must end before another starts.
type Dependency struct {
	On string `json:"on"`
	// Any accepts any outcome. Otherwise the job must succeed, or every member of the group.
	Any bool `json:"any,omitempty"`
}

// DependencyMet: a job or group that another waits for has ended as the dependency requires.
type DependencyMet struct {
	Of string `json:"of"` // job or group that waits
	On string `json:"on"`
}

// Fact implements Fact.
func (DependencyMet) Fact() string { return "dependency_met" }

func init() { reads[DependencyMet]() }

// Waits returns the jobs and groups that must end before j may have a machine.
func (j *Job) Waits() []Dependency { return j.r.Waits }

func (s *State) applyDependency(f DependencyMet) {
	without := func(list []Dependency) (left []Dependency) {
		return slices.DeleteFunc(slices.Clone(list), func(d Dependency) bool { return d.On == f.On })
	}
	if g := s.groups[f.Of]; g != nil {
		g.Waits = without(g.Waits)
		return
	}
	j := s.touched(f.Of)
	if j.r.Waits = without(j.r.Waits); len(j.r.Waits) == 0 {
		j.r.Waits, j.r.UnplacedSince = nil, s.now
	}
}
