package core

import (
	"testing"
	"time"

	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/state"
	"scrimp/internal/test/must"
)

// reopened restarts the machine from a snapshot.
func reopened(t *testing.T, h *hall) {
	t.Helper()
	s, err := state.Restore(snap(t, h.Machine))
	must.Do(t, err)
	h.Machine = On(s, plan.NewPlanner())
}

// A job that was finished when the server started still owns a machine if its abandoned launch is granted, or if a
// lost machine reappears in the inventory. The core releases that machine.
func TestLateGrant_ReachesAFinishedJobAfterARestart(t *testing.T) {
	for name, c := range map[string]struct{ before, after Body }{
		"granted late": {nil, LaunchDone{Launch: "a.1", Instance: "i", Offer: "m2", Rate: 1e12}},
		"listed again": {LaunchDone{Launch: "a.1", Instance: "i", Offer: "m2", Rate: 1e12},
			InventorySeen{Provider: "p", Running: []Rented{{Instance: "i", Launch: "a.1", Offer: "m2", Rate: 1e12}}}},
	} {
		h := newHall(t, 1)
		h.sells(2, true)
		h.submit("a", 2, 1)
		from := h.at
		tell := func(b Body) {
			h.at = h.at.Add(time.Minute)
			switch b := b.(type) {
			case LaunchDone:
				b.From = from
				h.tell(b)
			case InventorySeen:
				b.AsOf = h.at
				for n := range b.Running {
					b.Running[n].From = from
				}
				h.tell(b)
			default:
				h.tell(b)
			}
		}
		if c.before != nil {
			tell(c.before)
		}
		tell(JobEnded{Job: "a"})
		if c.before != nil {
			tell(InventorySeen{Provider: "p"}) // an empty inventory: the machine is lost
		}
		reopened(t, h)
		tell(c.after)
		if i := h.step.State.Instance("i"); i == nil || i.Release() == "" {
			t.Errorf("%s: the machine of a job that is over is not given back", name)
		}
		_ = h.queue.Waiting() // sums the running use under each quota
	}
}
