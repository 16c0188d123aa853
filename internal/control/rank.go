package control

import (
	"cmp"
	"slices"
	"time"

	"scrimp/internal/decide/core"
)

// This file reads the core's state of each rank of an attempt.

// Nodes returns the number of machines that run the attempt.
func Nodes(a *core.Attempt) int { return a.Nodes() }

// Addresses returns the addresses of the attempt's machines by rank; empty for one that has not reported it.
func Addresses(m *core.Machine, a *core.Attempt) (list []string) {
	for _, k := range a.Tasks() {
		address := ""
		if i := m.State().Instance(k.Instance()); i != nil && i.Agent() != nil {
			address = i.Agent().Address
		}
		list = append(list, address)
	}
	return list
}

// Gangs returns the running attempts on several machines, in order of their start.
func Gangs(m *core.Machine) (attempts []string) {
	list := slices.DeleteFunc(m.Live(), func(a *core.Attempt) bool { return Nodes(a) == 1 })
	slices.SortFunc(list, func(a, b *core.Attempt) int {
		return cmp.Or(a.From().Compare(b.From()), cmp.Compare(a.ID(), b.ID()))
	})
	for _, a := range list {
		attempts = append(attempts, a.ID())
	}
	return attempts
}

// nodeOn returns the rank of an instance in the attempt.
func nodeOn(a *core.Attempt, instance string) (node int, has bool) {
	k := a.On(instance)
	if k == nil {
		return 0, false
	}
	return k.Rank(), true
}

// claimedOf returns when the agent of a rank claimed its task; zero means not yet.
func claimedOf(a *core.Attempt, node int) time.Time {
	if k := a.Rank(node); k != nil {
		return k.Claimed()
	}
	return time.Time{}
}

// heardOf returns the highest message of a rank that the core has heard.
func heardOf(a *core.Attempt, node int) int64 {
	if k := a.Rank(node); k != nil {
		return k.Heard()
	}
	return 0
}

// taskEnded reports whether the task of a rank has ended.
func taskEnded(a *core.Attempt, node int) bool {
	k := a.Rank(node)
	return k == nil || k.Phase() == core.Ended
}
