package sim

import (
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/state"
)

// keyed verifies that the first key to register a machine owns it, with the token of the machine's own allocation and
// within the boot limit, whatever restarts and restores happen since, and that no task starts on a machine that its
// agent does not own.
func (t *twin) keyed(e core.Event, out core.Outcome) {
	w := t.w
	for _, f := range out.Facts {
		switch f := f.(type) {
		case state.InstanceRegistered:
			t.owns(e, f.Instance)
		case state.TaskClaimed:
			a, _ := w.m.Attempt(f.Attempt)
			b, _ := e.Body.(core.AgentClaimed)
			if k := a.Rank(b.Node); t.keys[k.Instance()] != "key of "+k.Instance() {
				w.breaks("key: the task of %s is taken on %s, which %q owns", f.Attempt, k.Instance(), t.keys[k.Instance()])
			}
		}
	}
	for _, i := range w.m.State().Instances() {
		key := ""
		if i.Agent() != nil {
			key = i.Agent().Key
		}
		if key != t.keys[i.ID()] && i.Allocation() != "" {
			w.breaks("key: %s is owned by %q, and %q was the first to register", i.ID(), key, t.keys[i.ID()])
		}
	}
}

// owns records who registered a machine.
func (t *twin) owns(e core.Event, instance string) {
	w, b := t.w, e.Body.(core.MachineRegistered)
	w.saw("a machine is registered")
	if first, owned := t.keys[instance]; owned {
		w.breaks("key: %s registers with %q after %q has", instance, b.Key, first)
		return
	}
	t.keys[instance] = b.Key
	i := w.instances[instance]
	switch limit := w.m.State().Config().TimingOf(i.offer.Provider).BootLimit; {
	case i.key != b.Allocation:
		w.breaks("key: %s of %s is registered with the token of %s", instance, i.key, b.Allocation)
	case i.told:
		w.breaks("key: %s is registered after its end", instance)
	default:
		if a, ok := w.m.Attempt(i.key); ok && e.At.Sub(i.from) >= limit+a.Transfer() {
			w.breaks("key: %s is registered %v after its launch", instance, e.At.Sub(i.from))
		}
	}
}
