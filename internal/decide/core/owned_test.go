package core

import (
	"slices"
	"testing"
	"time"

	"scrimp/internal/decide/state"
	"scrimp/internal/test/must"
)

// A program may end before anybody has claimed its machine, which still costs money. A server that adopts the machine
// ends it at once; a server that releases the claim never does.
func TestOwned_EndsAnAdoptedMachineWithoutAProgram(t *testing.T) {
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
			if h.step.State.Instance("i").Release() != "" {
				t.Fatalf("%s: ended before anybody has said whose it is", reason)
			}
			h.at = h.at.Add(time.Minute)
			h.tell(OwnershipDecided{Adopt: adopt})
			i := h.step.State.Instance("i")
			if released := i != nil && i.Release() != ""; released != adopt {
				t.Errorf("%s, adopted %v: it is given back: %v", reason, adopt, released)
			}
			if adopt == (i == nil) {
				t.Errorf("%s, adopted %v: counted among those that cost something: %v", reason, adopt, i != nil)
			}
		}
	}
}

// A machine that ends before its owner is known leaves the question open, because its job may continue at the other
// server. The core launches nothing until the answer arrives.
func TestOwned_WaitsForTheOwnerOfAnEndedMachine(t *testing.T) {
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
		must.Do(t, err)
		for range 100 {
			h.at = h.at.Add(time.Minute)
			h.tell(Tick{})
		}
		if list := h.step.State.AllUndecided(); len(h.launched) > 0 || len(list) != 1 || list[0].Job != "a" || len(again.AllUndecided()) != 1 {
			t.Errorf("launched %v, open %v before anybody has said whose it is", h.launched, list)
		}
		h.tell(OwnershipDecided{Instance: "i", Adopt: adopt})
		for range 3 {
			h.at = h.at.Add(time.Minute)
			h.tell(Tick{})
		}
		if h.step.State.Undecided() || len(h.launched) != 2 {
			t.Errorf("adopted %v: still open %v, launched %v", adopt, h.step.State.Undecided(), h.launched)
		}
	}
}

// A machine with two attempts was given up, appears after all, and ends before its owner is known. Nothing remains
// to be done.
func TestOwned_IgnoresAGivenUpMachineAfterItsEnd(t *testing.T) {
	for _, adopt := range []bool{true, false} {
		g := newGang(t, 2, 0, nil)
		g.do(0, IncarnationBegun{Installation: "x", Incarnation: 1})
		g.grants("g.1", "i1", "i2")
		g.runs("g.1", time.Minute)
		g.end("i1", "interrupted")
		g.do(time.Second, TaskGone{Attempt: "g.1", Node: 1})
		g.at += time.Minute
		g.grants("g.2", "i3")
		if got := g.ranks("g.2"); !slices.Equal(got, []string{"i2", "i3"}) {
			t.Fatalf("the next attempt is on %v", got)
		}
		g.runs("g.2", time.Minute)
		launch := map[string]string{"i2": "g.1", "i3": "g.2"}
		lists := func(ids ...string) {
			g.at += time.Minute
			seen := InventorySeen{Provider: "p", AsOf: agentsStart.Add(g.at)}
			for _, id := range ids {
				seen.Running = append(seen.Running, Rented{Instance: id, Launch: launch[id], Offer: "p/z/m/spot",
					Rate: 1e12, From: agentsStart.Add(g.from[id])})
			}
			g.step(0, seen)
		}
		for range 20 {
			lists("i3")
		}
		lists("i2", "i3")
		if i := g.State().Instance("i2"); i == nil || !i.Lost() || i.Release() == "" {
			t.Fatal("it was given up, is there, and nobody ends it")
		}
		g.step(time.Minute, IncarnationBegun{Installation: "x", Incarnation: 2})
		g.step(time.Minute, InstanceEnded{Instance: "i2", Until: agentsStart.Add(g.at), Cause: "terminated"})
		g.step(time.Minute, OwnershipDecided{Adopt: adopt})
		if g.State().Undecided() {
			t.Errorf("adopted %v: it is still asked about", adopt)
		}
	}
}

// A gang is given up while the owner of its machines is unknown. They get no task, and the server that adopts them
// ends them.
func TestOwned_EndsMachinesOfAGivenUpGang(t *testing.T) {
	g := newGang(t, 3, 0, nil)
	g.do(0, IncarnationBegun{Installation: "x", Incarnation: 1})
	g.do(time.Hour, Tick{})
	g.grants("g.1", "i1", "i2")
	g.do(time.Minute, IncarnationBegun{Installation: "x", Incarnation: 2})
	g.do(9*time.Minute, Tick{})
	g.do(time.Second, LaunchCancelled{Launch: "g.1"})
	if a := g.attempt("g.1"); a.Partial() != 3 || a.Releasing() {
		t.Fatalf("the attempt wanted %d, it is given back: %v", a.Partial(), a.Releasing())
	}
	for _, id := range []string{"i1", "i2"} {
		if list := g.market.Tasks(g.State().Instance(id)); len(list) > 0 {
			t.Errorf("%s gets a task of a gang that was given up", id)
		}
	}
	out := g.do(time.Hour, OwnershipDecided{Adopt: true})
	if got := kinds(out); !slices.Contains(got, "terminate i1") || !slices.Contains(got, "terminate i2") {
		t.Errorf("who adopts the machines does %v", got)
	}
}
