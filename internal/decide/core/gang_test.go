package core

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/test/must"
)

// gangRig is a core with a job g on several nodes, and the cost of its machines at $1 per hour each.
type gangRig struct {
	*warmRig
	from  map[string]time.Duration // by machine
	ended map[string]bool
	log   []gangStep
	sum   money.Amount // cost of the machines that have ended
}

type gangStep struct {
	e   Event
	out Outcome
}

func newGang(t *testing.T, nodes, least int, change func(*Terms)) *gangRig {
	t.Helper()
	g := &gangRig{warmRig: &warmRig{Machine: New(), t: t, cost: map[string]money.Amount{}}, from: map[string]time.Duration{}, ended: map[string]bool{}}
	o := market.Offer{ID: "p/z/m/spot", Provider: "p", Zone: "z", Machine: "m", Capacity: market.Spot, CPUs: 8, Memory: 16 << 30,
		Accelerator: "A10G", Accelerators: 2, Speed: 1, Currency: money.USD}
	g.do(0, Configured{Config: DefaultConfig()})
	g.do(0, MarketSeen{Offers: []market.Offer{o}, Quotes: []market.Quote{{Offer: o.ID, Rate: 1e12, Priced: true, Available: true, At: agentsStart}}})
	terms := Terms{Name: "g", Currency: money.USD, Steps: 1000, Priority: 1, Restart: time.Minute, Grace: 10 * time.Second, Saves: true,
		Nodes: nodes, LeastNodes: least}
	if change != nil {
		change(&terms)
	}
	g.do(0, JobSubmitted{Job: "g", Terms: terms})
	return g
}

func (g *gangRig) do(after time.Duration, b Body) Outcome {
	g.t.Helper()
	out := g.step(after, b)
	g.log = append(g.log, gangStep{Event{At: agentsStart.Add(g.at), Schema: Schema, Tenant: "t", Body: b}, out})
	g.balances()
	return out
}

// balances checks that the cost of the job is the sum of the costs of its machines.
func (g *gangRig) balances() {
	g.t.Helper()
	j, ok := g.Job("g")
	if _, bill := g.log[len(g.log)-1].e.Body.(BillReceived); !ok || bill {
		return
	}
	sum := g.sum
	for id, from := range g.from {
		if !g.ended[id] {
			sum = sum.Add(hour(g.at - from))
		}
	}
	if got := j.Spent(agentsStart.Add(g.at)); got != sum {
		g.t.Fatalf("at %v the job has cost %v, its machines %v", g.at, got, sum)
	}
}

func (g *gangRig) grants(allocation string, ids ...string) {
	g.t.Helper()
	for _, id := range ids {
		g.from[id] = g.at
		g.do(0, LaunchDone{Launch: allocation, Instance: id, Offer: "p/z/m/spot", Rate: 1e12, From: agentsStart.Add(g.at)})
		g.do(0, MachineRegistered{Instance: id, Allocation: allocation, Key: "k" + id, Address: "127.1.0." + id[1:]})
	}
}

// runs starts all ranks of an attempt.
func (g *gangRig) runs(attempt string, after time.Duration) {
	g.t.Helper()
	for n := range g.attempt(attempt).Nodes() {
		g.do(0, AgentClaimed{Attempt: attempt, Node: n})
	}
	for n := range g.attempt(attempt).Nodes() {
		g.do(after, AttemptStarted{Attempt: attempt, Node: n})
		after = 0
	}
}

func (g *gangRig) attempt(id string) *Attempt {
	g.t.Helper()
	a := g.State().AttemptOf(id)
	if a == nil {
		g.t.Fatalf("there is no attempt %s", id)
	}
	return a
}

func (g *gangRig) end(id, cause string) Outcome {
	g.t.Helper()
	g.ended[id], g.sum = true, g.sum.Add(hour(g.at-g.from[id]))
	return g.do(0, InstanceEnded{Instance: id, Until: agentsStart.Add(g.at), Cause: cause})
}

func (g *gangRig) job() *Job { j, _ := g.Job("g"); return j }

func (g *gangRig) ranks(attempt string) (list []string) {
	for _, k := range g.attempt(attempt).Tasks() {
		list = append(list, k.Instance())
	}
	return list
}

// replays checks that the log alone, and a snapshot, reproduce the state.
func (g *gangRig) replays() {
	g.t.Helper()
	s := state.New()
	seq := uint64(0)
	for _, x := range g.log {
		if x.out.Nothing {
			continue
		}
		seq++
		s.Replay(seq, x.e, x.out.Facts, x.out.Postings)
	}
	want, _ := g.Snapshot()
	got, _ := s.Snapshot()
	if !bytes.Equal(got, want) {
		g.t.Errorf("the log gives\n%s\nnot\n%s", got, want)
	}
	m, err := Restore(want)
	must.Do(g.t, err)
	if again, _ := m.Snapshot(); !bytes.Equal(again, want) {
		g.t.Errorf("a snapshot gives\n%s\nnot\n%s", again, want)
	}
}

func kinds(out Outcome) (list []string) {
	for _, a := range out.Actions {
		switch a := a.(type) {
		case Launch:
			list = append(list, fmt.Sprintf("launch %d", a.Nodes))
		case Terminate:
			list = append(list, "terminate "+a.Instance)
		default:
			list = append(list, a.Kind())
		}
	}
	return list
}

// One launch requests all machines of a gang. The gang starts once the last is granted and all have reported their
// address. Each machine costs from its own grant on.
func TestGang_StartsAllOrNothing(t *testing.T) {
	g := newGang(t, 3, 0, nil)
	g.grants("g.1", "i1", "i2")
	if g.job().Attempt() != nil || g.job().Asked() == nil {
		t.Fatal("it has begun with two of three machines")
	}
	g.do(5*time.Minute, Tick{})
	g.from["i3"] = g.at
	g.do(0, LaunchDone{Launch: "g.1", Instance: "i3", Offer: "p/z/m/spot", Rate: 1e12, From: agentsStart.Add(g.at)})
	if n := len(g.market.Tasks(g.State().Instance("i1"))); n != 0 {
		t.Errorf("i1 has %d tasks, and nobody knows where i3 is", n)
	}
	g.do(0, MachineRegistered{Instance: "i3", Allocation: "g.1", Key: "k3", Address: "127.1.0.3"})
	for n, id := range []string{"i1", "i2", "i3"} {
		tasks := g.market.Tasks(g.State().Instance(id))
		if len(tasks) != 1 || tasks[0].Rank() != n {
			t.Errorf("%s has %d tasks", id, len(tasks))
		}
	}
	g.runs("g.1", time.Minute)
	a := g.attempt("g.1")
	if a.Task() != TaskRunning || a.GPUs() != 6 || a.Rate() != 3e12 {
		t.Errorf("it is %s with %d accelerators at %v", a.Task(), a.GPUs(), a.Rate())
	}
	for n := range 3 {
		g.do(time.Minute, AttemptEnded{Attempt: "g.1", Node: n, Reason: "completed", Step: 1000})
	}
	if g.job().State() != Succeeded {
		t.Fatalf("it is %s", g.job().State())
	}
	for _, id := range []string{"i1", "i2", "i3"} {
		g.end(id, "terminated")
	}
	if g.attempt("g.1").Live() || g.job().Costs() {
		t.Error("it costs something still")
	}
	if got := g.cost["g"]; got != g.sum {
		t.Errorf("posted are %v, the machines cost %v", got, g.sum)
	}
	for _, id := range []string{"i1", "i2", "i3"} {
		g.do(0, BillReceived{Instance: id, Launch: "g.1", Lines: []BillLine{{Amount: money.Picos(7e9), Currency: money.USD}}})
	}
	if got := g.cost["g"]; got != money.Picos(21e9) || !g.attempt("g.1").Billed() {
		t.Errorf("billed are 0.021, posted %v", got)
	}
	g.replays()
}

// When a machine is lost without notice, the programs of the others end and their machines stay for the next
// attempt, which requests one machine.
func TestGang_KeepsTheRemainingMachines(t *testing.T) {
	for name, fails := range map[string]bool{"they hang": false, "they fail before it is known": true} {
		t.Run(name, func(t *testing.T) {
			g := newGang(t, 3, 0, nil)
			g.grants("g.1", "i1", "i2", "i3")
			g.runs("g.1", time.Minute)
			g.do(10*time.Minute, CheckpointSaved{Attempt: "g.1", Message: 5, Manifest: "m", Step: 100, Captured: agentsStart.Add(g.at + 10*time.Minute)})
			g.do(2*time.Minute, Progressed{Attempt: "g.1", Message: 6, Step: 120})
			if fails {
				out := g.do(0, AttemptEnded{Attempt: "g.1", Message: 7, Reason: "failed", Exit: 1, Step: 120})
				if g.job().State() != Running || !slices.Contains(kinds(out), "drain") {
					t.Fatalf("the job is %s, the others are to end: %v", g.job().State(), kinds(out))
				}
				g.do(time.Second, AttemptEnded{Attempt: "g.1", Node: 2, Message: 1, Reason: "failed", Exit: 1})
			}
			out := g.end("i2", "interrupted")
			if fails {
				g.do(0, TaskGone{Attempt: "g.1"})
			} else {
				out = g.do(time.Second, TaskGone{Attempt: "g.1"}) // one of the others still runs
				g.do(time.Second, TaskGone{Attempt: "g.1", Node: 2})
			}
			if got := kinds(out); !slices.Equal(got, []string{"launch 1"}) {
				t.Fatalf("the loss led to %v", got)
			}
			if got := g.job().Asked().Granted(); !slices.Equal(got, []string{"i1", "i3"}) {
				t.Fatalf("the next attempt has %v", got)
			}
			g.at += time.Minute
			g.grants("g.2", "i4")
			if got := g.ranks("g.2"); !slices.Equal(got, []string{"i1", "i3", "i4"}) {
				t.Fatalf("the next attempt is on %v", got)
			}
			g.runs("g.2", time.Minute)
			if s := g.attempt("g.1"); s.Live() || s.End() != "interrupted" || !s.Taken() {
				t.Errorf("the first attempt: live %v, it ended %s", s.Live(), s.End())
			}
			for n := range 3 {
				g.do(time.Minute, AttemptEnded{Attempt: "g.2", Node: n, Message: 50, Reason: "completed", Step: 1000})
			}
			for _, id := range []string{"i1", "i3", "i4"} {
				g.end(id, "terminated")
			}
			if g.job().State() != Succeeded || g.job().Costs() || g.cost["g"] != g.sum {
				t.Errorf("the job is %s and cost %v, its machines %v", g.job().State(), g.cost["g"], g.sum)
			}
			g.replays()
			total := money.Amount{}
			for _, id := range []string{"i1", "i2", "i3", "i4"} {
				amount := money.Picos(3e9 + int64(len(id)))
				total = total.Add(amount)
				launch := "g.1"
				if id == "i4" {
					launch = "g.2"
				}
				g.do(0, BillReceived{Instance: id, Launch: launch, Lines: []BillLine{{Amount: amount, Currency: money.USD}}})
			}
			if g.cost["g"] != total || g.job().Spent(agentsStart.Add(g.at)) != total {
				t.Errorf("the bills are %v, the job cost %v", total, g.cost["g"])
			}
		})
	}
}

// A user ends a job whose next attempt waits for a machine that it keeps, while every request to the provider is
// granted. No answer to a cancellation arrives, so the core releases and pays its machines at once.
func TestJobEnded_ReleasesTheKeptMachinesOfAGang(t *testing.T) {
	g := newGang(t, 3, 0, nil)
	g.grants("g.1", "i1", "i2", "i3")
	g.runs("g.1", time.Minute)
	g.do(10*time.Minute, CheckpointSaved{Attempt: "g.1", Message: 5, Manifest: "m", Step: 100, Captured: agentsStart.Add(g.at + 10*time.Minute)})
	g.do(2*time.Minute, Progressed{Attempt: "g.1", Message: 6, Step: 120})
	g.end("i2", "interrupted")
	g.do(time.Second, TaskGone{Attempt: "g.1"}) // rank 2 still runs
	g.at += time.Minute
	g.grants("g.2", "i4")
	if g.job().Asked() == nil || g.State().AttemptOf("g.2") != nil {
		t.Fatal("it has begun without the machine that it keeps")
	}
	out := g.do(time.Second, JobEnded{Job: "g"})
	got := kinds(out)
	for _, want := range []string{"terminate i1", "terminate i4"} {
		if !slices.Contains(got, want) {
			t.Errorf("the end led to %v, not to %s", got, want)
		}
	}
	g.at += time.Minute
	for _, id := range []string{"i1", "i3", "i4"} {
		g.end(id, "terminated")
	}
	if g.job().Costs() || g.cost["g"] != g.sum {
		t.Errorf("the job costs still: %v; it cost %v, its machines %v", g.job().Costs(), g.cost["g"], g.sum)
	}
	g.replays()
}

// A program that fails on one machine fails the job once all other ranks have reported their end.
func TestGang_FailsWhenARankFails(t *testing.T) {
	g := newGang(t, 2, 0, nil)
	g.grants("g.1", "i1", "i2")
	g.runs("g.1", time.Minute)
	g.do(time.Minute, AttemptEnded{Attempt: "g.1", Node: 1, Message: 9, Reason: "failed", Exit: 3, Error: "out of memory"})
	if g.job().State() != Running {
		t.Fatalf("it is %s, and rank 0 has said nothing", g.job().State())
	}
	g.do(time.Second, AttemptEnded{Attempt: "g.1", Message: 9, Reason: "drained", Exit: 143})
	if j := g.job(); j.State() != Failed || j.Exit() != 3 || j.Detail() != "node 1: out of memory" {
		t.Errorf("it is %s with %d: %s", j.State(), j.Exit(), j.Detail())
	}
	g.end("i1", "terminated")
	g.end("i2", "terminated")
	g.replays()
}

// A notice to one machine makes all ranks save and end. The next attempt keeps the other machines and replaces that
// one.
func TestGang_DrainsAllRanksOnNotice(t *testing.T) {
	g := newGang(t, 3, 0, nil)
	g.grants("g.1", "i1", "i2", "i3")
	g.runs("g.1", time.Minute)
	out := g.do(time.Minute, NoticeGiven{Attempt: "g.1", Node: 0, Message: 3, Until: agentsStart.Add(g.at + 3*time.Minute)})
	if !slices.Contains(kinds(out), "drain") {
		t.Fatalf("the notice led to %v", kinds(out))
	}
	g.do(time.Second, AttemptEnded{Attempt: "g.1", Node: 1, Message: 4, Reason: "drained"})
	g.do(time.Second, AttemptEnded{Attempt: "g.1", Node: 0, Message: 4, Reason: "drained", Saved: true})
	out = g.do(time.Second, AttemptEnded{Attempt: "g.1", Node: 2, Message: 4, Reason: "drained"})
	if got := kinds(out); !slices.Equal(got, []string{"launch 1", "terminate i1"}) {
		t.Fatalf("the end led to %v", got)
	}
	g.end("i1", "interrupted")
	g.grants("g.2", "i4")
	if got := g.ranks("g.2"); !slices.Equal(got, []string{"i2", "i3", "i4"}) || g.job().Why() == "" {
		t.Fatalf("the next attempt is on %v", got)
	}
	g.replays()
}

// A gang that has not got all its machines after ten minutes releases the granted ones, and the job pays for them.
func TestGang_ReleasesItsMachinesAfterTenMinutesIncomplete(t *testing.T) {
	g := newGang(t, 3, 0, nil)
	g.do(time.Hour, Tick{})
	g.grants("g.1", "i1", "i2")
	g.do(9*time.Minute, Tick{})
	if g.job().Asked() == nil {
		t.Fatal("it was given up after nine minutes")
	}
	out := g.do(time.Minute, Tick{})
	if got := kinds(out); !slices.Contains(got, "cancel") {
		t.Fatalf("after ten minutes it does %v", got)
	}
	out = g.do(time.Second, LaunchCancelled{Launch: "g.1"})
	if got := kinds(out); !slices.Contains(got, "terminate i1") || !slices.Contains(got, "terminate i2") {
		t.Fatalf("then %v", got)
	}
	g.end("i1", "terminated")
	g.end("i2", "terminated")
	a := g.attempt("g.1")
	if a.Partial() != 3 || a.End() != "gang_wait" || a.Live() || g.cost["g"] != g.sum {
		t.Errorf("the attempt wanted %d and ended %s, it cost %v of %v", a.Partial(), a.End(), g.cost["g"], g.sum)
	}
	g.replays()
}

// An incomplete gang holds its machines no longer than ten minutes. With the planted fault it does.
func TestGang_PlantedFaultIsCaught(t *testing.T) {
	for hoards, want := range map[bool]bool{false: false, true: true} {
		g := newGang(t, 3, 0, nil)
		g.Break(Faults{Hoards: hoards})
		g.do(time.Hour, Tick{})
		g.grants("g.1", "i1", "i2")
		for range 30 {
			g.do(time.Minute, Tick{})
		}
		if asked := g.job().Asked(); (asked != nil && len(asked.Granted()) > 0) != want {
			t.Errorf("hoards %t: half of the gang is rented after half an hour: %t", hoards, !want)
		}
	}
}

// When a machine of an incomplete gang ends, the gang is given up.
func TestGang_IsGivenUpWhenAMachineEndsEarly(t *testing.T) {
	g := newGang(t, 2, 0, nil)
	g.grants("g.1", "i1")
	g.do(time.Minute, Tick{})
	if out := g.end("i1", "interrupted"); !slices.Contains(kinds(out), "cancel") {
		t.Fatalf("it goes on: %v", kinds(out))
	}
	g.do(time.Second, LaunchCancelled{Launch: "g.1"})
	if a := g.attempt("g.1"); a.Live() || a.End() != "interrupted" || g.cost["g"] != g.sum {
		t.Errorf("its attempt ended %s, it cost %v of %v", a.End(), g.cost["g"], g.sum)
	}
	g.replays()
}

// A machine of an incomplete gang that the provider's list lacks may still run. When its end and its bill come before
// the gang is given up, the job pays until that end, and the bill is booked.
func TestGang_PaysForAMachineThatOutlivedItsListing(t *testing.T) {
	g := newGang(t, 2, 0, nil)
	g.grants("g.1", "i1")
	from := g.at
	g.ended["i1"], g.sum = true, hour(time.Minute)
	g.do(time.Minute, InventorySeen{Provider: "p", AsOf: agentsStart.Add(g.at + time.Minute)})
	end := g.at + 9*time.Second
	g.sum = hour(end - from)
	g.do(11*time.Second, InstanceEnded{Instance: "i1", Until: agentsStart.Add(end), Cause: "stopped", Launch: "g.1"})
	if !g.TakesBill("i1", "g.1") {
		t.Fatal("its end was reported, and its bill is not taken")
	}
	bill := hour(end - from).Add(money.Picos(7))
	g.do(time.Second, BillReceived{Instance: "i1", Launch: "g.1", Lines: []BillLine{{Amount: bill, Currency: money.USD}}})
	g.sum = bill
	g.do(time.Minute, LaunchCancelled{Launch: "g.1"})
	if k := g.attempt("g.1").On("i1"); k.Live() || k.Until() != agentsStart.Add(end) || g.cost["g"] != bill {
		t.Errorf("it ended at %v and cost %v, its bill is %v", k.Until(), g.cost["g"], bill)
	}
	g.replays()
}

// When the provider refuses the rest of a gang, the core releases the granted machines at once, and the job pays for
// them.
func TestGang_ReleasesItsMachinesAfterAPartialRefusal(t *testing.T) {
	g := newGang(t, 2, 0, nil)
	g.grants("g.1", "i1")
	out := g.do(time.Second, LaunchRefused{Launch: "g.1", Reason: "no_capacity"})
	if !slices.Contains(kinds(out), "terminate i1") {
		t.Errorf("its machine stays: %v", kinds(out))
	}
	g.end("i1", "terminated")
	if a := g.attempt("g.1"); a.Live() || g.cost["g"] != g.sum || g.sum.IsZero() {
		t.Errorf("the attempt is live: %v; it cost %v of %v", a.Live(), g.cost["g"], g.sum)
	}
	g.replays()
}

// An elastic gang requests the fewest machines that suffice, and continues with the remaining ones if it cannot
// replace a machine.
func TestGang_ElasticOneContinuesWithFewerMachines(t *testing.T) {
	g := newGang(t, 4, 2, nil)
	if n := g.job().Asked().Nodes(); n != 2 {
		t.Errorf("without a deadline it asks for %d machines", n)
	}
	g = newGang(t, 4, 2, func(t *Terms) {
		t.Work, t.Steps = 4*time.Hour, 0
		t.Deadline = agentsStart.Add(11 * time.Hour)
	})
	if n := g.job().Asked().Nodes(); n != 3 { // 5 h 20 min of 5 h 30 min less a start
		t.Fatalf("4 h on four within 11 h: it asks for %d machines", n)
	}
	g.grants("g.1", "i1", "i2", "i3")
	if s := g.attempt("g.1").Speed(); s != 0.75 {
		t.Errorf("three of four are %v as fast", s)
	}
	g.runs("g.1", time.Minute)
	g.do(time.Hour, Tick{})
	g.end("i2", "interrupted")
	g.do(time.Second, TaskGone{Attempt: "g.1"})
	g.do(time.Second, TaskGone{Attempt: "g.1", Node: 2})
	g.do(time.Second, LaunchRefused{Launch: "g.2", Reason: "no_capacity"})
	if got := g.ranks("g.2"); !slices.Equal(got, []string{"i1", "i3"}) || g.attempt("g.2").Speed() != 0.5 {
		t.Errorf("it goes on with %v, at a speed of %v", got, g.attempt("g.2").Speed())
	}
	g.runs("g.2", time.Second)
	quote := market.Quote{Offer: "p/z/m/spot", Rate: 1e12, Priced: true, Available: true}
	drains := func(after time.Duration) bool {
		quote.At = agentsStart.Add(g.at + after)
		return slices.Contains(kinds(g.do(after, MarketSeen{Quotes: []market.Quote{quote}})), "drain")
	}
	if drains(30 * time.Second) {
		t.Error("it is ended for a larger one as soon as it runs")
	}
	if !drains(20*time.Minute) && !drains(time.Minute) {
		t.Fatal("it takes too long on two machines, and stays there")
	}
	g.do(time.Second, AttemptEnded{Attempt: "g.2", Message: 9, Reason: "drained", Saved: true})
	out := g.do(time.Second, AttemptEnded{Attempt: "g.2", Node: 1, Message: 9, Reason: "drained"})
	// nothing is saved, so all four are needed
	if got := kinds(out); !slices.Equal(got, []string{"launch 2"}) || len(g.job().Asked().Granted()) != 2 {
		t.Errorf("it asks for %v and keeps %v", got, g.job().Asked().Granted())
	}
	g.replays()
}

// While a gang is incomplete, no other gang requests machines of the same pool.
func TestGang_OneIncompletePerPool(t *testing.T) {
	g := newGang(t, 2, 0, nil)
	g.grants("g.1", "i1")
	other := Terms{Name: "h", Currency: money.USD, Steps: 10, Priority: 1, Nodes: 2}
	if out := g.step(time.Minute, JobSubmitted{Job: "h", Terms: other}); launches(out) != 0 {
		t.Fatalf("it asks for machines too: %v", kinds(out))
	}
	single := Terms{Name: "s", Currency: money.USD, Steps: 10, Priority: 1}
	if out := g.step(0, JobSubmitted{Job: "s", Terms: single}); launches(out) != 1 {
		t.Errorf("a job of one machine waits for it: %v", kinds(out))
	}
	out := g.step(time.Minute, LaunchDone{Launch: "g.1", Instance: "i2", Offer: "p/z/m/spot", Rate: 1e12, From: agentsStart.Add(g.at)})
	for range 3 {
		if launches(out) == 0 {
			out = g.step(time.Minute, Tick{})
		}
	}
	if launches(out) != 1 {
		t.Error("it has all its machines, and the other does not ask")
	}
}

// A gang that loses all its machines before its first checkpoint loses its work once. A job counts as one that
// never saves after three attempts, not after three machines.
func TestGang_LosesUnsavedWorkOnce(t *testing.T) {
	g := newGang(t, 4, 0, nil)
	for n := 1; n <= 3; n++ {
		id := fmt.Sprintf("g.%d", n)
		ids := []string{}
		for k := range 4 {
			ids = append(ids, fmt.Sprintf("i%d", 10*n+k))
		}
		g.grants(id, ids...)
		if n == 2 { // rank 0 has not started, so nothing is lost
			g.do(time.Minute, AttemptStarted{Attempt: id, Node: 3})
		} else {
			g.runs(id, time.Minute)
		}
		g.do(time.Hour, Tick{})
		for _, i := range ids {
			g.end(i, "interrupted")
		}
		g.do(time.Hour, Tick{})
		if got, want := g.job().UnsavedLosses(), []int{1, 1, 2}[n-1]; got != want {
			t.Errorf("after %d attempts it has lost unsaved work %d times, and not %d", n, got, want)
		}
	}
	g.replays()
}
