package core

import (
	"slices"
	"strings"
	"testing"
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// warmRig is a core on whose instance i1 the program of job j has run for ten minutes at $1 per hour. A start takes
// a minute.
type warmRig struct {
	*Machine
	t    *testing.T
	at   time.Duration
	cost map[string]money.Amount // by job, or by idle span
	most money.Amount            // budget of each job
}

func newWarm(t *testing.T, change func(*Config), limits ...budget.Limit) *warmRig {
	t.Helper()
	return newWarmWith(t, 0, change, limits...)
}

// newWarmWith is newWarm with a minimum charge.
func newWarmWith(t *testing.T, minimum time.Duration, change func(*Config), limits ...budget.Limit) *warmRig {
	t.Helper()
	w := &warmRig{Machine: New(), t: t, cost: map[string]money.Amount{}, most: money.Picos(2e12)}
	cfg := DefaultConfig()
	cfg.Idle = time.Hour
	if change != nil {
		change(&cfg)
	}
	spot := market.Offer{ID: "p/z/m/on-demand", Provider: "p", Zone: "z", Machine: "m", Capacity: market.OnDemand, CPUs: 1, Speed: 1, Currency: money.USD,
		Billing: market.Billing{Minimum: minimum}}
	w.step(0, Configured{Config: cfg})
	if len(limits) > 0 {
		w.most = *limits[0].Dollars
		w.step(0, BudgetsSet{Rules: budget.Rules{Limits: limits}})
	}
	w.step(0, MarketSeen{Offers: []market.Offer{spot}, Quotes: []market.Quote{{Offer: spot.ID, Rate: 1e12, Priced: true, Available: true, At: agentsStart}}})
	w.submit("j", "")
	w.step(0, LaunchDone{Launch: "j.1", Instance: "i1", Offer: spot.ID, Rate: 1e12, From: agentsStart})
	w.step(0, MachineRegistered{Instance: "i1", Allocation: "j.1", Key: "k"})
	w.step(time.Minute, Tick{})
	w.run("j.1", 9*time.Minute, "completed")
	return w
}

func (w *warmRig) step(after time.Duration, b Body) Outcome { return w.by("", after, b) }

func (w *warmRig) by(actor string, after time.Duration, b Body) Outcome {
	w.at += after
	out := w.Step(Event{At: agentsStart.Add(w.at), Schema: Schema, Tenant: "t", Actor: actor, Body: b})
	for _, p := range out.Postings {
		name := p.Owner.Job
		if name == "" {
			name = p.Owner.Task
		}
		w.cost[name] = w.cost[name].Add(state.CostOf(p))
	}
	return out
}

func (w *warmRig) submit(job, actor string) Outcome {
	return w.by(actor, 0, JobSubmitted{Job: job, Terms: Terms{Name: job, Currency: money.USD, Steps: 100, Priority: 1, Restart: time.Minute,
		Owner: ledger.Owner{Team: "vision"}, Budget: w.most, HasBudget: true}})
}

// run runs a program for a while and ends it.
func (w *warmRig) run(attempt string, span time.Duration, reason string) Outcome {
	w.step(0, AgentClaimed{Attempt: attempt})
	w.step(0, AttemptStarted{Attempt: attempt})
	return w.step(span, AttemptEnded{Attempt: attempt, Reason: reason})
}

func (w *warmRig) is(name string, want money.Amount) {
	w.t.Helper()
	if w.cost[name] != want {
		w.t.Errorf("%s cost %v, want %v", name, w.cost[name], want)
	}
}

// waits reports whether i1 has no task and is not being released.
func (w *warmRig) waits() bool {
	i := w.State().Instance("i1")
	if i == nil || !i.Live() {
		return false
	}
	_, idle := i.Idle()
	return idle && i.Release() == ""
}

func launches(out Outcome) (n int) {
	for _, a := range out.Actions {
		if _, ok := a.(Launch); ok {
			n++
		}
	}
	return n
}

func hour(d time.Duration) money.Amount { return money.Rate(1e12).Until(d) }

// Releasing a machine ends it only if it is idle. Machines with a task, and unknown ones, stay.
func TestMachineReleased_EndsAnIdleMachineAlone(t *testing.T) {
	w := newWarm(t, nil)
	w.step(0, MachineCleaned{Instance: "i1"})
	w.step(0, MachineReleased{Instance: "i-unknown"})
	if w.State().Instance("i1").Release() != "" {
		t.Error("another machine was released")
	}
	w.step(0, MachineReleased{Instance: "i1"})
	if why := w.State().Instance("i1").Release(); why != "asked" {
		t.Errorf("released: %q", why)
	}
	w.step(time.Minute, InstanceEnded{Instance: "i1", Until: agentsStart.Add(w.at + time.Minute), Cause: "terminated"})
	w.step(0, MachineReleased{Instance: "i1"})

	busy := newWarm(t, nil)
	busy.step(10*time.Second, MachineCleaned{Instance: "i1"})
	busy.submit("k", "")
	busy.step(0, MachineReleased{Instance: "i1"})
	if why := busy.State().Instance("i1").Release(); why != "" {
		t.Errorf("a machine with a job was released: %q", why)
	}
}

// The next job of the same user takes the waiting machine without another launch. Each job pays for its own time,
// and their owner pays for the time between. The parts of the bill add up to the whole.
func TestWarm_NextJobTakesTheWaitingMachine(t *testing.T) {
	w := newWarm(t, nil)
	j, _ := w.Job("j")
	if !w.waits() || j.State() != Succeeded || j.Costs() || w.Quiet() {
		t.Fatalf("it waits: %v; job j is %s and costs %v", w.waits(), j.State(), j.Costs())
	}
	w.step(10*time.Second, MachineCleaned{Instance: "i1"})
	out := w.submit("k", "")
	k, _ := w.Job("k")
	if launches(out) != 0 || k.State() != Running || k.Attempt() == nil || k.Attempt().Instance() != "i1" || !k.Attempt().Warm() {
		t.Fatalf("job k is %s, %d launches, %+v", k.State(), launches(out), k.Attempt())
	}
	if d := k.Last(); d.Why != plan.Warm || d.Instance != "i1" || d.Take != "p/z/m/on-demand" {
		t.Errorf("it was decided: %+v", d)
	}
	if tasks := w.market.Tasks(w.State().Instance("i1")); len(tasks) != 1 || tasks[0].Attempt().ID() != "k.1" {
		t.Errorf("the machine's tasks are %v", tasks)
	}
	w.run("k.1", 5*time.Minute, "completed")
	if !w.waits() {
		t.Fatal("it does not wait a second time")
	}
	out = w.step(time.Minute, Tick{})
	if w.waits() || !slices.ContainsFunc(out.Actions, func(a Action) bool { return a.Kind() == "terminate" }) {
		t.Fatalf("after as long as a start takes it is kept: %v", out.Actions)
	}
	w.step(5*time.Second, InstanceEnded{Instance: "i1", Until: agentsStart.Add(w.at).Add(5 * time.Second), Cause: "terminated"})
	w.is("j", hour(10*time.Minute))
	w.is("k", hour(910*time.Second).Sub(hour(610*time.Second)))
	w.is("i1/idle.1", hour(610*time.Second).Sub(hour(600*time.Second)))
	w.is("i1/idle.2", hour(975*time.Second).Sub(hour(910*time.Second)))
	if !w.Quiet() {
		t.Error("something is rented still")
	}

	bill := BillReceived{Instance: "i1", Launch: "j.1", Lines: []BillLine{{Amount: hour(w.at).Add(money.Picos(7)), Currency: money.USD},
		{Rule: "tax", Amount: money.Picos(100), Currency: money.USD}}}
	for range 2 { // a repeated bill changes nothing
		w.step(time.Hour, bill)
		all := money.Amount{}
		for _, c := range w.cost {
			all = all.Add(c)
		}
		if want := hour(975 * time.Second).Add(money.Picos(107)); all != want {
			t.Errorf("in all %v was booked, and the bill is %v: %v", all, want, w.cost)
		}
	}
	before := w.cost["i1/idle.1"]
	bill.Lines[1].Amount = money.Picos(-975e6) // a credit of a millionth of a dollar per second
	w.step(0, bill)
	w.is("i1/idle.1", before.Sub(money.Picos(10e6)))
}

// Some jobs do not get the machine: that of another user, one that would pay more for it than for a new one, and
// any before the machine is known to be clean.
func TestWarm_RefusesTheWrongJobs(t *testing.T) {
	for name, c := range map[string]struct {
		before func(*warmRig)
		actor  string
		want   bool
	}{
		"another user's job":   {actor: "user:bob"},
		"before it is clean":   {before: func(w *warmRig) { w.step(0, Tick{}) }},
		"after it is released": {before: func(w *warmRig) { w.step(0, MachineCleaned{Instance: "i1"}); w.step(time.Minute, Tick{}) }},
		"when its price is four times that of others": {before: func(w *warmRig) {
			w.step(0, MachineCleaned{Instance: "i1"})
			cheap := market.Offer{ID: "p/y/m/on-demand", Provider: "p", Zone: "y", Machine: "m", Capacity: market.OnDemand, CPUs: 1, Speed: 1, Currency: money.USD}
			w.step(0, MarketSeen{Offers: []market.Offer{cheap}, Quotes: []market.Quote{{Offer: cheap.ID, Rate: 2e11, Priced: true, Available: true, At: agentsStart.Add(w.at)}}})
		}, want: false},
		"when it is as it should be": {before: func(w *warmRig) { w.step(0, MachineCleaned{Instance: "i1"}) }, want: true},
	} {
		w := newWarm(t, nil)
		if c.before != nil {
			c.before(w)
		}
		w.submit("k", c.actor)
		k, _ := w.Job("k")
		if got := k.Attempt() != nil && k.Attempt().Instance() == "i1"; got != c.want {
			t.Errorf("%s: it got it: %v", name, got)
		}
		if name == "before it is clean" {
			if k.Last().Why != plan.Cleaning || k.Asked() != nil {
				t.Errorf("it does not wait for the machine to be cleaned: %+v", k.Last())
			}
			w.step(time.Second, MachineCleaned{Instance: "i1"})
			if k.Attempt() == nil || k.Attempt().Instance() != "i1" {
				t.Errorf("clean, and not taken: %+v", k.Last())
			}
		}
	}
}

// A job that waits for a cleanup gets another machine if the cleanup takes too long.
func TestWarm_DoesNotWaitForALongCleanup(t *testing.T) {
	w := newWarm(t, nil)
	w.submit("k", "")
	out := w.step(DefaultConfig().Detect+time.Second, Tick{})
	if launches(out) != 1 {
		k, _ := w.Job("k")
		t.Errorf("%d launches: %+v", launches(out), k.Last())
	}
}

// A machine waits only if its team's budget has room and its engine allows it. A spent limit ends a waiting
// machine.
func TestWarm_NeedsAHold(t *testing.T) {
	limit := func(dollars money.Amount) budget.Limit {
		return budget.Limit{Scope: "team:vision", Window: budget.Day, Dollars: &dollars}
	}
	if w := newWarm(t, func(c *Config) { c.Idle = 0 }); w.waits() {
		t.Error("it waits, and the engine says that none does")
	}
	if w := newWarm(t, nil, limit(money.Picos(2e12))); !w.waits() {
		t.Error("it does not wait, and there is room")
	}
	held := func(w *warmRig) (sum money.Amount) {
		books, _ := w.admission.Books(agentsStart.Add(w.at))
		for _, l := range books.Live {
			sum = sum.Add(l.Most)
		}
		return sum
	}
	// The time paid for anyway is held; the possible cost beyond it yields to jobs that need the room.
	if w := newWarmWith(t, 15*time.Minute, nil, limit(money.Picos(2e12))); held(w) != hour(5*time.Minute) {
		t.Errorf("held is %v, want %v", held(w), hour(5*time.Minute))
	}
	full := newWarmWith(t, 15*time.Minute, nil, limit(money.Picos(2e12)))
	full.most = money.Picos(1.8e12) // of the remaining 1.83, 0.08 are held
	no := full.admission.Refuses(Event{At: agentsStart.Add(full.at), Schema: Schema, Tenant: "t", Body: JobSubmitted{Job: "k", Terms: Terms{Name: "k",
		Currency: money.USD, Owner: ledger.Owner{Team: "vision"}, Budget: full.most, HasBudget: true}}})
	if no == nil || no.Limit == nil || !strings.Contains(no.Limit.Fix, "$0.0833 of what is held is for 1 machine waiting for a job") {
		t.Errorf("a job for which there is no room is told %+v", no)
	}
	w := newWarm(t, nil, limit(money.Picos(2e12)))
	if !held(w).IsZero() {
		t.Errorf("held is %v for nothing that is paid", held(w))
	}
	w.step(time.Second, MachineCleaned{Instance: "i1"})
	w.most = money.Picos(2e12).Sub(hour(10*time.Minute + time.Second)) // all that remains
	w.by("user:bob", 0, JobSubmitted{Job: "k", Terms: Terms{Name: "k", Currency: money.USD, Steps: 100, Owner: ledger.Owner{Team: "vision"},
		Budget: w.most, HasBudget: true}})
	if k, ok := w.Job("k"); !ok || k.State().Over() || w.waits() {
		t.Errorf("a job that needs the room of the machine that waits: let in %v, and it waits %v", ok, w.waits())
	}
	// The limit has no room for another minute: the job itself may spend all of it.
	if w := newWarm(t, nil, limit(hour(10*time.Minute+30*time.Second))); w.waits() || w.cost["j"] != hour(10*time.Minute) {
		t.Error("it waits, and its team has no room for that")
	}
	w.step(0, BudgetsSet{Rules: budget.Rules{Limits: []budget.Limit{limit(money.Picos(1))}}, AsOf: w.Seq(),
		Base: map[string]state.Spent{limit(money.Amount{}).Name(): {Begin: agentsStart, Amount: money.Picos(2)}}})
	w.step(time.Second, Tick{})
	if w.waits() {
		t.Error("all of the limit is spent, and it waits")
	}
}

// If the next job came late three times, or never, the machine is released at once. If it came soon, the machine
// waits just that long.
func TestWarm_LearnsHowLongToWait(t *testing.T) {
	w := newWarm(t, nil)
	for n := range 3 {
		name := string(rune('a' + n))
		w.step(10*time.Minute, Tick{}) // i1 is released
		if n == 0 {
			w.step(0, InstanceEnded{Instance: "i1", Until: agentsStart.Add(w.at), Cause: "terminated"})
		}
		w.submit(name, "")
		w.step(0, LaunchDone{Launch: name + ".1", Instance: "i" + name, Offer: "p/z/m/on-demand", Rate: 1e12, From: agentsStart.Add(w.at)})
		w.step(0, MachineRegistered{Instance: "i" + name, Allocation: name + ".1", Key: "k"})
		w.step(time.Minute, Tick{})
		w.run(name+".1", time.Minute, "completed")
	}
	if i := w.State().Instance("ic"); i == nil || i.Release() == "" {
		t.Errorf("gaps of %v, and it waits", w.State().Gaps(Owner))
	}
}

// The extra cost of a minimum charge belongs to the owner of the machine at its end, not to a finished job.
func TestWarm_FinishedJobPaysNoMinimum(t *testing.T) {
	w := newWarmWith(t, time.Hour, nil)
	w.step(10*time.Second, MachineCleaned{Instance: "i1"})
	w.step(20*time.Second, InstanceEnded{Instance: "i1", Until: agentsStart.Add(w.at).Add(20 * time.Second), Cause: "stopped"})
	rest := hour(time.Hour).Sub(hour(630 * time.Second))
	w.step(time.Minute, BillReceived{Instance: "i1", Launch: "j.1", Lines: []BillLine{{Amount: hour(630 * time.Second), Currency: money.USD},
		{Rule: "minimum", Amount: rest, Currency: money.USD}}})
	w.is("j", hour(10*time.Minute))
	w.is("i1/idle.1", hour(time.Hour).Sub(hour(10*time.Minute)))
}

// A credit gives each owner back what the bill charged them, and no more: the finished job its seconds, the idle span
// its seconds and the minimum charge.
func TestWarm_CreditGivesBackWhatWasCharged(t *testing.T) {
	w := newWarmWith(t, time.Hour, nil)
	w.step(10*time.Second, MachineCleaned{Instance: "i1"})
	w.step(20*time.Second, InstanceEnded{Instance: "i1", Until: agentsStart.Add(w.at).Add(20 * time.Second), Cause: "interrupted"})
	seconds := hour(630 * time.Second)
	rest := hour(time.Hour).Sub(seconds)
	credit := money.Amount{}.Sub(hour(time.Hour)).Add(money.Picos(1000))
	w.step(time.Minute, BillReceived{Instance: "i1", Launch: "j.1", Lines: []BillLine{
		{Rule: "interrupted-early", Amount: credit, Currency: money.USD}, {Amount: seconds, Currency: money.USD},
		{Rule: "minimum", Amount: rest, Currency: money.USD}}})
	job := w.cost["j"].Big().Int64() // the job had the machine for 600 s of the hour that it is charged for
	if job < 166 || job > 167 || w.cost["j"].Add(w.cost["i1/idle.1"]) != money.Picos(1000) {
		t.Errorf("the job pays %v, the idle span %v, of %v", w.cost["j"], w.cost["i1/idle.1"], money.Picos(1000))
	}
}

// A machine that is not known to be clean is released. So is one that was to wait when its engine stops allowing
// it.
func TestWarm_ReleasesAnUnusableMachine(t *testing.T) {
	w := newWarmWith(t, time.Hour, nil)
	w.step(DefaultConfig().Detect+DefaultConfig().Patience, Tick{})
	if w.waits() {
		t.Error("nobody has shown that it is clean, and it waits")
	}
	w = newWarmWith(t, time.Hour, nil)
	w.step(time.Second, MachineCleaned{Instance: "i1"})
	w.step(time.Second, Configured{Config: DefaultConfig()})
	if w.waits() {
		t.Error("no machine is to wait, and it does")
	}
}

// The waiting time depends on the machine's first start, even after a warm one.
func TestWarm_StartKeepsTheLearnedStartTime(t *testing.T) {
	w := newWarm(t, nil)
	w.step(time.Second, MachineCleaned{Instance: "i1"})
	w.by("", 0, JobSubmitted{Job: "k", Terms: Terms{Name: "k", Currency: money.USD, Steps: 100, Restart: time.Hour}})
	w.run("k.1", time.Minute, "completed")
	idle, ok := w.State().Instance("i1").Idle()
	if want := agentsStart.Add(w.at).Add(time.Minute); !ok || !idle.Keep.Equal(want) {
		t.Errorf("it is kept until %v, want %v", idle.Keep, want)
	}
}

// A machine ends while it waits, or had ended unnoticed before a job took it. Each still pays for its own time, and
// the sum is the cost of the machine.
func TestWarm_MachineEndsWhileItWaits(t *testing.T) {
	w := newWarm(t, nil)
	w.step(30*time.Second, InstanceEnded{Instance: "i1", Until: agentsStart.Add(w.at).Add(20 * time.Second), Cause: "interrupted"})
	w.is("j", hour(10*time.Minute))
	w.is("i1/idle.1", hour(620*time.Second).Sub(hour(600*time.Second)))

	w = newWarm(t, nil)
	w.step(10*time.Second, MachineCleaned{Instance: "i1"})
	w.submit("k", "")
	w.step(time.Second, InstanceEnded{Instance: "i1", Until: agentsStart.Add(w.at).Add(-5 * time.Second), Cause: "interrupted"})
	w.is("j", hour(10*time.Minute))
	w.is("i1/idle.1", hour(605*time.Second).Sub(hour(600*time.Second)))
	w.is("k", money.Amount{})
	if k, _ := w.Job("k"); k.Live() != nil || k.Asked() == nil {
		t.Errorf("job k is %s and asks for no other machine", k.State())
	}
}

// The expected cost of a window includes the paid time of a waiting machine.
func TestWarm_CountsInTheExpectedCost(t *testing.T) {
	w := newWarmWith(t, 15*time.Minute, nil)
	list, _, _ := w.decider.Courses(agentsStart.Add(w.at), 10)
	if len(list) != 1 || list[0].ID != "i1" || list[0].Lasts != 6*time.Minute || list[0].Rate != 1e12 || list[0].Owner.Team != "vision" {
		t.Errorf("expected is %+v: five minutes that are paid, and a start", list)
	}
}
