package core

import (
	"slices"
	"testing"
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/core/placement"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// seatRig is a core with an instance i1 of eight processors and eight accelerators at $1 per hour. Job j has run on
// one processor and one accelerator for a minute.
func seatRig(t *testing.T, change func(*Config)) *warmRig {
	t.Helper()
	w := &warmRig{Machine: New(), t: t, cost: map[string]money.Amount{}, most: money.Picos(50e12)}
	cfg := DefaultConfig()
	cfg.Seats, cfg.MaxRunning = 8, 20
	if change != nil {
		change(&cfg)
	}
	o := market.Offer{ID: "p/z/m/on-demand", Provider: "p", Zone: "z", Machine: "m", Capacity: market.OnDemand, CPUs: 8, Memory: 16 << 30,
		Accelerator: "A10G", Accelerators: 8, Speed: 1, Currency: money.USD}
	w.step(0, Configured{Config: cfg})
	w.step(0, MarketSeen{Offers: []market.Offer{o}, Quotes: []market.Quote{{Offer: o.ID, Rate: 1e12, Priced: true, Available: true, At: agentsStart}}})
	w.asks("j", "", 1, 1)
	w.step(0, LaunchDone{Launch: "j.1", Instance: "i1", Offer: o.ID, Rate: 1e12, From: agentsStart})
	w.step(0, MachineRegistered{Instance: "i1", Allocation: "j.1", Key: "k"})
	w.step(0, AgentClaimed{Attempt: "j.1"})
	w.step(time.Minute, AttemptStarted{Attempt: "j.1"})
	return w
}

// asks submits a job with the given processors and accelerators.
func (w *warmRig) asks(job, actor string, cpus, gpus int) Outcome {
	n := plan.Requirements{CPUs: cpus}
	if gpus > 0 {
		n.Accelerator, n.Accelerators = "A10G", gpus
	}
	return w.by(actor, 0, JobSubmitted{Job: job, Terms: Terms{Name: job, Currency: money.USD, Steps: 100, Priority: 1, Restart: time.Minute,
		Grace: time.Second, Need: plan.Need{Requirements: n}, Budget: w.most, HasBudget: true}})
}

func (w *warmRig) begins(attempt string) {
	w.step(0, AgentClaimed{Attempt: attempt})
	w.step(0, AttemptStarted{Attempt: attempt})
}

// ends ends a program, and then its agent reports that it has been cleaned up.
func (w *warmRig) ends(attempt string, after time.Duration) Outcome {
	w.step(after, AttemptEnded{Attempt: attempt, Reason: "completed"})
	return w.step(0, TaskGone{Attempt: attempt})
}

// Two jobs of one user share a machine. The second takes a free part without a launch, each has its own
// accelerators, and while both run they pay by their shares.
func TestSeats_JobsShareAMachineAndItsCost(t *testing.T) {
	w := seatRig(t, nil)
	out := w.asks("k", "", 1, 2)
	k, _ := w.Job("k")
	a := k.Attempt()
	if launches(out) != 0 || k.State() != Running || a == nil || a.Instance() != "i1" || k.Last().Why != plan.Beside {
		t.Fatalf("job k is %s after %d launches: %+v", k.State(), launches(out), k.Last())
	}
	i := w.State().Instance("i1")
	if s := i.Seats(); len(s) != 2 || !slices.Equal(s[0].Portion.Devices, []int{0}) || !slices.Equal(s[1].Portion.Devices, []int{1, 2}) {
		t.Fatalf("the seats are %+v", i.Seats())
	}
	if n := len(w.market.Tasks(i)); n != 2 {
		t.Errorf("the agent has %d tasks", n)
	}
	w.begins("k.1")
	// From 60 s to 180 s j has an eighth of the machine and k a quarter, so they pay one and two thirds.
	w.ends("k.1", 2*time.Minute)
	w.step(time.Minute, Tick{})
	out = w.step(0, AttemptEnded{Attempt: "j.1", Reason: "completed"})
	if !slices.ContainsFunc(out.Actions, func(a Action) bool { return a.Kind() == "terminate" }) {
		t.Errorf("the last task is over, and the machine is kept: %v", out.Actions)
	}
	end := w.at
	w.step(0, InstanceEnded{Instance: "i1", Until: agentsStart.Add(end), Cause: "terminated"})
	both := hour(3 * time.Minute).Sub(hour(time.Minute))
	if got := w.cost["k"].Sub(money.Picos(both.Big().Int64() * 2 / 3)); got.Big().Int64() < -1 || got.Big().Int64() > 1 {
		t.Errorf("k cost %v, two thirds of %v are due", w.cost["k"], both)
	}
	if got := w.cost["j"].Add(w.cost["k"]); got != hour(end) {
		t.Errorf("they cost %v, the machine %v", got, hour(end))
	}
	bill := BillReceived{Instance: "i1", Launch: "j.1", Lines: []BillLine{{Amount: hour(end).Add(money.Picos(5)), Currency: money.USD},
		{Rule: "minimum", Amount: money.Picos(1000), Currency: money.USD}}}
	before := w.cost["k"]
	w.step(time.Minute, bill)
	if got, want := w.cost["j"].Add(w.cost["k"]), hour(end).Add(money.Picos(1005)); got != want {
		t.Errorf("with the bill they cost %v, the bill is %v", got, want)
	}
	if off := w.cost["k"].Sub(before).Big().Int64(); off > 5 {
		t.Errorf("k left before the machine's end, and pays %d of its minimum", off)
	}
}

// A job gets only a part that is free: no more than is left, and nothing if another job has the whole machine, if the
// machine serves another user, or if its engine runs one task on each machine.
func TestSeats_RefusesWhatIsNotFree(t *testing.T) {
	for _, c := range []struct {
		name       string
		cpus, gpus int
		actor      string
		change     func(*Config)
	}{
		{"too many accelerators", 1, 8, "", nil},
		{"too many processors", 8, 1, "", nil},
		{"all of it, as it does not say", 0, 0, "", nil},
		{"another user", 1, 1, "user:ann", nil},
		{"one task at a time", 1, 1, "", func(c *Config) { c.Seats = 0 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := seatRig(t, c.change)
			if out := w.asks("k", c.actor, c.cpus, c.gpus); launches(out) != 1 {
				t.Errorf("%d launches, want one", launches(out))
			}
		})
	}
}

// A cancelled job leaves its seat, and the machine stays for the other job. Its part stays taken until its agent
// reports the cleanup; without that report the machine is released.
func TestSeats_CancelledJobLeavesTheMachine(t *testing.T) {
	for _, told := range []bool{true, false} {
		w := seatRig(t, nil)
		w.asks("k", "", 1, 7)
		w.begins("k.1")
		out := w.step(time.Minute, JobEnded{Job: "k"})
		if slices.ContainsFunc(out.Actions, func(a Action) bool { return a.Kind() == "terminate" }) {
			t.Fatalf("the machine is given back: %v", out.Actions)
		}
		if out := w.asks("l", "", 1, 7); launches(out) != 1 {
			t.Fatalf("its part is taken before it is left: %v", out.Actions)
		}
		if !told {
			out = w.step(time.Hour, Tick{})
			if !slices.ContainsFunc(out.Actions, func(a Action) bool { return a.Key() == "drain/j.1" }) {
				t.Errorf("its neighbour is not asked to save: %v", out.Actions)
			}
			out = w.step(time.Second, AttemptEnded{Attempt: "j.1", Reason: "drained", Saved: true})
			if !slices.ContainsFunc(out.Actions, func(a Action) bool { return a.Key() == "terminate/i1" }) {
				t.Errorf("nobody says that the task is gone, and the machine stays: %v", out.Actions)
			}
			continue
		}
		w.step(time.Second, TaskGone{Attempt: "k.1"})
		k, _ := w.Job("k")
		if k.Costs() || k.State() != Cancelled || len(w.State().Instance("i1").Seats()) != 1 {
			t.Errorf("job k is %s and costs %v", k.State(), k.Costs())
		}
		j, _ := w.Job("j")
		if j.State() != Running || j.Attempt().Rate() != 1e12 {
			t.Errorf("job j is %s, at %v", j.State(), j.Attempt().Rate())
		}
	}
}

// When a machine ends, all its tasks end. Each job tries again, and their parts of the cost add up to the whole.
func TestSeats_MachineEndEndsAllTasks(t *testing.T) {
	w := seatRig(t, nil)
	w.asks("k", "", 1, 2)
	w.begins("k.1")
	end := w.at + 10*time.Minute
	w.step(10*time.Minute, InstanceEnded{Instance: "i1", Until: agentsStart.Add(end), Cause: "interrupted"})
	for _, id := range []string{"j", "k"} {
		j, _ := w.Job(id)
		if a := j.Attempts()[0]; a.Live() || a.End() != "interrupted" || j.Epoch() != 2 {
			t.Errorf("%s: its attempt ended as %s, live %v; epoch %d", id, a.End(), a.Live(), j.Epoch())
		}
	}
	if got := w.cost["j"].Add(w.cost["k"]); got != hour(end) {
		t.Errorf("they cost %v, the machine %v", got, hour(end))
	}
}

// On a shared machine a job gets enough accelerators for its model, not just its stated minimum.
func TestSeats_PartFitsTheModel(t *testing.T) {
	asks := &plan.Requirements{Accelerator: "L4", Accelerators: 1, MaxAccelerators: 8,
		Footprint: plan.Footprint{Machine: 60e9, Cards: []plan.Card{{Accelerators: 1, Memory: 60e9}, {Accelerators: 4, Memory: 20e9}}}}
	p := placement.PartOf(asks, &market.Offer{CPUs: 64, Memory: 512 << 30, Accelerator: "L4", Accelerators: 8})
	if p == nil || len(p.Devices) != 4 || p.CPUs != 32 || p.Memory != 256<<30 {
		t.Errorf("its part is %+v", p)
	}
}

// At every moment the parts add up to the whole, however tasks come and go.
func TestSeats_PartsAddUpToTheWhole(t *testing.T) {
	w := seatRig(t, nil)
	i := w.State().Instance("i1")
	gone := money.Amount{}
	check := func() {
		t.Helper()
		for _, d := range []time.Duration{0, time.Nanosecond, time.Second, time.Hour} {
			at := agentsStart.Add(w.at + d)
			all := gone
			for _, a := range w.State().SeatedAll(i) {
				all = all.Add(a.Cost(at))
			}
			if all != i.Cost(at) {
				t.Errorf("at %v the parts are %v, the whole %v", w.at+d, all, i.Cost(at))
			}
		}
	}
	for n, job := range []string{"k", "l", "m", "n", "o", "p"} {
		w.asks(job, "", 1, 1)
		w.begins(job + ".1")
		w.step(time.Duration(7*n+1)*time.Second+time.Duration(n), Tick{})
		check()
		if n%2 == 1 {
			w.ends(job+".1", time.Second)
			a := w.State().AttemptOf(job + ".1")
			gone = gone.Add(a.Posted())
			check()
		}
	}
	if snap, err := w.State().Snapshot(); err != nil {
		t.Error(err)
	} else if again, err := state.Restore(snap); err != nil {
		t.Error(err)
	} else if a, _ := w.State().Hash(); true {
		if b, _ := again.Hash(); a != b {
			t.Error("the state is another after a snapshot")
		}
		mine := state.Sharer{Tenant: "t", User: state.Owner}
		all, of := w.State().Partly(), w.State().PartlyOf(mine)
		if len(all) != 1 || len(of) != 1 || len(again.Partly()) != 1 || len(again.PartlyOf(mine)) != 1 {
			t.Errorf("%d machines have room for a part, %d of them for the user; after a snapshot %d and %d; want one each",
				len(all), len(of), len(again.Partly()), len(again.PartlyOf(mine)))
		}
	}
}

// Jobs of a team follow and join each other if the team allows it and the machine isolates programs. Otherwise a
// machine serves one user.
func TestSeats_TeamSharesIfAllowed(t *testing.T) {
	for _, c := range []struct {
		name     string
		shares   []string
		isolated bool
		team     string
		want     int
	}{
		{"it does", []string{"vision"}, true, "vision", 0},
		{"it does not say so", nil, true, "vision", 1},
		{"another does", []string{"speech"}, true, "vision", 1},
		{"programs are not kept apart", []string{"vision"}, false, "vision", 1},
		{"another team's job", []string{"vision", "speech"}, true, "speech", 1},
		{"no team", []string{""}, true, "", 1},
	} {
		for _, waits := range []bool{true, false} {
			t.Run(c.name, func(t *testing.T) {
				w := &warmRig{Machine: New(), t: t, cost: map[string]money.Amount{}, most: money.Picos(50e12)}
				cfg := DefaultConfig()
				cfg.Seats, cfg.Idle = 4, time.Hour
				o := market.Offer{ID: "o", Provider: "p", Zone: "z", Machine: "m", Capacity: market.OnDemand, CPUs: 4, Memory: 8 << 30, Speed: 1,
					Currency: money.USD}
				job := func(id, team string) JobSubmitted {
					return JobSubmitted{Job: id, Terms: Terms{Name: id, Currency: money.USD, Steps: 100, Priority: 1, Restart: time.Minute,
						Owner: ledger.Owner{Team: team}, Need: plan.Need{Requirements: plan.Requirements{CPUs: 1}}}}
				}
				w.step(0, Configured{Config: cfg})
				w.step(0, BudgetsSet{Rules: budget.Rules{Shares: c.shares}})
				w.step(0, MarketSeen{Offers: []market.Offer{o}, Quotes: []market.Quote{{Offer: o.ID, Rate: 1e12, Priced: true, Available: true, At: agentsStart}}})
				w.by("user:ann", 0, job("j", "vision"))
				w.step(0, LaunchDone{Launch: "j.1", Instance: "i1", Offer: o.ID, Rate: 1e12, From: agentsStart})
				w.step(0, MachineRegistered{Instance: "i1", Allocation: "j.1", Key: "k", Isolated: c.isolated})
				w.step(time.Minute, Tick{})
				w.begins("j.1")
				if waits {
					w.step(time.Minute, AttemptEnded{Attempt: "j.1", Reason: "completed"})
					w.step(time.Second, MachineCleaned{Instance: "i1"})
				}
				if got := launches(w.by("user:bob", time.Second, job("k", c.team))); got != c.want {
					t.Errorf("%d launches, want %d (a machine that waits: %v)", got, c.want, waits)
				}
			})
		}
	}
}

// A machine under notice gets no other task, not even one that has just saved.
func TestSeats_MachineUnderNoticeTakesNobody(t *testing.T) {
	w := seatRig(t, nil)
	w.asks("k", "", 1, 1)
	w.begins("k.1")
	w.step(time.Minute, NoticeGiven{Attempt: "j.1", Until: agentsStart.Add(time.Hour)})
	w.step(time.Second, AttemptEnded{Attempt: "j.1", Reason: "drained", Saved: true})
	w.step(time.Second, TaskGone{Attempt: "j.1"})
	w.step(time.Hour, Tick{})
	if j, _ := w.Job("j"); j.Epoch() != 2 || j.Asked() == nil && j.Attempt().Instance() == "i1" {
		t.Errorf("job j is on %s again, in its attempt %d", j.Attempt().Instance(), j.Epoch())
	}
	if n := len(w.State().Instance("i1").Seats()); n != 1 {
		t.Errorf("%d tasks have a part of it", n)
	}
}

// A job does not join a machine if its budget would not cover the machine alone, should its neighbours leave.
func TestSeats_JoinsOnlyWithinTheBudget(t *testing.T) {
	for _, c := range []struct {
		dollars float64
		joins   bool
	}{{0.9, false}, {1.2, true}} { // an hour of work on a machine at $1 per hour
		w := seatRig(t, nil)
		w.step(0, JobSubmitted{Job: "k", Terms: Terms{Name: "k", Currency: money.USD, Priority: 1, Work: time.Hour, Steps: 100, Saves: true,
			Restart: time.Minute, Need: plan.Need{Requirements: plan.Requirements{CPUs: 1}}, Budget: money.Picos(int64(c.dollars * 1e12)), HasBudget: true}})
		if k, _ := w.Job("k"); (k.Attempt() != nil) != c.joins {
			t.Errorf("with $%v it joins: %v", c.dollars, k.Attempt() != nil)
		}
	}
}

// A job joins a machine with a minimum charge of three hours only if its budget covers it, because the other jobs
// may leave it to pay the rest.
func TestSeats_JoinsOnlyIfTheBudgetCoversTheMinimum(t *testing.T) {
	for dollars, joins := range map[float64]bool{1.2: false, 2.9: false, 3.2: true} {
		w := seatRig(t, nil)
		o := *w.Machine.step.State.Listing("p/z/m/on-demand").Offer()
		o.Billing.Minimum = 3 * time.Hour
		w.step(0, MarketSeen{Offers: []market.Offer{o}})
		w.step(0, JobSubmitted{Job: "k", Terms: Terms{Name: "k", Currency: money.USD, Priority: 1, Work: time.Hour, Steps: 100, Saves: true,
			Restart: time.Minute, Need: plan.Need{Requirements: plan.Requirements{CPUs: 1}}, Budget: money.Picos(int64(dollars * 1e12)), HasBudget: true}})
		if k, _ := w.Job("k"); (k.Attempt() != nil) != joins {
			t.Errorf("with $%v it joins: %v", dollars, k.Attempt() != nil)
		}
	}
}

// A job that restarts before the bill of its first machine rents no second one beyond its budget: the minimum
// charge of the first is already owed.
func TestMinimumCharge_CountsBeforeItsBill(t *testing.T) {
	for dollars, again := range map[float64]bool{4: false, 7.5: true} { // each machine costs three dollars or more
		w := seatRig(t, func(c *Config) { c.Seats = 0 })
		o := *w.Machine.step.State.Listing("p/z/m/on-demand").Offer()
		o.Billing.Minimum = 3 * time.Hour
		w.step(0, MarketSeen{Offers: []market.Offer{o}})
		w.step(0, JobSubmitted{Job: "k", Terms: Terms{Name: "k", Currency: money.USD, Priority: 1, Steps: 100, Saves: true,
			Restart: time.Minute, Need: plan.Need{Requirements: plan.Requirements{CPUs: 8}}, Budget: money.Picos(int64(dollars * 1e12)), HasBudget: true}})
		w.step(0, LaunchDone{Launch: "k.1", Instance: "i2", Offer: o.ID, Rate: 1e12, From: w.Machine.step.State.Now()})
		w.step(0, MachineRegistered{Instance: "i2", Allocation: "k.1", Key: "k"})
		w.begins("k.1")
		w.step(time.Minute, InstanceEnded{Instance: "i2", Launch: "k.1", Until: w.Machine.step.State.Now().Add(time.Minute), Cause: "interrupted"})
		w.step(time.Hour, Tick{})
		if k, _ := w.Job("k"); (k.Asked() != nil) != again {
			t.Errorf("with $%v it asks for a second machine: %v, %s", dollars, k.Asked() != nil, k.Detail())
		}
	}
}
