package core

import (
	"testing"
	"time"

	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/plan/assign"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// preemptRig is a core that runs one job at a time, on machines of $3 an hour. Job low of the given number of nodes has
// just started, four minutes after its launch, and has ten hours of work.
func preemptRig(t *testing.T, nodes int, change func(*Terms)) *warmRig {
	t.Helper()
	w := &warmRig{Machine: New(), t: t, cost: map[string]money.Amount{}}
	cfg := DefaultConfig()
	cfg.MaxRunning = 1
	o := market.Offer{ID: "p/z/m/on-demand", Provider: "p", Zone: "z", Machine: "m", Capacity: market.OnDemand, CPUs: 8,
		Memory: 16 << 30, Speed: 1, Currency: money.USD}
	w.step(0, Configured{Config: cfg})
	w.step(0, MarketSeen{Offers: []market.Offer{o}, Quotes: []market.Quote{{Offer: o.ID, Rate: 3e12, Priced: true, Available: true, At: agentsStart}}})
	low := w.terms("low", 0)
	low.Nodes = nodes
	if change != nil {
		change(&low)
	}
	w.step(0, JobSubmitted{Job: "low", Terms: low})
	for n := range nodes {
		id := []string{"i1", "i2"}[n]
		w.step(0, LaunchDone{Launch: "low.1", Instance: id, Offer: o.ID, Rate: 3e12, From: agentsStart})
		w.step(0, MachineRegistered{Instance: id, Allocation: "low.1", Key: "k" + id})
	}
	w.at += 4 * time.Minute
	for n := range nodes {
		w.step(0, AgentClaimed{Attempt: "low.1", Node: n})
		w.step(0, AttemptStarted{Attempt: "low.1", Node: n})
	}
	return w
}

func (w *warmRig) terms(name string, priority int) Terms {
	return Terms{Name: name, Currency: money.USD, Work: 10 * time.Hour, Priority: priority, Restart: 4 * time.Minute,
		Grace: time.Minute, Saves: true, Need: plan.Need{Requirements: plan.Requirements{CPUs: 1}}}
}

// preempts returns the preemptions of a step.
func preempts(out Outcome) (list []state.JobPreempted) {
	for _, f := range out.Facts {
		if f, ok := f.(state.JobPreempted); ok {
			list = append(list, f)
		}
	}
	return list
}

// The core schedules a step for when the program has had its ten minutes. By hand: 6 minutes since the checkpoint and a
// restart of 4 minutes, at $3 an hour, cost $0.50.
func TestPriced_IsWorkSinceCheckpointAndRestartAtSeatPrice(t *testing.T) {
	w := preemptRig(t, 1, nil)
	w.step(4*time.Minute, CheckpointSaved{Attempt: "low.1", Message: 1, Captured: agentsStart.Add(w.at + 4*time.Minute), Step: 1})
	out := w.step(5*time.Minute, JobSubmitted{Job: "urgent", Terms: w.terms("urgent", 2)})
	if len(preempts(out)) > 0 || out.Wake.IsZero() || out.Wake.After(agentsStart.Add(14*time.Minute)) {
		t.Fatalf("after nine minutes: preempted %v, woken at %v", preempts(out), out.Wake)
	}
	if out = w.step(time.Minute-time.Second, Tick{}); len(preempts(out)) > 0 {
		t.Fatalf("a second too early: %+v", preempts(out))
	}
	got := preempts(w.step(time.Second, Tick{}))
	if len(got) != 1 || got[0].Job != "low" || got[0].By != "urgent" || got[0].Lost != 6*time.Minute ||
		got[0].Restart != 4*time.Minute || got[0].Cost.String() != "0.5" {
		t.Fatalf("preempted: %+v", got)
	}
}

// The work since the checkpoint counts in full, although the program reported its last step long ago. By hand: 10
// minutes since the start and a restart of 4 minutes, at $3 an hour, cost $0.70.
func TestPriced_CountsWorkSinceLastReport(t *testing.T) {
	w := preemptRig(t, 1, func(x *Terms) { x.Steps = 1000 })
	w.step(time.Minute, Progressed{Attempt: "low.1", Message: 1, Step: 2, Total: 1000})
	w.step(time.Minute, Progressed{Attempt: "low.1", Message: 2, Step: 4, Total: 1000})
	got := preempts(w.step(8*time.Minute, JobSubmitted{Job: "urgent", Terms: w.terms("urgent", 2)}))
	if len(got) != 1 || got[0].Lost != 10*time.Minute || got[0].Cost.String() != "0.7" {
		t.Fatalf("preempted: %+v", got)
	}
}

// The drained job waits until the critical one has requested its machine, without a retry or a failure, and then goes
// on.
func TestPreempt_VictimYieldsToCriticalJob(t *testing.T) {
	w := preemptRig(t, 1, nil)
	w.step(10*time.Minute, JobSubmitted{Job: "urgent", Terms: w.terms("urgent", 2)})
	w.step(time.Second, AttemptEnded{Attempt: "low.1", Message: 2, Reason: "drained", Exit: 143, Saved: true})
	low, _ := w.Job("low")
	urgent, _ := w.Job("urgent")
	if by, ok := w.YieldsTo(low); !ok || by != urgent || low.State() != Queued || low.Why() != state.Preempted {
		t.Fatalf("low is %s (%s), and yields %v", low.State(), low.Why(), ok)
	}
	w.step(time.Second, InstanceEnded{Instance: "i1", Until: agentsStart.Add(w.at), Cause: "terminated"})
	if urgent.Asked() == nil || low.Asked() != nil {
		t.Fatalf("urgent is %s, low is %s", urgent.State(), low.State())
	}
	if _, ok := w.YieldsTo(low); ok {
		t.Error("it still yields")
	}
	if low.Retries() != 0 || low.Failures() != 0 || low.Preempted() != 1 {
		t.Errorf("%d retries, %d failures, %d preemptions", low.Retries(), low.Failures(), low.Preempted())
	}
	w.step(time.Second, JobEnded{Job: "urgent"})
	w.step(time.Second, LaunchCancelled{Launch: "urgent.1"})
	if low.Asked() == nil {
		t.Errorf("low is %s (%s) after the critical job has ended", low.State(), low.Why())
	}
}

// Preemptions make no cycle: the preempted job never takes the seat back, even if it has waited for longer than the
// minimum run, and another critical job takes it neither. The only place goes on to them once its job has ended.
func TestPreempt_MakesNoCycle(t *testing.T) {
	w := preemptRig(t, 1, nil)
	w.step(10*time.Minute, JobSubmitted{Job: "urgent", Terms: w.terms("urgent", 2)})
	w.step(time.Second, AttemptEnded{Attempt: "low.1", Message: 2, Reason: "drained", Exit: 143, Saved: true})
	w.step(time.Second, InstanceEnded{Instance: "i1", Until: agentsStart.Add(w.at), Cause: "terminated"})
	w.step(0, LaunchDone{Launch: "urgent.1", Instance: "i2", Offer: "p/z/m/on-demand", Rate: 3e12, From: agentsStart.Add(w.at)})
	w.step(0, MachineRegistered{Instance: "i2", Allocation: "urgent.1", Key: "k"})
	w.step(time.Minute, AgentClaimed{Attempt: "urgent.1"})
	w.step(0, AttemptStarted{Attempt: "urgent.1"})
	got := preempts(w.step(time.Minute, JobSubmitted{Job: "other", Terms: w.terms("other", 2)}))
	for range 60 {
		got = append(got, preempts(w.step(time.Minute, Tick{}))...)
	}
	urgent, _ := w.Job("urgent")
	if len(got) > 0 || urgent.Live() == nil || urgent.Live().Draining() {
		t.Fatalf("preempted %+v", got)
	}
	if low, _ := w.Job("low"); low.State() != Queued || low.Preempted() != 1 {
		t.Errorf("low is %s, preempted %d times", low.State(), low.Preempted())
	}
}

// A job on two machines leaves both or none.
func TestPreempt_GangLeavesAllMachinesOrNone(t *testing.T) {
	w := preemptRig(t, 2, nil)
	out := w.step(10*time.Minute, JobSubmitted{Job: "urgent", Terms: w.terms("urgent", 2)})
	drains := 0
	for _, a := range out.Actions {
		if d, ok := a.(Drain); ok && d.Attempt == "low.1" && d.Why == state.Preempted {
			drains++
		}
	}
	if got := preempts(out); len(got) != 1 || drains != 1 || got[0].Cost.String() != "1.4" { // (10 + 4) minutes, 2 machines
		t.Fatalf("%d drains, preempted %+v", drains, got)
	}
}

// spared is the explanation of a critical job about jobs that it does not preempt.
var spared = map[string]string{"its file forbids it": "with preemptible: false", "it is critical": "critical itself",
	"it is a session": "that is a session", "it would miss its deadline": "that could miss its deadline or wall_clock",
	"it would miss its wall clock": "that could miss its deadline or wall_clock",
	"its budget has no room":       "whose budget has no room for it"}

// nobody returns why a job preempts nobody.
func (w *warmRig) nobody(job string) string {
	j, _ := w.Job(job)
	return w.PreemptsNobody(j, func(t time.Time) string { return t.Format("15:04") })
}

// The core does not preempt these jobs, and the explanation of the waiting critical job says why.
func TestPreempt_LeavesProtectedJobsAlone(t *testing.T) {
	for name, change := range map[string]func(*Terms){
		"its file forbids it":          func(t *Terms) { t.Unpreemptible = true },
		"it is critical":               func(t *Terms) { t.Priority = 2 },
		"it is a session":              func(t *Terms) { t.Session = "shell" },
		"it would miss its deadline":   func(t *Terms) { t.Deadline = agentsStart.Add(15 * time.Hour) },
		"it would miss its wall clock": func(t *Terms) { t.WallClock = 15 * time.Hour },
		"its budget has no room":       func(t *Terms) { t.Budget, t.HasBudget = money.Picos(30.1e12), true },
	} {
		w := preemptRig(t, 1, change)
		if got := preempts(w.step(10*time.Minute, JobSubmitted{Job: "urgent", Terms: w.terms("urgent", 2)})); len(got) > 0 {
			t.Errorf("%s: preempted %+v", name, got)
		}
		if said := w.nobody("urgent"); said != "1 job "+spared[name] {
			t.Errorf("%s: the critical job says %q", name, said)
		}
	}
	w := preemptRig(t, 1, nil)
	w.step(time.Minute, JobSubmitted{Job: "urgent", Terms: w.terms("urgent", 2)})
	if said := w.nobody("urgent"); said != "1 job in its minimum run until "+agentsStart.Add(14*time.Minute).Format("15:04") {
		t.Errorf("a minute after the start of the other: %q", said)
	}
	if low := w.nobody("low"); low != "" {
		t.Errorf("a running low job says %q", low)
	}
	w = preemptRig(t, 1, nil)
	if got := preempts(w.step(10*time.Minute, JobSubmitted{Job: "normal", Terms: w.terms("normal", 1)})); len(got) > 0 {
		t.Errorf("a normal job preempts: %+v", got)
	}
}

// Two jobs share the user's own machine of eight processors. The critical job needs four of them: one job leaves its
// seat, the other keeps its own, and the critical job takes the free part of the same machine.
func TestPreempt_TakesSeatOfSharedMachine(t *testing.T) {
	w := &warmRig{Machine: New(), t: t, cost: map[string]money.Amount{}}
	cfg := DefaultConfig()
	cfg.Seats = 8
	o := market.Offer{ID: "p/z/m/reserved", Provider: "p", Zone: "z", Machine: "m", Capacity: market.Reserved, CPUs: 8,
		Memory: 16 << 30, Speed: 1, Currency: money.USD, Reserved: market.Reservation{Count: 1, From: agentsStart,
			Until: agentsStart.Add(1000 * time.Hour), Paid: money.Picos(1e15)}}
	w.step(0, Configured{Config: cfg})
	w.step(0, MarketSeen{Offers: []market.Offer{o}, Quotes: []market.Quote{{Offer: o.ID, Rate: 1e12, Priced: true, Available: true, At: agentsStart}}})
	submit := func(name string, priority, cpus int) Outcome {
		terms := w.terms(name, priority)
		terms.Need.CPUs = cpus
		return w.step(0, JobSubmitted{Job: name, Terms: terms})
	}
	submit("a", 0, 4)
	p := assign.Plan(w.RoundInputs())
	w.step(0, RoundProposed{Base: p.Base, Groups: p.Groups})
	w.step(0, LaunchDone{Launch: "a.1", Instance: "i1", Offer: o.ID, Rate: 1e12, From: agentsStart})
	w.step(0, MachineRegistered{Instance: "i1", Allocation: "a.1", Key: "k"})
	w.begins("a.1")
	submit("b", 0, 4)
	w.begins("b.1")
	w.step(9*time.Minute, CheckpointSaved{Attempt: "b.1", Message: 2, Captured: agentsStart.Add(9 * time.Minute), Step: 1})
	w.at = 10 * time.Minute
	got := preempts(submit("urgent", 2, 4))
	if len(got) != 1 || got[0].Job != "b" {
		t.Fatalf("preempted: %+v", got)
	}
	w.step(time.Second, AttemptEnded{Attempt: "b.1", Message: 3, Reason: "drained", Exit: 143, Saved: true})
	w.step(time.Second, TaskGone{Attempt: "b.1"})
	a, _ := w.Job("a")
	b, _ := w.Job("b")
	urgent, _ := w.Job("urgent")
	if x := urgent.Attempt(); x == nil || x.Instance() != "i1" || a.Live() == nil || b.Live() != nil || b.State() != Queued {
		t.Errorf("urgent is %s (%s), a %s, b %s", urgent.State(), urgent.Why(), a.State(), b.State())
	}
}
