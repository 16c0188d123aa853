package core

import (
	"time"

	"scrimp/internal/decide/state"
)

// registered takes the key of a machine's agent: the first one, of the machine that the
// allocation was granted, while it boots. A machine that is given back gets none.
func (m *Machine) registered(b MachineRegistered) {
	i := m.s.Instance(b.Instance)
	if i == nil || b.Key == "" || b.Allocation == "" || i.Allocation() != b.Allocation {
		return
	}
	if i.Agent() != nil && !m.faults.TwoKeys {
		return
	}
	if !m.Stays(i) || len(i.Seats()) == 0 || !m.now().Before(m.bootEnd(i)) {
		return
	}
	m.fact(state.InstanceRegistered{Instance: b.Instance})
}

// Stays reports whether a machine may be given tasks: it is not being given back, and its
// provider lists it.
func (m *Machine) Stays(i *state.Instance) bool {
	return i.Live() && i.Release() == "" && !i.Paid()
}

// bootEnd is until when a machine's agent may register, whether the machines of its gang are
// all there or not.
func (m *Machine) bootEnd(i *Instance) time.Time {
	end := i.From().Add(m.timingOf(i.Machine()).BootLimit)
	if a := m.s.Seated(i); a != nil {
		return end.Add(a.Transfer())
	}
	return end
}

// Tasks are those that the agent of a machine is to run, in the order of its seats.
// Where programs are not kept apart by users of their own, they are of one user: what one
// leaves, another's could read.
func (m *Machine) Tasks(i *state.Instance) []*Task {
	if !m.Stays(i) || i.Agent() == nil {
		return nil
	}
	var list []*Task
	var users oneUser
	for _, k := range m.s.TasksOn(i) {
		allowed := users.serves(m.s.Job(k.Attempt().Job()).User()) || i.Agent().Isolated
		if allowed && k.Live() && k.Phase() != Ended && k.Leaving() == "" && m.reachable(k.Attempt()) {
			list = append(list, k)
		}
	}
	return list
}

// oneUser is whom a machine serves: the user of its first seat.
type oneUser struct {
	user  string
	known bool
}

func (o *oneUser) serves(user string) bool {
	if !o.known {
		o.user, o.known = user, true
	}
	return o.user == user
}

// reachable reports whether the machines of an attempt can find each other: the gang has all of them, and each has said
// where it is.
func (m *Machine) reachable(a *Attempt) bool {
	if a.Partial() > 0 {
		return false
	}
	if a.Nodes() == 1 {
		return true
	}
	for _, k := range a.Tasks() {
		if i := m.s.Instance(k.Instance()); i == nil || i.Agent() == nil {
			return false
		}
	}
	return true
}
