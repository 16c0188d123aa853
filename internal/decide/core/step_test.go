package core_test

import (
	"fmt"
	"testing"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/test/must"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// BenchmarkDecisionStep submits a job to a machine with many jobs and no free place. The step must not grow faster
// than log n.
func BenchmarkDecisionStep(b *testing.B) {
	for _, n := range []int{1, 1_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("jobs=%d", n), func(b *testing.B) {
			m := filled(n)
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				i++
				out := m.Step(event(core.JobSubmitted{Job: fmt.Sprint("new", i), Terms: core.Terms{Currency: money.USD, Priority: i % 3}}))
				if n > 4 && len(out.Actions) != 0 {
					b.Fatal("a full machine launched")
				}
				m.Step(event(core.JobEnded{Job: fmt.Sprint("new", i)}))
			}
			b.ReportMetric(float64(2*b.N)/b.Elapsed().Seconds(), "steps/s")
		})
	}
}

func event(b core.Body) core.Event {
	return core.Event{At: start, Schema: core.Schema, Tenant: "default", Body: b}
}

const spotID = market.OfferID("p/z/m/spot")

// open reports one spot offer at $1 per hour.
func open(m *core.Machine) {
	m.Step(event(core.MarketSeen{
		Offers: []market.Offer{{ID: spotID, Provider: "p", Zone: "z", Machine: "m", Capacity: market.Spot, Currency: money.USD}},
		Quotes: []market.Quote{{Offer: spotID, Rate: 1e12, Priced: true, Available: true, At: start}},
	}))
}

// filled returns a machine with n jobs, running as many as allowed.
func filled(n int) *core.Machine {
	m := core.New()
	m.Step(event(core.Configured{Config: core.DefaultConfig()}))
	open(m)
	for i := range n {
		m.Step(event(core.JobSubmitted{Job: fmt.Sprint("job", i), Terms: core.Terms{Currency: money.USD, Priority: i % 3}}))
	}
	return m
}

func TestLaunch_IsRequestedOnceAndAgainAfterARestart(t *testing.T) {
	m := filled(1)
	pending := m.Pending()
	if len(pending) != 1 || pending[0].Key() != "job0.1" {
		t.Fatalf("pending %v, want the launch of job0.1", pending)
	}
	snap, err := m.Snapshot()
	must.Do(t, err)
	again, err := core.Restore(snap)
	must.Do(t, err)
	if p := again.Pending(); len(p) != 1 || p[0].Key() != "job0.1" {
		t.Errorf("after a restart %v is pending, want the same launch", p)
	}
	done := core.LaunchDone{Launch: "job0.1", Instance: "i-1", Offer: spotID, Rate: 1e12, From: start}
	again.Step(event(done))
	again.Step(event(done)) // the answer arrives twice
	if p := again.Pending(); len(p) != 0 {
		t.Errorf("%v is pending after the launch was answered", p)
	}
	if live := again.Live(); len(live) != 1 || live[0].Instance() != "i-1" {
		t.Errorf("live %v, want one attempt on i-1", live)
	}
}

func TestStep_IgnoresStaleMessages(t *testing.T) {
	m := filled(1)
	m.Step(event(core.LaunchDone{Launch: "job0.1", Instance: "i-1", Offer: spotID, Rate: 1e12, From: start}))
	m.Step(event(core.AttemptStarted{Attempt: "job0.1", Message: 1}))
	m.Step(event(core.Progressed{Attempt: "job0.1", Message: 2, Step: 10}))
	m.Step(event(core.Progressed{Attempt: "job0.1", Message: 2, Step: 99}))
	m.Step(event(core.AttemptEnded{Attempt: "job0.7", Message: 9, Reason: "completed"}))
	m.Step(event(core.InstanceEnded{Instance: "i-unknown", Until: start}))
	if j, _ := m.Job("job0"); j.Step() != 10 || j.State() != core.Running {
		t.Errorf("step %d in state %s after stale messages, want 10 and running", j.Step(), j.State())
	}
}

func TestRetry_FollowsTheExitStatusRules(t *testing.T) {
	for _, c := range []struct {
		exit  int
		codes []int
		want  core.State
	}{
		{75, nil, core.Running}, // requests a retry
		{137, nil, core.Failed}, // killed, most often for memory: no retry by default
		{137, []int{137}, core.Running},
		{1, nil, core.Failed},
	} {
		m := core.New()
		open(m)
		m.Step(event(core.JobSubmitted{Job: "j", Terms: core.Terms{Currency: money.USD, MaxRetries: 3, RetryCodes: c.codes}}))
		m.Step(event(core.LaunchDone{Launch: "j.1", Instance: "i-1", Offer: spotID, Rate: 1e12, From: start}))
		m.Step(event(core.AttemptStarted{Attempt: "j.1", Message: 1}))
		m.Step(event(core.AttemptEnded{Attempt: "j.1", Message: 2, Reason: "failed", Exit: c.exit}))
		if j, _ := m.Job("j"); j.State() != c.want {
			t.Errorf("exit %d with codes %v: %s (%s), want %s", c.exit, c.codes, j.State(), j.Why(), c.want)
		}
	}
}

// Every step lists the critical jobs that wait. That allocates nothing.
func TestStep_AllocatesNothingForWaitingCriticalJobs(t *testing.T) {
	allocated := func(priority int) float64 {
		m := filled(8) // all places are taken
		submit := func(name string, priority int) {
			m.Step(event(core.JobSubmitted{Job: name, Terms: core.Terms{Currency: money.USD, Priority: priority}}))
		}
		for n := range 40 {
			submit(fmt.Sprint("waits", n), priority)
		}
		i := 0
		return testing.AllocsPerRun(100, func() {
			i++
			submit(fmt.Sprint("new", i), 0)
			m.Step(event(core.JobEnded{Job: fmt.Sprint("new", i)}))
		})
	}
	if normal, critical := allocated(1), allocated(2); critical > normal {
		t.Errorf("two steps allocate %v objects while critical jobs wait, %v while others do", critical, normal)
	}
}
