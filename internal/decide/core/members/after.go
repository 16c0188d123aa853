package members

import (
	"slices"

	"scrimp/internal/decide/core/step"
	"scrimp/internal/decide/state"
)

// DependsAgain rebuilds the index of dependencies after a restart.
func (ms *Members) DependsAgain() {
	for _, j := range ms.State.Jobs() {
		if !j.State().Over() {
			for _, d := range j.Waits() {
				ms.jobs.Waiters[d.On] = append(ms.jobs.Waiters[d.On], j.ID())
			}
		}
	}
	for _, g := range ms.State.Groups() {
		for _, d := range g.Waits {
			ms.jobs.Waiters[d.On] = append(ms.jobs.Waiters[d.On], g.Name)
		}
		if g.Phase != state.GroupOver {
			ms.Proposals.due(g.Name)
		}
	}
}

// Settled releases the jobs and groups that waited for one that has ended, or cancels them.
func (ms *Members) Settled(id string) {
	waiters := ms.jobs.Waiters[id]
	delete(ms.jobs.Waiters, id)
	for _, of := range waiters {
		g, j := ms.State.Group(of), ms.State.Job(of)
		waits := []state.Dependency(nil)
		if g != nil && g.Phase != state.GroupOver {
			waits = g.Waits
		} else if j != nil && !j.State().Over() {
			waits = j.Waits()
		}
		at := slices.IndexFunc(waits, func(d state.Dependency) bool { return d.On == id })
		if at < 0 {
			continue
		}
		_, met := ms.admission.Dependency(waits[at])
		switch detail := id + " did not succeed"; {
		case met || ms.Faults.Heedless:
			ms.Fact(state.DependencyMet{Of: of, On: id})
			if g != nil {
				ms.Proposals.due(of)
			} else if j.State() == state.Queued {
				ms.Works(j)
				ms.jobs.Enqueue(j)
			}
		case g != nil:
			ms.endGroup(of, step.DependencyFailed, detail, state.CancelMembers)
		default:
			ms.Works(j)
			ms.jobs.Finish(j, state.Cancelled, step.DependencyFailed, detail)
		}
	}
}
