package core

import (
	"math/rand/v2"
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
	"scrimp/internal/test/must"
)

// consolidation is a core with machines of eight processors at $1 an hour. Jobs a and c share machine ia, and job b has
// machine ib. When a ends, c has ia alone, and room on ib.
type consolidation struct {
	*warmRig
	faults   Faults
	terms    map[string]Terms // by job
	saved    time.Duration    // age of the checkpoint of c when a ends
	ran      time.Duration    // time of a
	beside   money.Rate       // of the machine of b
	stranger string           // user of b
	capacity market.Capacity  // of all machines
	idle     time.Duration    // longest wait of an idle machine
}

// newConsolidation has a restart of six minutes, ten hours of work of c and twenty of b, and a checkpoint of c half an
// hour ago.
func newConsolidation(t *testing.T) *consolidation {
	x := &consolidation{terms: map[string]Terms{}, saved: 30 * time.Minute, ran: time.Hour, beside: 1e12,
		capacity: market.OnDemand}
	x.warmRig = &warmRig{Machine: New(), t: t, cost: map[string]money.Amount{}}
	for job, s := range map[string]struct {
		cpus int
		work time.Duration
	}{"a": {5, 100 * time.Hour}, "b": {5, 20 * time.Hour}, "c": {3, 10 * time.Hour}} {
		x.terms[job] = Terms{Name: job, Currency: money.USD, Work: s.work, Priority: 1, Restart: 6 * time.Minute, Grace: time.Second,
			Saves: true, Owner: ledger.Owner{Team: "vision"},
			Need: plan.Need{Requirements: plan.Requirements{CPUs: s.cpus}}}
	}
	return x
}

func (x *consolidation) change(job string, f func(*Terms)) {
	t := x.terms[job]
	f(&t)
	x.terms[job] = t
}

// begin submits a job and starts its program, on a new machine if it requests one.
func (x *consolidation) begin(job string) {
	x.t.Helper()
	actor := ""
	if job == "b" {
		actor = x.stranger
	}
	out := x.by(actor, 0, JobSubmitted{Job: job, Terms: x.terms[job]})
	for _, a := range out.Actions {
		if l, ok := a.(Launch); ok {
			rate := money.Rate(1e12)
			if job == "b" {
				rate = x.beside
			}
			x.step(0, LaunchDone{Launch: l.Allocation, Instance: "i" + job, Offer: l.Offer, Rate: rate, From: agentsStart.Add(x.at)})
			x.step(0, MachineRegistered{Instance: "i" + job, Allocation: l.Allocation, Key: "k" + job})
		}
	}
	x.begins(job + ".1")
}

// run starts a, c and b in this order, ends a, and returns the drains for a consolidation.
func (x *consolidation) run() (list []state.DrainRequested) {
	x.t.Helper()
	cfg := DefaultConfig()
	cfg.Seats, cfg.MaxRunning, cfg.Idle = 8, 20, x.idle
	o := market.Offer{ID: "p/z/m/on-demand", Provider: "p", Zone: "z", Machine: "m", Capacity: x.capacity, CPUs: 8,
		Memory: 16 << 30, Speed: 1, Currency: money.USD}
	x.step(0, Configured{Config: cfg})
	x.step(0, MarketSeen{Offers: []market.Offer{o}, Quotes: []market.Quote{{Offer: o.ID, Rate: 1e12, Priced: true, Available: true, At: agentsStart}}})
	x.Break(x.faults)
	for _, job := range []string{"a", "c", "b"} {
		x.begin(job)
	}
	at := x.at + x.ran - x.saved
	list = x.moved(x.step(at-x.at, CheckpointSaved{Attempt: "c.1", Message: 2, Captured: agentsStart.Add(at), Step: 1}))
	x.step(x.saved, AttemptEnded{Attempt: "a.1", Message: 2, Reason: "completed"})
	return append(list, x.gone("a.1")...)
}

// gone frees the seat of a program that has ended, and lets the core review the others on the machine.
func (x *consolidation) gone(attempt string) []state.DrainRequested {
	return append(x.moved(x.step(0, TaskGone{Attempt: attempt})), x.moved(x.step(time.Millisecond, Tick{}))...)
}

func (x *consolidation) moved(out Outcome) (list []state.DrainRequested) {
	for _, f := range out.Facts {
		if f, ok := f.(state.DrainRequested); ok && f.Why == placement.MoveConsolidates {
			list = append(list, f)
		}
	}
	return list
}

// on returns the machine of a job's live attempt.
func (x *consolidation) on(job string) string {
	if j, _ := x.Job(job); j.Live() != nil {
		return j.Live().Instance()
	}
	return ""
}

// c pays $1 an hour for the machine that it has alone for another 9 hours. A seat beside b costs 3/8 of $1. The move
// repeats 30 minutes and restarts for 6: $0.225 at the seat's rate, and the rest costs $3.375 there instead of $9. c
// saves, takes the seat, and its own machine is released. The move is earned after 6 minutes and $0.225 / $0.625 an hour.
func TestConsolidate_MovesToSeatBesideOthersAndReleasesMachine(t *testing.T) {
	x := newConsolidation(t)
	list := x.run()
	if len(list) != 1 || list[0].Attempt != "c.1" {
		t.Fatalf("consolidated: %+v", list)
	}
	earned := 6*time.Minute + 21*time.Minute + 36*time.Second
	if got := list[0].Rests.Sub(agentsStart.Add(x.at)); got.Round(time.Second) != earned {
		t.Errorf("the move is earned after %v, want %v", got, earned)
	}
	c, _ := x.Job("c")
	if why := c.Last().Why; why != plan.Consolidates || why.Text() == "" {
		t.Errorf("its decision is %q", why)
	}
	out := x.step(time.Second, AttemptEnded{Attempt: "c.1", Message: 3, Reason: "drained", Exit: 143, Saved: true})
	if x.on("c") != "ib" || x.on("b") != "ib" {
		t.Fatalf("c is on %q, b on %q", x.on("c"), x.on("b"))
	}
	if !slices.ContainsFunc(out.Actions, func(a Action) bool { return a.Key() == "terminate/ia" }) {
		t.Errorf("its machine is kept: %v", out.Actions)
	}
	if c.Retries() != 0 || c.Failures() != 0 {
		t.Errorf("%d retries, %d failures", c.Retries(), c.Failures())
	}
}

// A move that does not pay, is not allowed or would be late does not happen.
func TestConsolidate_LeavesOthersAlone(t *testing.T) {
	for name, change := range map[string]func(*consolidation){
		"little work is left": func(x *consolidation) { x.change("c", func(t *Terms) { t.Work = 80 * time.Minute }) },
		"its work is unknown": func(x *consolidation) { x.change("c", func(t *Terms) { t.Work = 0 }) },
		"it saves nothing":    func(x *consolidation) { x.change("c", func(t *Terms) { t.Saves = false }) },
		"its file forbids it": func(x *consolidation) { x.change("c", func(t *Terms) { t.Unpreemptible = true }) },
		"it is a session":     func(x *consolidation) { x.change("c", func(t *Terms) { t.Session = "shell" }) },
		"it would be late": func(x *consolidation) {
			x.change("c", func(t *Terms) { t.Deadline = agentsStart.Add(10*time.Hour + 10*time.Minute) })
		},
		"its wall clock ends": func(x *consolidation) { x.change("c", func(t *Terms) { t.WallClock = 10*time.Hour + 30*time.Minute }) },
		"its budget has no room": func(x *consolidation) {
			x.change("c", func(t *Terms) { t.Budget, t.HasBudget = money.Picos(9.5e12), true })
		},
		"the restart is long":                  func(x *consolidation) { x.change("c", func(t *Terms) { t.Restart = 9 * time.Hour }) },
		"its neighbour leaves soon":            func(x *consolidation) { x.change("b", func(t *Terms) { t.Work = 65 * time.Minute }) },
		"its neighbour's end is open":          func(x *consolidation) { x.change("b", func(t *Terms) { t.Work = 0 }) },
		"the machine beside is dearer":         func(x *consolidation) { x.beside = 3e12 },
		"no room beside":                       func(x *consolidation) { x.change("b", func(t *Terms) { t.Need.CPUs = 6 }) },
		"the machine beside is another user's": func(x *consolidation) { x.stranger = "user:ann" },
	} {
		x := newConsolidation(t)
		change(x)
		if list := x.run(); len(list) > 0 {
			t.Errorf("%s: consolidated %+v", name, list)
		}
	}
	if list := newConsolidation(t).run(); len(list) != 1 {
		t.Errorf("without any of it: consolidated %+v", list)
	}
}

// The job that moved stays until the move is earned, also if its new machine is then its own and another has room. After
// that it moves again. With the planted fault it moves at once.
func TestConsolidate_MovesAgainOnlyOnceMoveIsEarned(t *testing.T) {
	for _, fault := range []bool{false, true} {
		x := newConsolidation(t)
		x.faults.Restless = fault
		x.change("b", func(t *Terms) { t.Work = 40 * time.Hour })
		x.change("c", func(t *Terms) { t.Work = 40 * time.Hour })
		first := x.run()
		if len(first) == 0 {
			t.Fatal("c does not move")
		}
		x.step(0, AttemptEnded{Attempt: "c.1", Message: 3, Reason: "drained", Exit: 143, Saved: true})
		x.step(0, InstanceEnded{Instance: "ia", Until: agentsStart.Add(x.at), Cause: "terminated"})
		if x.on("c") != "ib" {
			t.Fatalf("c is on %q", x.on("c"))
		}
		x.begins("c.2")
		x.terms["d"] = x.terms["b"]
		if x.begin("d"); x.on("d") != "id" {
			t.Fatalf("d is on %q", x.on("d"))
		}
		save := func(after time.Duration) []state.DrainRequested {
			return x.moved(x.step(after, CheckpointSaved{Attempt: "c.2", Message: int64(x.at+after) + 9, Captured: agentsStart.Add(x.at + after), Step: 2}))
		}
		early := save(time.Minute)
		x.step(0, AttemptEnded{Attempt: "b.1", Message: 9, Reason: "completed"})
		early = append(early, x.gone("b.1")...)
		early = append(early, save(time.Minute)...)
		if fault {
			if len(early) == 0 {
				t.Error("the planted fault moves nobody")
			}
			continue
		}
		if !agentsStart.Add(x.at).Before(first[0].Rests) {
			t.Fatal("the test took longer than the move needs to be earned")
		}
		if len(early) > 0 {
			t.Fatalf("it moves again before %v: %+v", first[0].Rests, early)
		}
		if late := save(first[0].Rests.Sub(agentsStart.Add(x.at))); len(late) != 1 {
			t.Errorf("once the move is earned it moves %d times", len(late))
		}
	}
}

// No consolidation costs more than it saves in expectation, whatever the work, restarts, prices and checkpoints are. The
// planted fault breaks that.
func TestConsolidate_NeverCostsMoreThanItSaves(t *testing.T) {
	moves, broken := 0, 0
	for seed := range uint64(600) {
		rng := rand.New(rand.NewPCG(seed, 7))
		some := func(most time.Duration) time.Duration { return time.Duration(1 + rng.Int64N(int64(most))) }
		x := newConsolidation(t)
		x.faults.Restless = seed%2 == 1
		x.ran = some(2 * time.Hour)
		x.saved = time.Duration(rng.Int64N(int64(x.ran)))
		x.beside = money.Rate(2e11 + rng.Int64N(3e12))
		x.change("c", func(t *Terms) { t.Work, t.Restart = x.ran+some(5*time.Hour), some(time.Hour) })
		x.change("b", func(t *Terms) { t.Work = x.ran + some(5*time.Hour) })
		for _, f := range x.run() {
			kept := x.ran - x.saved
			c, b := x.terms["c"], x.terms["b"]
			lost := x.at - kept
			stay := (c.Work - kept - lost).Hours()
			seat := (c.Work - kept + c.Restart).Hours()
			shared := min(seat, (b.Work - kept - lost).Hours())
			rate := x.beside.Float()
			cost := shared*rate*3/8 + (seat-shared)*rate
			switch {
			case cost <= stay*1+1e-6:
			case !x.faults.Restless:
				t.Errorf("seed %d: staying costs $%.3f and moving $%.3f: %+v", seed, stay, cost, f)
			default:
				broken++
			}
			moves++
		}
	}
	if moves < 50 || broken == 0 {
		t.Errorf("%d moves, and with the planted fault %d cost more than they save", moves, broken)
	}
}

// While c saves, its seat beside b is kept for it: a job that comes then gets a machine of its own. Once c is cancelled,
// paused or too late, the other gets the seat. The planted fault lets it take the seat at once.
func TestConsolidate_KeepsSeatWhileJobSaves(t *testing.T) {
	for name, c := range map[string]struct {
		happens func(*consolidation)
		fault   bool
		takes   bool // the other job takes the seat
	}{
		"c saves":           {happens: func(*consolidation) {}},
		"the planted fault": {happens: func(*consolidation) {}, fault: true, takes: true},
		"c is cancelled":    {happens: func(x *consolidation) { x.step(0, JobEnded{Job: "c", Save: true}) }, takes: true},
		"c is paused":       {happens: func(x *consolidation) { x.step(0, JobPaused{Job: "c"}) }, takes: true},
		"c is too late": {happens: func(x *consolidation) {
			x.at += time.Hour
		}, takes: true},
	} {
		x := newConsolidation(t)
		x.faults.Unkept = c.fault
		if len(x.run()) != 1 {
			t.Fatalf("%s: c does not move", name)
		}
		c.happens(x)
		x.terms["d"] = x.terms["c"]
		x.begin("d")
		if x.on("d") == "ib" != c.takes {
			t.Errorf("%s: d is on %q", name, x.on("d"))
		}
		if name == "c saves" {
			x.step(time.Second, AttemptEnded{Attempt: "c.1", Message: 3, Reason: "drained", Exit: 143, Saved: true})
			if x.on("c") != "ib" {
				t.Errorf("c is on %q", x.on("c"))
			}
			x.terms["e"] = x.terms["a"] // the keep is over: the seat is c's
			if x.begin("e"); x.on("e") == "ib" {
				t.Error("e is beside b and c")
			}
		}
	}
}

// A job that waits for the part kept for c gets it when the keep ends, at a time that the core asks for, also after a
// restart. Nothing else is for sale, and e has the rest of the machine that c leaves.
func TestConsolidate_EndOfKeepWakesWaitingJob(t *testing.T) {
	for name, c := range map[string]struct {
		ends    Body
		restart bool
	}{
		"c saves and is cancelled":       {ends: JobEnded{Job: "c", Save: true}},
		"c saves and is paused":          {ends: JobPaused{Job: "c"}},
		"c saves and a search pauses it": {ends: JobPaused{Job: "c", Cause: PausedBySearch}},
		"c is too late":                  {ends: Tick{}},
		"a restart, and c is too late":   {ends: Tick{}, restart: true},
	} {
		x := newConsolidation(t)
		if len(x.run()) != 1 {
			t.Fatalf("%s: c does not move", name)
		}
		x.step(0, MarketSeen{Quotes: []market.Quote{{Offer: "p/z/m/on-demand", Rate: 1e12, Priced: true, At: agentsStart.Add(x.at)}}})
		x.terms["e"], x.terms["d"] = x.terms["a"], x.terms["c"]
		x.begin("e")
		x.step(0, JobSubmitted{Job: "d", Terms: x.terms["d"]})
		if d, _ := x.Job("d"); x.on("e") != "ia" || d.State() != Queued {
			t.Fatalf("%s: d is %s on %q and e is on %q while the part is kept", name, d.State(), x.on("d"), x.on("e"))
		}
		if c.restart {
			again, err := Restore(snap(t, x.Machine))
			must.Do(t, err)
			x.Machine = again
		}
		by := x.State().Instance("ib").Keeps()[0].By
		out := x.step(0, c.ends)
		for n := 0; n < 20 && x.on("d") == "" && !out.Wake.IsZero() && !out.Wake.After(by); n++ {
			out = x.step(max(0, out.Wake.Sub(agentsStart.Add(x.at))), Tick{})
		}
		if x.on("d") != "ib" {
			t.Errorf("%s: d is on %q", name, x.on("d"))
		}
	}
}

// b ends while c saves, and nobody else is on ib. The machine stays for c, also if its engine keeps no idle machines,
// and c takes it without a launch. Once c no longer comes, the machine is terminated in the same step. What all jobs and
// idle time cost is what the machines cost.
func TestConsolidate_MachineStaysForItsKeptSeat(t *testing.T) {
	completes := func(x *consolidation) {
		x.step(time.Second, AttemptEnded{Attempt: "b.1", Message: 9, Reason: "completed"})
	}
	cancelled := func(x *consolidation) { x.step(time.Second, JobEnded{Job: "b"}) }
	gone := func(x *consolidation) { cancelled(x); x.step(time.Second, TaskGone{Attempt: "b.1"}) }
	comes := func(x *consolidation) Outcome {
		x.step(time.Second, MachineCleaned{Instance: "ib"})
		return x.step(time.Second, AttemptEnded{Attempt: "c.1", Message: 3, Reason: "drained", Exit: 143, Saved: true})
	}
	late := func(x *consolidation) (out Outcome) {
		out.Wake = agentsStart.Add(x.at)
		for by := x.State().Instance("ib").Keeps()[0].By; x.State().Instance("ib").Release() == "" && !out.Wake.After(by); {
			if out = x.step(max(0, out.Wake.Sub(agentsStart.Add(x.at))), Tick{}); out.Wake.IsZero() {
				break
			}
		}
		return out
	}
	cancels := func(x *consolidation) Outcome { return x.step(time.Second, JobEnded{Job: "c", Save: true}) }
	pauses := func(x *consolidation) Outcome { return x.step(time.Second, JobPaused{Job: "c"}) }
	for name, c := range map[string]struct {
		leaves  func(*consolidation)
		then    func(*consolidation) Outcome
		idle    time.Duration // longest wait of the engine
		limits  []budget.Limit
		restart bool
		takes   bool
	}{
		"b completes and c comes":                  {leaves: completes, then: comes, takes: true},
		"b completes, a restart, and c comes":      {leaves: completes, then: comes, restart: true, takes: true},
		"b completes, idle machines wait, c comes": {leaves: completes, then: comes, idle: time.Hour, takes: true},
		"b is cancelled and c comes":               {leaves: gone, then: comes, takes: true},
		"b completes and c is cancelled":           {leaves: completes, then: cancels},
		"b completes and c is paused":              {leaves: completes, then: pauses},
		"b completes and c is too late": {leaves: func(x *consolidation) {
			completes(x)
			x.step(time.Second, MachineCleaned{Instance: "ib"})
		}, then: late},
		"b completes, a restart, and c is too late": {leaves: func(x *consolidation) {
			completes(x)
			x.step(time.Second, MachineCleaned{Instance: "ib"})
		}, then: late, restart: true},
		"b is cancelled and c too": {leaves: gone, then: cancels},
		"b completes, and no limit has room for idle time": {
			leaves: completes,
			then:   func(*consolidation) Outcome { return Outcome{} },
			limits: []budget.Limit{{Scope: budget.All, Window: budget.Total, Dollars: new(money.Picos(2e12))}},
		},
	} {
		x := newConsolidation(t)
		x.idle = c.idle
		if len(x.run()) != 1 {
			t.Fatalf("%s: c does not move", name)
		}
		if len(c.limits) > 0 {
			x.step(0, BudgetsSet{Rules: budget.Rules{Limits: c.limits}})
		}
		c.leaves(x)
		if c.restart {
			again, err := Restore(snap(t, x.Machine))
			must.Do(t, err)
			x.Machine = again
		}
		out := c.then(x)
		c1, _ := x.Job("c")
		ib := x.State().Instance("ib")
		switch {
		case c.takes && (x.on("c") != "ib" || launches(out) > 0 || c1.Last().Why != plan.Warm):
			t.Errorf("%s: c is on %q after %d launches: %+v", name, x.on("c"), launches(out), c1.Last())
		case !c.takes && ib.Release() == "":
			t.Errorf("%s: nobody comes, and the machine is not terminated", name)
		case !c.takes && c.limits == nil && ib.Release() != "idle":
			t.Errorf("%s: the machine did not stay: %s", name, ib.Release())
		}
		if c.takes {
			x.begins("c.2")
			x.step(time.Hour, AttemptEnded{Attempt: "c.2", Message: 4, Reason: "completed"})
		}
		x.step(time.Second, AttemptEnded{Attempt: "c.1", Message: 5, Reason: "drained", Exit: 143, Saved: true})
		x.step(time.Hour, Tick{})
		var cost money.Amount
		for _, i := range []string{"ia", "ib"} {
			x.step(0, InstanceEnded{Instance: i, Until: agentsStart.Add(x.at), Cause: "terminated"})
			cost = cost.Add(hour(x.at))
		}
		for _, part := range x.cost {
			cost = cost.Sub(part)
		}
		if !cost.IsZero() {
			t.Errorf("%s: %v of what the machines cost is not posted: %v", name, cost, x.cost)
		}
		if idle := x.State().Instance("ib"); idle != nil && idle.Live() {
			t.Errorf("%s: the machine is rented still", name)
		}
	}
}

// The machine of c is interrupted while c saves, so its rung of the ladder rests, but not the seat that is kept for c.
func TestConsolidate_KeptSeatIsTakenWhileItsRungRests(t *testing.T) {
	x := newConsolidation(t)
	x.capacity = market.Spot
	x.change("c", func(t *Terms) {
		t.Need.Ladder = []plan.Rung{{Capacity: []market.Capacity{market.Spot}, Failures: 1, For: time.Hour}}
	})
	if len(x.run()) != 1 {
		t.Fatal("c does not move")
	}
	x.step(time.Second, InstanceEnded{Instance: "ia", Until: agentsStart.Add(x.at), Cause: "interrupted"})
	c, _ := x.Job("c")
	if list := c.Fallback(); len(list) != 1 || !list[0].Rests.After(agentsStart.Add(x.at)) {
		t.Fatalf("its rung does not rest: %+v", list)
	}
	if x.on("c") != "ib" {
		t.Errorf("c is %s on %q: %+v", c.State(), x.on("c"), c.Last())
	}
}
