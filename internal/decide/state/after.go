package state

import "slices"

// Dependency is a job or a group that must be over before another begins.
type Dependency struct {
	On string `json:"on"`
	// Any says that it does not matter how it ends; otherwise it must succeed, a group with all of its members.
	Any bool `json:"any,omitempty"`
}

// DependencyMet: a job or group that another waits for is over, and ended as the dependency demands.
type DependencyMet struct {
	Of string `json:"of"` // the job or group that waits
	On string `json:"on"`
}

// Fact implements Fact.
func (DependencyMet) Fact() string { return "dependency_met" }

func init() { reads[DependencyMet]() }

// Waits are the jobs and groups that must be over before j may have a machine.
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
