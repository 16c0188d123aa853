package core

import "scrimp/internal/state"

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
	a := m.s.Seated(i)
	if a == nil || !m.Stays(i) || !m.now().Before(m.bootLimit(a)) {
		return
	}
	m.fact(state.InstanceRegistered{Instance: b.Instance})
}

// Stays reports whether a machine may be given tasks: it is not being given back, and its
// provider lists it.
func (m *Machine) Stays(i *state.Instance) bool {
	return i.Live() && i.Release() == "" && !i.Paid()
}

// Tasks are the attempts that the agent of a machine is to run, in the order of its seats.
// Where programs are not kept apart by users of their own, they are of one user: what one
// leaves, another's could read.
func (m *Machine) Tasks(i *state.Instance) []*Attempt {
	if !m.Stays(i) || i.Agent() == nil {
		return nil
	}
	var list []*Attempt
	var users oneUser
	for _, seat := range i.Seats() {
		a := m.s.AttemptOf(seat.Attempt)
		if a == nil {
			continue
		}
		allowed := users.serves(m.s.Job(a.Job()).User()) || i.Agent().Isolated
		if allowed && a.Live() && a.Task() != Ended && a.Leaving() == "" {
			list = append(list, a)
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
