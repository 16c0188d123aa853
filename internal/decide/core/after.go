package core

import (
	"fmt"
	"slices"

	"scrimp/internal/decide/state"
)

// maxAfter is how many jobs and groups one may wait for.
const maxAfter = 100

// noDependency returns why a job or a group can never begin after the others; nil: it can.
func (m *Machine) noDependency(id string, after []state.Dependency) *Refusal {
	no := func(format string, a ...any) *Refusal {
		return &Refusal{Job: id, Why: NoDependency, Err: fmt.Errorf(format, a...)}
	}
	if len(after) > maxAfter {
		return no("it waits for %d jobs: name at most %d, or a group of them", len(after), maxAfter)
	}
	for _, d := range after {
		switch done, met := m.dependency(d); {
		case m.s.Job(d.On) == nil && m.s.Group(d.On) == nil:
			return no("there is no job or group %s", d.On)
		case done && !met:
			if m.s.Group(d.On) != nil {
				return no("%s is over and not all of its members succeeded: write %s:any", d.On, d.On)
			}
			return no("%s is over and did not succeed: resume it first, or write %s:any", d.On, d.On)
		}
	}
	return nil
}

// dependency reports whether the job or group is over (done), and whether it ended as the dependency demands (met).
func (m *Machine) dependency(d state.Dependency) (done, met bool) {
	if g := m.s.Group(d.On); g != nil {
		done, met = g.Phase == state.GroupOver, g.Succeeded()
	} else if j := m.s.Job(d.On); j != nil {
		done, met = j.State().Over(), j.State() == Succeeded
	}
	return done, done && (met || d.Any)
}

// dependOn makes a new job or group wait for the others that are not over yet.
func (m *Machine) dependOn(id string, after []state.Dependency) {
	for _, d := range after {
		if _, met := m.dependency(d); met {
			m.fact(state.DependencyMet{Of: id, On: d.On})
		} else {
			m.waiters[d.On] = append(m.waiters[d.On], id)
		}
	}
}

// dependAgain makes a resumed job wait for the others that are still not over. Those that ended meanwhile count as met,
// however they ended: the user resumed the job knowing that.
func (m *Machine) dependAgain(j *Job) {
	for _, d := range slices.Clone(j.Waits()) {
		known := m.s.Job(d.On) != nil || m.s.Group(d.On) != nil
		if done, _ := m.dependency(d); done || !known {
			m.fact(state.DependencyMet{Of: j.ID(), On: d.On})
		} else {
			m.waiters[d.On] = append(m.waiters[d.On], j.ID())
		}
	}
}

// dependsAgain rebuilds the index of who waits for whom after a restart.
func (m *Machine) dependsAgain() {
	for _, j := range m.s.Jobs() {
		if !j.State().Over() {
			for _, d := range j.Waits() {
				m.waiters[d.On] = append(m.waiters[d.On], j.ID())
			}
		}
	}
	for _, g := range m.s.Groups() {
		for _, d := range g.Waits {
			m.waiters[d.On] = append(m.waiters[d.On], g.Name)
		}
		if g.Phase != state.GroupOver {
			m.proposals.due(g.Name)
		}
	}
}

// Settled releases the jobs and groups that waited for one that is over, or cancels them.
func (m *Machine) Settled(id string) {
	waiters := m.waiters[id]
	delete(m.waiters, id)
	for _, of := range waiters {
		g, j := m.s.Group(of), m.s.Job(of)
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
		_, met := m.dependency(waits[at])
		switch detail := id + " did not succeed"; {
		case met || m.faults.Heedless:
			m.fact(state.DependencyMet{Of: of, On: id})
			if g != nil {
				m.proposals.due(of)
			} else if j.State() == Queued {
				m.works(j)
				m.enqueue(j)
			}
		case g != nil:
			m.endGroup(of, DependencyFailed, detail, state.CancelMembers)
		default:
			m.works(j)
			m.finish(j, Cancelled, DependencyFailed, detail)
		}
	}
}

// enqueue puts a queued job into the queue, unless it still waits for others.
func (m *Machine) enqueue(j *Job) {
	if m.classOf(j); len(j.Waits()) > 0 {
		return
	}
	m.queue.add(j)
}
