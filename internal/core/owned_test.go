package core

import (
	"testing"
	"time"

	"scrimp/internal/state"
)

// A program that ends before anybody has said whose its machine is leaves a machine that
// costs something: who adopts it ends it at once, who releases it never.
func TestAMachineWhoseProgramEndedIsEndedOnceItIsAdopted(t *testing.T) {
	for _, adopt := range []bool{true, false} {
		for _, reason := range []string{"setup", "exit"} {
			h := newHall(t, 1)
			h.tell(IncarnationBegun{Installation: "x", Incarnation: 1})
			h.sells(2, true)
			h.submit("a", 2, 1)
			h.tell(LaunchDone{Launch: "a.1", Instance: "i", Offer: "m2", Rate: 1e12, From: h.at})
			h.tell(IncarnationBegun{Installation: "x", Incarnation: 2})
			h.at = h.at.Add(time.Minute)
			h.tell(AgentClaimed{Attempt: "a.1"})
			h.tell(AttemptEnded{Attempt: "a.1", Message: 1, Reason: reason, Exit: 2})
			if h.s.Instance("i").Release() != "" {
				t.Fatalf("%s: ended before anybody has said whose it is", reason)
			}
			h.at = h.at.Add(time.Minute)
			h.tell(OwnershipDecided{Adopt: adopt})
			i := h.s.Instance("i")
			if released := i != nil && i.Release() != ""; released != adopt {
				t.Errorf("%s, adopted %v: it is given back: %v", reason, adopt, released)
			}
			if adopt == (i == nil) {
				t.Errorf("%s, adopted %v: counted among those that cost something: %v", reason, adopt, i != nil)
			}
		}
	}
}

// A machine that ends before anybody has said whose it is leaves the question open: its job
// may be going on at the other server. Nothing is launched until it is answered.
func TestAMachineThatEndsByItselfLeavesItsOwnerOpen(t *testing.T) {
	for _, adopt := range []bool{true, false} {
		h := newHall(t, 2)
		h.tell(IncarnationBegun{Installation: "x", Incarnation: 1})
		h.sells(2, true)
		h.submit("a", 2, 1)
		h.tell(LaunchDone{Launch: "a.1", Instance: "i", Offer: "m2", Rate: 1e12, From: h.at})
		h.tell(IncarnationBegun{Installation: "x", Incarnation: 2})
		h.launched = nil
		h.at = h.at.Add(time.Minute)
		h.tell(InstanceEnded{Instance: "i", Until: h.at, Cause: "stopped", Launch: "a.1"})
		h.tell(BillReceived{Instance: "i", Launch: "a.1"})
		h.submit("b", 2, 1)
		again, err := state.Restore(snap(t, h.Machine))
		if err != nil {
			t.Fatal(err)
		}
		for range 100 {
			h.at = h.at.Add(time.Minute)
			h.tell(Tick{})
		}
		if list := h.s.AllUndecided(); len(h.launched) > 0 || len(list) != 1 || list[0].Job != "a" || len(again.AllUndecided()) != 1 {
			t.Errorf("launched %v, open %v before anybody has said whose it is", h.launched, list)
		}
		h.tell(OwnershipDecided{Instance: "i", Adopt: adopt})
		for range 3 {
			h.at = h.at.Add(time.Minute)
			h.tell(Tick{})
		}
		if h.s.Undecided() || len(h.launched) != 2 {
			t.Errorf("adopted %v: still open %v, launched %v", adopt, h.s.Undecided(), h.launched)
		}
	}
}
