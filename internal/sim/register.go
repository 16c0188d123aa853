package sim

import (
	"slices"
	"time"

	"scrimp/internal/decide/core"
)

// registerFor bounds how long an agent tries to register before it switches its machine off.
const registerFor = 10 * time.Minute

// mishaps lists the faults of a registration, apart from an unreachable server.
var mishaps = []string{
	"answer lost", "twice", "another key later", "another key first", "another machine", "after the boot limit",
	"after its end",
}

// registration builds the registration event of the agent's machine.
func (a *agent) registration(key string) core.MachineRegistered {
	return core.MachineRegistered{Instance: a.i.id, Allocation: a.i.key, Key: key, Version: "sim", Wire: 1, Boot: a.up,
		CPUs: 4}
}

// registers creates the machine's key and sends it to the server. A registration token works once, whoever holds it.
func (a *agent) registers() {
	w := a.w
	a.key, a.up = "key of "+a.i.id, w.now
	if w.later(w.faults.Register) {
		a.mishap = mishaps[w.extra.IntN(len(mishaps))]
	}
	again := a.registration("another key of " + a.i.id)
	switch a.mishap {
	case "after the boot limit":
		limit := w.m.State().Config().TimingOf(a.i.offer.Provider).BootLimit
		if asked, ok := w.m.Allocation(a.i.key); ok {
			limit += asked.Transfer()
		}
		w.at(a.i.from.Add(limit+w.delayed(10)), func() { a.strikes(again); a.register() })
		return
	case "another key first":
		if w.up {
			a.strikes(again)
		}
	case "another machine":
		other := w.order[w.extra.IntN(len(w.order))]
		if again.Instance = other.id; other != a.i && w.up {
			a.strikes(again)
		}
	case "after its end":
		w.ended(a.i, func() { a.strikes(again) })
	}
	a.register()
}

// delayed returns a random number of seconds, from its own random source.
func (w *World) delayed(most int) time.Duration {
	return time.Duration(w.extra.IntN(most)) * time.Second
}

// ended calls do at least ten minutes after the machine has ended.
func (w *World) ended(i *instance, do func()) {
	w.after(10*time.Minute, func() {
		if i.running() || !w.up {
			w.ended(i, do)
			return
		}
		do()
	})
}

// strikes sends a registration that comes from somebody else or too late.
func (a *agent) strikes(b core.MachineRegistered) {
	a.w.saw("fault " + a.mishap + " × " + b.Kind())
	a.w.step(b)
}

// register repeats the registration until the server answers, as the shell does. The agent then takes its task or
// switches its machine off.
func (a *agent) register() {
	w := a.w
	if a.dead || a.over {
		return
	}
	b := a.registration(a.key)
	again := func() { w.after(10*time.Second, a.register) }
	key, known, asked := a.heard()
	switch {
	case w.fault == FaultNoRegister:
		a.claim()
	case w.now.Sub(a.up) > registerFor:
		a.off()
	case !w.up || a.cut:
		again()
	case key == a.key:
		a.registered(b)
	case key != "":
		w.saw("a machine that another has registered")
		a.off()
	case !known && asked: // its launch is still unanswered
		w.saw("a machine registers before its launch is answered")
		if w.later(w.faults.Register) {
			w.step(b)
		}
		again()
	case !known || a.proposed: // it came too late, or the server is terminating the machine
		w.saw("a machine is not registered any more")
		a.off()
	case !a.proposes(b):
		again()
	default:
		a.register()
	}
}

// proposes sends the registration to the server and reports whether the answer arrived.
func (a *agent) proposes(b core.MachineRegistered) bool {
	a.proposed = a.w.step(b)
	if a.proposed && a.mishap == "answer lost" {
		a.w.saw("fault answer lost × " + b.Kind())
		a.mishap = ""
		return false
	}
	return a.proposed && a.w.up
}

// heard returns what the server knows about the machine: the key that registered it, whether it was granted, and
// whether its launch is still unanswered.
func (a *agent) heard() (key string, known, asked bool) {
	if !a.w.up {
		return "", false, false
	}
	_, asked = a.w.m.Allocation(a.i.key)
	i := a.w.m.State().Instance(a.i.id)
	if known = i != nil && i.Allocation() == a.i.key; known && i.Agent() != nil {
		key = i.Agent().Key
	}
	return key, known, asked
}

// registered continues with the task of a registered machine.
func (a *agent) registered(b core.MachineRegistered) {
	switch a.mishap {
	case "twice":
		a.strikes(b)
	case "another key later":
		a.strikes(a.registration("another key of " + a.i.id))
	}
	if a.w.gang != nil {
		a.w.serves(a.i)
		return
	}
	a.claim()
	a.w.pullsOn(a.i)
}

// off switches the machine off.
func (a *agent) off() {
	if a.dead {
		return
	}
	a.w.end(a.i, "stopped")
	a.w.after(2*time.Second, func() { a.w.endTold(a.i) })
}

// hasTask reports whether the server assigns the agent the task that its machine was rented for.
func (a *agent) hasTask() bool {
	i := a.w.m.State().Instance(a.i.id)
	return a.w.fault == FaultNoRegister || i != nil &&
		slices.ContainsFunc(a.w.m.Tasks(i), func(t *core.Task) bool {
			return t.Attempt().ID() == a.attempt && t.Rank() == a.node
		})
}
