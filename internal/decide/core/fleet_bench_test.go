package core_test

import (
	"flag"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/plan/assign"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/market"
)

var fleetMachines = flag.Int("fleet", 200, "machines of BenchmarkFleet, five jobs on each")

// Limits of BenchmarkFleet, in processor time.
const (
	longestRound  = time.Second           // reading, planning and applying a round, 99 % of them
	longestChange = 20 * time.Millisecond // a job ends and the next one starts, 99 % of them
)

// fleet is a core whose machines run five jobs each. A tenth of them are reserved.
type fleet struct {
	b       testing.TB
	m       *core.Machine
	now     time.Time
	jobs    int
	running []string          // attempts in the order of their start
	begun   map[string]string // attempt by job
	took    time.Duration     // processor time of the steps of the last change
	longest time.Duration     // the longest step
	kind    string            // kind of its event
}

// newFleet fills the machines: nine tenths are rented, and then the others are for sale.
func newFleet(b testing.TB, machines int) *fleet {
	f := &fleet{b: b, m: core.New(), now: start, begun: map[string]string{}}
	cfg := core.DefaultConfig()
	cfg.Seats, cfg.MaxRunning, cfg.Idle = 5, 5*machines, time.Hour
	f.tell("", core.Configured{Config: cfg})
	seen := core.MarketSeen{}
	add := func(zone string, c market.Capacity, rate money.Rate) {
		o := market.Offer{Provider: "p", Region: "r", Zone: zone, Machine: "m", Capacity: c, CPUs: 20, Memory: 80 * size.GiB,
			Speed: 1, Currency: money.USD}
		if c == market.Reserved {
			o.Reserved = market.Reservation{Count: machines / 100, From: f.now, Until: f.now.Add(1000 * time.Hour),
				Paid: money.Picos(1e16)}
		}
		o.ID = market.ID(o)
		seen.Offers = append(seen.Offers, o)
		seen.Quotes = append(seen.Quotes, market.Quote{Offer: o.ID, Rate: rate, Priced: true, Available: true, At: f.now})
	}
	for n := range 10 {
		add(fmt.Sprint("z", n), market.OnDemand, money.Rate(1e12+int64(n)*1e9))
	}
	f.tell("", seen)
	for len(f.begun) < 5*machines*9/10 {
		f.submit()
	}
	seen = core.MarketSeen{}
	for n := range 10 {
		add(fmt.Sprint("paid", n), market.Reserved, 1e9)
	}
	f.tell("", seen)
	for range 5*machines - len(f.begun) {
		f.submit()
	}
	for range 100 {
		f.now = f.now.Add(time.Minute)
		f.tell("", core.Tick{})
		f.round()
	}
	if n := len(f.m.State().Running()); n != 5*machines {
		b.Fatalf("%d jobs run on %d machines", n, machines)
	}
	return f
}

// tell steps b and what follows from it: machines are granted and ended at once, and programs start at once.
func (f *fleet) tell(actor string, b core.Body) core.Outcome {
	begun := processor()
	out := f.m.Step(core.Event{At: f.now, Schema: core.Schema, Tenant: "t", Actor: actor, Body: b})
	took := processor() - begun
	if f.took += took; took > f.longest {
		f.longest, f.kind = took, b.Kind()
	}
	for _, fact := range out.Facts {
		if x, ok := fact.(state.AllocationRequested); ok && x.Instance != "" {
			f.begins(x.Job)
		}
	}
	for _, a := range out.Actions {
		switch a := a.(type) {
		case core.Launch:
			i := "i-" + a.Allocation
			f.tell("", core.LaunchDone{Launch: a.Allocation, Instance: i, Offer: a.Offer, Rate: 1e12, From: f.now})
			f.tell("", core.MachineRegistered{Instance: i, Allocation: a.Allocation, Key: "k" + i})
			f.begins(a.Job)
		case core.Drain:
			f.tell("", core.AttemptEnded{Attempt: a.Attempt, Message: 8, Reason: "drained"})
			f.tell("", core.TaskGone{Attempt: a.Attempt})
		case core.Terminate:
			f.tell("", core.InstanceEnded{Instance: a.Instance, Until: f.now, Cause: "terminated"})
		}
	}
	return out
}

// begins starts the program of a job that has a machine.
func (f *fleet) begins(job string) {
	j, _ := f.m.Job(job)
	a := j.Attempt()
	if a == nil || f.begun[job] == a.ID() {
		return
	}
	f.begun[job], f.running = a.ID(), append(f.running, a.ID())
	f.tell("", core.AgentClaimed{Attempt: a.ID()})
	f.tell("", core.AttemptStarted{Attempt: a.ID(), Message: 1})
}

// submit adds a job of one of twenty users, of one of 12 sizes.
func (f *fleet) submit() {
	id, user := fmt.Sprint("j", f.jobs), fmt.Sprint("u", f.jobs/5%20)
	t := core.Terms{Name: id, Currency: money.USD, Priority: 1, Restart: time.Minute, Grace: time.Second, Saves: true,
		Steps: 100, Work: time.Hour, Owner: ledger.Owner{Team: user}}
	t.Need = plan.Need{Requirements: plan.Requirements{CPUs: 2 + f.jobs%3, Memory: int64(4+4*(f.jobs%4)) << 30}}
	f.jobs++
	f.tell("user:"+user, core.JobSubmitted{Job: id, Terms: t})
}

// change ends the job that has run longest. Its agent then reports the machine clean.
func (f *fleet) change() time.Duration {
	f.took = 0
	for a := f.m.State().Attempt(f.running[0]); a == nil || !a.Live(); a = f.m.State().Attempt(f.running[0]) {
		f.running = f.running[1:] // a round has moved it
	}
	attempt := f.running[0]
	f.running = f.running[1:]
	f.now = f.now.Add(time.Second)
	f.tell("", core.AttemptEnded{Attempt: attempt, Message: 9, Reason: "completed"})
	f.tell("", core.TaskGone{Attempt: attempt})
	f.tell("", core.Tick{})
	return f.took
}

// round reads, plans and applies a round, and returns how long the first two and all took.
func (f *fleet) round() (read, planned, all time.Duration) {
	begun := processor()
	in := f.m.RoundInputs()
	read = processor() - begun
	p := assign.Plan(in)
	planned = processor() - begun - read
	f.tell("", core.RoundProposed{Base: p.Base, Groups: p.Groups, Again: p.Again})
	if len(in.Bids) == 0 {
		f.b.Fatal("nobody bids")
	}
	return read, planned, processor() - begun
}

// BenchmarkFleet has -fleet machines that run five jobs each while -waiting jobs wait. In each turn one job ends, and a
// round is read, planned and applied: go test ./internal/decide/core -run '^$' -bench Fleet -fleet 2000.
func BenchmarkFleet(b *testing.B) {
	f := newFleet(b, *fleetMachines)
	for range *waiting {
		f.submit()
	}
	machines := 0
	for range f.m.State().Instances() {
		machines++
	}
	f.longest = 0
	var rounds, changes []time.Duration
	var longest, read, planned time.Duration
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // the collector would count as a part of whatever step it meets
	for b.Loop() {
		runtime.GC()
		for range 50 {
			changes = append(changes, f.change())
		}
		longest = max(longest, f.longest)
		r, q, all := f.round()
		read, planned, rounds = max(read, r), max(planned, q), append(rounds, all)
	}
	ms := func(d time.Duration) float64 { return d.Seconds() * 1e3 }
	p99 := func(list []time.Duration) time.Duration {
		slices.Sort(list)
		return list[len(list)*99/100]
	}
	b.ReportMetric(float64(machines), "machines")
	b.ReportMetric(ms(p99(rounds)), "ms-round-p99")
	b.ReportMetric(ms(read), "ms-read")
	b.ReportMetric(ms(planned), "ms-plan")
	b.ReportMetric(ms(p99(changes)), "ms-change-p99")
	b.ReportMetric(ms(longest), "ms-step")
	if p99(rounds) > longestRound || p99(changes) > longestChange || longest > longestStep {
		b.Errorf("%d machines: a round took %v (read %v, plan %v), a change %v and a step %v (%s)", machines, p99(rounds), read, planned, p99(changes), longest, f.kind)
	}
}
