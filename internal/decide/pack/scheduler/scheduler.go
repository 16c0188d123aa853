// Package scheduler has the policies that pack tasks onto machines round by round: the default one, and those that it
// is compared with.
package scheduler

import "scrimp/internal/decide/pack"

// Policy decides rounds. It keeps its learned state between them.
type Policy interface {
	Place(v *pack.View) pack.Plan
}

// Names of the policies, in the order of tables.
const (
	NoPacking  = "no-packing"
	Stratus    = "stratus"
	Eva        = "eva"
	Default    = "default"
	DefaultSLA = "default-sla"
)

// Names lists every policy.
var Names = []string{NoPacking, Stratus, Eva, Default, DefaultSLA}

// NeedsOracle reports whether a policy uses the remaining work or the deadline.
func NeedsOracle(name string) bool { return name == Stratus || name == DefaultSLA }

// New returns a fresh policy. ok is false for an unknown name.
func New(name string) (Policy, bool) {
	switch name {
	case NoPacking:
		return noPacking{}, true
	case Stratus:
		return stratus{}, true
	case Eva:
		return &eva{}, true
	case Default:
		return &saver{}, true
	case DefaultSLA:
		return &saver{deadlines: true}, true
	}
	return nil, false
}

// noPacking gives every task its own machine.
type noPacking struct{}

func (noPacking) Place(v *pack.View) pack.Plan {
	s := NewStatement(v)
	for i, t := range v.Tasks {
		if t.On != pack.Waiting {
			continue
		}
		if c, ok := pack.Cheapest(v.Types, t.Size); ok {
			s.Move(i, s.Open(c))
		}
	}
	return s.Commit()
}
