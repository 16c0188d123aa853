package placement

import (
	"time"

	"scrimp/internal/decide/state"
)

// Registered accepts the key of a machine's agent. It accepts only the first key, from the machine that the
// allocation was granted, while that machine boots. A machine that is being terminated gets none.
func (mk *Market) Registered(b state.MachineRegistered) {
	i := mk.State.Instance(b.Instance)
	if i == nil || b.Key == "" || b.Allocation == "" || i.Allocation() != b.Allocation {
		return
	}
	if i.Agent() != nil && !mk.Faults.TwoKeys {
		return
	}
	if !mk.Stays(i) || len(i.Seats()) == 0 || !mk.Now().Before(mk.bootEnd(i)) {
		return
	}
	mk.Fact(state.InstanceRegistered{Instance: b.Instance})
}

// Stays reports whether a machine may get tasks: it is not being terminated, and its provider lists it.
func (mk *Market) Stays(i *state.Instance) bool {
	return i.Live() && i.Release() == "" && !i.Paid()
}

// bootEnd is the time until which a machine's agent may register, whether its gang is complete or not.
func (mk *Market) bootEnd(i *state.Instance) time.Time {
	end := i.From().Add(mk.TimingOf(i.Machine()).BootLimit)
	if a := mk.State.Seated(i); a != nil {
		return end.Add(a.Transfer())
	}
	return end
}

// Tasks returns the tasks that the agent of a machine must run, in the order of its seats. If the machine does not
// run each user's programs as a separate system user, all tasks are of one user, because one task could read what
// another leaves.
func (mk *Market) Tasks(i *state.Instance) []*state.Task {
	if !mk.Stays(i) || i.Agent() == nil {
		return nil
	}
	var list []*state.Task
	var users OneUser
	for _, k := range mk.State.TasksOn(i) {
		allowed := users.Serves(mk.State.Job(k.Attempt().Job()).User()) || i.Agent().Isolated
		if allowed && k.Live() && k.Phase() != state.Ended && k.Leaving() == "" && mk.reachable(k.Attempt()) {
			list = append(list, k)
		}
	}
	return list
}

// OneUser is the user that a machine serves: the one in its first seat.
type OneUser struct {
	user  string
	known bool
}

// Serves reports whether the machine may also serve this user.
func (o *OneUser) Serves(user string) bool {
	if !o.known {
		o.user, o.known = user, true
	}
	return o.user == user
}

// reachable reports whether the machines of an attempt can find each other: the gang is complete, and each machine
// has reported its address.
func (mk *Market) reachable(a *state.Attempt) bool {
	if a.Partial() > 0 {
		return false
	}
	if a.Nodes() == 1 {
		return true
	}
	for _, k := range a.Tasks() {
		if i := mk.State.Instance(k.Instance()); i == nil || i.Agent() == nil {
			return false
		}
	}
	return true
}
