package core

import (
	"testing"
	"time"

	"scrimp/internal/decide/core/placement"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/test/must"
)

var agentsStart = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// grantedMachine returns a core whose job j has had instance i1 since the start.
func grantedMachine() (m *Machine, step func(after time.Duration, b Body) Outcome) {
	m = New()
	step = func(after time.Duration, b Body) Outcome {
		return m.Step(Event{At: agentsStart.Add(after), Schema: Schema, Tenant: "t", Body: b})
	}
	spot := market.Offer{ID: "p/z/m/spot", Provider: "p", Zone: "z", Machine: "m", Capacity: market.Spot, CPUs: 1, Speed: 1, Currency: money.USD}
	step(0, Configured{Config: DefaultConfig()})
	step(0, MarketSeen{Offers: []market.Offer{spot}, Quotes: []market.Quote{{Offer: spot.ID, Rate: 1e12, Priced: true, Available: true, At: agentsStart}}})
	step(0, JobSubmitted{Job: "j", Terms: Terms{Name: "j", Currency: money.USD, Steps: 100, Work: time.Hour, Priority: 1}})
	step(0, LaunchDone{Launch: "j.1", Instance: "i1", Offer: spot.ID, Rate: 1e12, From: agentsStart})
	return m, step
}

// The server accepts the first key of a granted allocation's machine while it boots, and no other. A machine
// without a key gets no task.
func TestRegister_AcceptsTheFirstKeyWhileBooting(t *testing.T) {
	good := MachineRegistered{Instance: "i1", Allocation: "j.1", Key: "k", Isolated: true}
	limit := DefaultConfig().BootLimit
	for name, c := range map[string]struct {
		change func(*MachineRegistered)
		before []Body
		after  time.Duration
		want   bool
	}{
		"as it should":              {want: true},
		"just within the limit":     {after: limit - time.Second, want: true},
		"after the limit":           {after: limit},
		"for another allocation":    {change: func(b *MachineRegistered) { b.Allocation = "j.2" }},
		"for no allocation":         {change: func(b *MachineRegistered) { b.Allocation = "" }},
		"from another machine":      {change: func(b *MachineRegistered) { b.Instance = "i2" }},
		"without a key":             {change: func(b *MachineRegistered) { b.Key = "" }},
		"a second key":              {before: []Body{MachineRegistered{Instance: "i1", Allocation: "j.1", Key: "thief"}}},
		"a machine that is ended":   {before: []Body{InstanceEnded{Instance: "i1", Until: agentsStart, Cause: "interrupted"}}},
		"a job that was cancelled ": {before: []Body{JobEnded{Job: "j"}}},
	} {
		m, step := grantedMachine()
		for _, b := range c.before {
			step(0, b)
		}
		b := good
		if c.change != nil {
			c.change(&b)
		}
		if i := m.State().Instance("i1"); i != nil && i.Agent() == nil && len(m.market.Tasks(i)) != 0 {
			t.Errorf("%s: a machine without a key has tasks", name)
		}
		step(c.after, b)
		i := m.State().Instance("i1")
		got := i != nil && i.Agent() != nil && i.Agent().Key == "k"
		if got != c.want {
			t.Errorf("%s: registered is %v, want %v", name, got, c.want)
		}
		if !got {
			continue
		}
		if tasks := m.market.Tasks(i); len(tasks) != 1 || tasks[0].Attempt().ID() != "j.1" {
			t.Errorf("%s: its tasks are %v, want j.1", name, tasks)
		}
		snap, err := m.Snapshot()
		must.Do(t, err)
		again, err := Restore(snap)
		if err != nil || *again.State().Instance("i1").Agent() != *i.Agent() {
			t.Errorf("%s: a restart leaves %+v, %v", name, again.State().Instance("i1").Agent(), err)
		}
		step(c.after, JobEnded{Job: "j"})
		if i := m.State().Instance("i1"); i != nil && len(m.market.Tasks(i)) != 0 {
			t.Errorf("%s: a machine that is given back has tasks", name)
		}
	}
}

// A machine that does not isolate programs serves only its first user.
func TestMachine_ServesOneUserWithoutIsolation(t *testing.T) {
	var o placement.OneUser
	for i, c := range []struct {
		user string
		want bool
	}{{"ann", true}, {"bob", false}, {"ann", true}, {"", false}} {
		if got := o.Serves(c.user); got != c.want {
			t.Errorf("seat %d, of %q: %v", i, c.user, got)
		}
	}
}

// A machine that shuts itself down before it has done anything counts against its job, unless the core released it:
// its agent may notice first, when it gets no key.
func TestRelease_DoesNotCountAShutdownAgainstTheJob(t *testing.T) {
	for _, moved := range []bool{false, true} {
		m, step := grantedMachine()
		if moved { // its guard needs a machine that cannot be interrupted
			firm := market.Offer{ID: "p/z/m/on-demand", Provider: "p", Zone: "z", Machine: "m", Capacity: market.OnDemand, CPUs: 1, Speed: 1, Currency: money.USD}
			soon := agentsStart.Add(10 * time.Minute)
			step(time.Minute, MarketSeen{Offers: []market.Offer{firm},
				Quotes: []market.Quote{{Offer: firm.ID, Rate: 3e12, Priced: true, Available: true, At: agentsStart}}})
			step(time.Minute, JobUpdated{Job: "j", Changes: Changes{Deadline: &soon}})
			step(2*time.Minute, Tick{})
		}
		if i := m.State().Instance("i1"); m.market.Stays(i) == moved {
			t.Fatalf("moved is %v, and the machine's release %q", moved, i.Release())
		}
		step(3*time.Minute, InstanceEnded{Instance: "i1", Until: agentsStart.Add(3 * time.Minute), Cause: "stopped"})
		if j, _ := m.Job("j"); j.Failures() > 0 == moved {
			t.Errorf("moved is %v, and %d failures are counted", moved, j.Failures())
		}
	}
}

// A notice is as long as the machine lasted after it, if the provider ends the machine earlier than announced.
func TestNotice_LastsUntilTheMachineEnds(t *testing.T) {
	for name, c := range map[string]struct {
		cause string
		ended bool          // the program ended before its machine
		after time.Duration // time from the notice, which announces two minutes, to the end
		want  time.Duration
	}{
		"as it was said":      {"interrupted", false, 2 * time.Minute, 2 * time.Minute},
		"sooner":              {"interrupted", false, 30 * time.Second, 30 * time.Second},
		"at once":             {"interrupted", false, 0, 0},
		"given back before":   {"terminated", false, 10 * time.Second, 2 * time.Minute},
		"saved and gone":      {"interrupted", true, 5 * time.Second, 2 * time.Minute},
		"later than was said": {"interrupted", false, 3 * time.Minute, 2 * time.Minute},
	} {
		m, step := grantedMachine()
		j, _ := m.Job("j")
		k := j.Attempt().Tasks()[0]
		step(time.Minute, NoticeGiven{Attempt: "j.1", Message: 2, Until: agentsStart.Add(3 * time.Minute)})
		if c.ended {
			step(time.Minute+c.after, AttemptEnded{Attempt: "j.1", Message: 3, Reason: "drained", Saved: true})
		}
		ended := time.Minute + c.after
		step(ended, InstanceEnded{Instance: "i1", Until: agentsStart.Add(ended), Cause: c.cause})
		if got := k.Warned(); got != c.want {
			t.Errorf("%s: warned for %v, want %v", name, got, c.want)
		}
	}
}
