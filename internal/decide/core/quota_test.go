package core_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/test/must"
	_ "scrimp/internal/test/sameseed"
	"scrimp/internal/work/propose"
)

var waiting = flag.Int("waiting", 1_000_000, "how many jobs wait in the benchmark of quotas")

func ptr[T any](v T) *T { return &v }

// yard is a machine with unlimited on-demand capacity and no faults.
type yard struct {
	t    testing.TB
	m    *core.Machine
	now  time.Time
	log  []written
	runs map[string]string // attempt by job
	// launched is called with each launched job after the step.
	launched func(job string)
	// lasts is set if no machine ends when it is terminated: the test ends it.
	lasts bool
	rates map[market.OfferID]money.Rate // of the machines; the others cost $1 an hour
}

// rate is the price an hour of a machine.
func (y *yard) rate(o market.OfferID) money.Rate { return cmp.Or(y.rates[o], 1e12) }

func newYard(t testing.TB, places int, offers ...market.Offer) *yard {
	y := &yard{t: t, m: core.New(), now: time.Date(2026, 11, 2, 0, 0, 0, 0, time.UTC), runs: map[string]string{}} // a Monday
	cfg := core.DefaultConfig()
	cfg.MaxRunning = places
	y.step("", core.Configured{Config: cfg})
	seen := core.MarketSeen{}
	if len(offers) == 0 {
		offers = []market.Offer{yardOffer("m", 0)}
	}
	for _, o := range offers {
		seen.Offers = append(seen.Offers, o)
		seen.Quotes = append(seen.Quotes, market.Quote{Offer: o.ID, Rate: 1e12, Priced: true, Available: true, At: y.now})
	}
	y.step("", seen)
	return y
}

func yardOffer(name string, gpus int) market.Offer {
	o := market.Offer{Provider: "p", Region: "r", Zone: "z", Machine: name, Capacity: market.OnDemand, CPUs: 4, Accelerators: gpus, Speed: 1, Currency: money.USD}
	if gpus > 0 {
		o.Accelerator = "H100"
	}
	o.ID = market.ID(o)
	return o
}

// written is an event with its results.
type written struct {
	event core.Event
	out   core.Outcome
}

// step applies b now, and answers launches at once.
func (y *yard) step(actor string, b core.Body) {
	e := core.Event{At: y.now, Schema: core.Schema, Tenant: "t", Actor: actor, Body: b}
	out := y.m.Step(e)
	if !out.Nothing {
		y.log = append(y.log, written{e, out})
	}
	for _, a := range out.Actions {
		switch a := a.(type) {
		case core.Launch:
			y.runs[a.Job] = a.Allocation
			if y.launched != nil {
				y.launched(a.Job)
			}
			y.step("", core.LaunchDone{Launch: a.Allocation, Instance: "i-" + a.Allocation, Offer: a.Offer, Rate: y.rate(a.Offer), From: y.now})
			y.step("", core.AttemptStarted{Attempt: a.Allocation, Message: 1})
		case core.Propose:
			s, _ := y.m.GroupSnapshot(a.Group)
			y.step("", core.Proposed{Group: a.Group, Base: s.Base, Moves: propose.Moves(s)})
		case core.Terminate:
			if y.lasts {
				continue
			}
			y.step("", core.InstanceEnded{Instance: a.Instance, Until: y.now, Cause: "terminated"})
		}
	}
}

func (y *yard) tick(d time.Duration) { y.now = y.now.Add(d); y.step("", core.Tick{}) }

func (y *yard) submit(id, team, user string, change func(*core.Terms)) {
	t := core.Terms{Name: id, Currency: money.USD, Priority: 1, Restart: time.Minute, Owner: ledger.Owner{Team: team}}
	if change != nil {
		change(&t)
	}
	y.step("user:"+user, core.JobSubmitted{Job: id, Terms: t})
}

func (y *yard) rules(limits ...budget.Limit) {
	for i := range limits {
		if limits[i].Window == "" {
			limits[i].Window = budget.Day
		}
		must.Do(y.t, limits[i].Check())
	}
	y.step("", core.BudgetsSet{Rules: budget.Rules{Limits: limits}})
}

func (y *yard) end(id string) {
	y.step("", core.AttemptEnded{Attempt: y.runs[id], Message: 9, Reason: "completed"})
}

// states returns one letter per job in the order of submission: R for running, q for queued, w for waiting for a
// quota, h for held, - for finished.
func (y *yard) states() string {
	var b strings.Builder
	for j := range y.m.Jobs() {
		limit, detail, waits := y.m.Waits(j)
		switch {
		case j.State() == core.Running:
			b.WriteByte('R')
		case waits && limit != "" && strings.Contains(detail, limit):
			b.WriteByte('w')
		case j.State() == core.Queued:
			b.WriteByte('q')
		case j.State() == core.Held:
			b.WriteByte('h')
		default:
			b.WriteByte('-')
		}
	}
	return b.String()
}

func (y *yard) want(states string) {
	y.t.Helper()
	if got := y.states(); got != states {
		y.t.Errorf("the jobs are %s, want %s", got, states)
	}
}

func TestQuota_LetsOthersPassABlockedJob(t *testing.T) {
	y := newYard(t, 4)
	y.rules(budget.Limit{Scope: "team:a", Running: ptr(2)}, budget.Limit{Scope: "user:bob", Running: ptr(1)})
	for n := range 5 {
		y.submit(fmt.Sprint("a", n), "a", "ann", nil)
	}
	y.want("RRwww")
	y.submit("b0", "b", "bob", nil)
	y.submit("b1", "b", "bob", nil)
	y.submit("b2", "b", "cy", nil)
	y.want("RRwwwRwR")
	y.end("a0")
	y.want("-RRwwRwR")
	y.end("b0")
	y.want("-RRww-RR")
	y.rules(budget.Limit{Scope: "team:a", Running: ptr(0)})
	y.end("a1")
	y.want("--Rww-RR") // running jobs continue, no job starts
	y.rules()
	y.want("--RRq-RR") // now the quota is full
}

// While a more urgent job waits for room, a smaller one under the same quota does not take it.
func TestQuota_KeepsGPUsForTheMostUrgent(t *testing.T) {
	gpus := func(n int) func(*core.Terms) {
		return func(t *core.Terms) {
			t.Need = plan.Need{Requirements: plan.Requirements{Accelerator: "H100", Accelerators: n}}
		}
	}
	y := newYard(t, 9, yardOffer("m2", 2), yardOffer("m8", 8))
	y.rules(budget.Limit{Scope: "team:a", GPUs: ptr(10)})
	y.submit("two", "a", "ann", gpus(2))
	y.submit("eight", "a", "ann", gpus(8))
	y.submit("more", "a", "ann", gpus(8))
	y.submit("small", "a", "ann", gpus(1))
	y.submit("other", "b", "ann", gpus(8))
	y.want("RRwwR")
	y.end("two")
	y.want("-RwwR")
	y.end("eight")
	y.want("--RRR")
	y.submit("none", "a", "ann", nil) // it needs no GPU, and every machine has some
	j, _ := y.m.Job("none")
	if y.want("--RRRq"); len(j.Last().Rejected) != 2 || j.Last().Rejected[0].Why != plan.OverQuota {
		t.Errorf("no machine has so few GPUs: %+v", j.Last())
	}
	y.end("more")
	y.want("---RRR")
}

func TestQuota_GPUHoursWaitForTheNextWindow(t *testing.T) {
	hours := func(h float64) func(*core.Terms) {
		return func(t *core.Terms) {
			t.GPUHours = h
			t.Need = plan.Need{Requirements: plan.Requirements{Accelerator: "H100", Accelerators: 1}}
		}
	}
	y := newYard(t, 9, yardOffer("m", 2))
	y.rules(budget.Limit{Scope: "all", Window: budget.Day, GPUHours: ptr(20.0), Wait: true})
	y.submit("one", "a", "ann", hours(12))
	y.submit("two", "a", "ann", hours(8))
	y.submit("three", "a", "ann", hours(8))
	y.want("RRw")
	y.tick(2 * time.Hour) // each has used 4
	y.end("one")
	y.want("-RR") // 4 + 8 + 8 are used or held
	y.submit("four", "a", "ann", hours(9))
	y.want("-RRw")
	y.tick(time.Hour)
	y.end("two")
	y.end("three")
	y.want("---w") // 4 + 6 + 2 are used, and 9 more make 21
	if y.m.Waiting()["all/day"] != 1 {
		t.Errorf("%v wait", y.m.Waiting())
	}
	b, err := y.m.Snapshot()
	must.Do(t, err)
	if y.m, err = core.Restore(b); err != nil {
		t.Fatal(err)
	}
	y.want("---w")
	y.tick(21*time.Hour - time.Second)
	y.want("---w")
	y.tick(time.Second)
	y.want("---R")
}

// For any sequence of submissions, ends, limits and restarts: no launch exceeds a quota, every waiting job waits
// for a quota or for capacity, and the log replays to the same bytes.
func TestQuota_NoLaunchExceedsIt(t *testing.T) {
	launches := 0
	defer func() {
		if launches < 50 {
			t.Errorf("only %d launches were under a quota", launches)
		}
	}()
	rapid.Check(t, func(t *rapid.T) {
		places := rapid.IntRange(1, 6).Draw(t, "places")
		y := newYard(nil, places, yardOffer("m1", 1), yardOffer("m3", 3))
		limits := map[string]budget.Limit{}
		holds := func(q budget.Limit, j *core.Job) bool { return q.Scope.Holds(j.Terms().Owner, j.User()) }
		y.launched = func(id string) {
			launched, _ := y.m.Job(id)
			for _, l := range limits {
				if !holds(l, launched) {
					continue
				}
				running, gpus, hours := 0, 0, time.Duration(0)
				for j := range y.m.Jobs() {
					if !holds(l, j) {
						continue
					}
					lives, all := false, time.Duration(0)
					for _, a := range j.Attempts() {
						if a.Live() {
							lives = true
							gpus += a.GPUs()
						}
						if a.From().IsZero() {
							continue
						}
						until := y.now
						if !a.Until().IsZero() {
							until = a.Until()
						}
						all += time.Duration(a.GPUs()) * until.Sub(a.From())
						from := a.From()
						if begin := l.Window.Begin(y.now); from.Before(begin) {
							from = begin
						}
						hours += time.Duration(a.GPUs()) * max(0, until.Sub(from))
					}
					if lives {
						running++
						hours += max(0, time.Duration(j.Terms().GPUHours*float64(time.Hour))-all)
					}
				}
				launches++
				if l.Running != nil && running > *l.Running || l.GPUs != nil && gpus > *l.GPUs || l.Wait && hours > time.Duration(*l.GPUHours*float64(time.Hour)) {
					t.Fatalf("with %s %d jobs run on %d GPUs, and %v GPU-hours are used or held under %+v", id, running, gpus, hours, l)
				}
			}
		}
		var jobs []string
		for n := range rapid.IntRange(1, 80).Draw(t, "steps") {
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0, 1:
				id := fmt.Sprint("j", n)
				jobs = append(jobs, id)
				y.submit(id, rapid.SampledFrom([]string{"a", "b"}).Draw(t, "team"), rapid.SampledFrom([]string{"ann", "bob"}).Draw(t, "user"), func(terms *core.Terms) {
					terms.Need.Requirements = plan.Requirements{Accelerator: "H100", Accelerators: rapid.IntRange(1, 3).Draw(t, "gpus")}
					terms.GPUHours = float64(rapid.IntRange(1, 30).Draw(t, "hours"))
					terms.Priority = rapid.IntRange(0, 2).Draw(t, "priority")
				})
			case 2:
				if len(jobs) > 0 {
					y.end(rapid.SampledFrom(jobs).Draw(t, "who"))
				}
			case 3:
				y.tick(time.Duration(rapid.IntRange(1, 600).Draw(t, "minutes")) * time.Minute)
			case 4:
				l := budget.Limit{Scope: rapid.SampledFrom([]budget.Scope{"all", "team:a", "user:bob"}).Draw(t, "scope"), Window: rapid.SampledFrom([]budget.Window{budget.Day, budget.Week}).Draw(t, "window")}
				switch rapid.IntRange(0, 3).Draw(t, "kind") {
				case 0:
					l.Running = ptr(rapid.IntRange(0, 3).Draw(t, "running"))
				case 1:
					l.GPUs = ptr(rapid.IntRange(0, 6).Draw(t, "limit"))
				case 2:
					l.GPUHours, l.Wait = ptr(float64(rapid.IntRange(0, 40).Draw(t, "hours"))), true
				}
				if delete(limits, l.Name()); l.Queues() {
					limits[l.Name()] = l
				}
				rules := budget.Rules{}
				for _, name := range []string{"all/day", "all/week", "team:a/day", "team:a/week", "user:bob/day", "user:bob/week"} {
					if l, ok := limits[name]; ok {
						rules.Limits = append(rules.Limits, l)
					}
				}
				y.step("", core.BudgetsSet{Rules: rules})
			case 5:
				b, err := y.m.Snapshot()
				must.Do(t, err)
				if y.m, err = core.Restore(b); err != nil {
					t.Fatal(err)
				}
				if again, _ := y.m.Snapshot(); !bytes.Equal(again, b) {
					t.Fatal("a restored machine has another snapshot")
				}
				y.step("", core.Tick{}) // as at the start of a server
			}
			running := 0
			for j := range y.m.Jobs() {
				if j.State() == core.Running {
					running++
				}
			}
			for j := range y.m.Jobs() {
				_, _, waits := y.m.Waits(j)
				small := len(j.Last().Rejected) > 0 && j.Last().Rejected[len(j.Last().Rejected)-1].Why == plan.OverQuota
				if j.State() == core.Queued && running < places && !waits && !small {
					for o := range y.m.Jobs() {
						_, why, _ := y.m.Waits(o)
						t.Logf("%s of %s and %s, %g hours: %s %s", o.ID(), o.Terms().Owner.Team, o.By(), o.Terms().GPUHours, o.State(), why)
					}
					t.Fatalf("step %d: %s waits for nothing: %+v", n, j.ID(), j.Last())
				}
			}
		}
		again := state.New()
		for _, l := range y.log {
			text, err := json.Marshal(l.event)
			must.Do(t, err)
			var back core.Event
			must.Do(t, json.Unmarshal(text, &back))
			again.Replay(again.Seq()+1, back, l.out.Facts, l.out.Postings)
		}
		a, _ := y.m.Snapshot()
		b, _ := again.Snapshot()
		if !bytes.Equal(a, b) {
			t.Fatal("the log, read back, leads to another state")
		}
	})
}

// BenchmarkAMillionJobsUnderQuotas has a million waiting jobs of 20 teams. Each team has a quota, and all but the
// last are full. It measures a step, and a change of the quotas.
func BenchmarkAMillionJobsUnderQuotas(b *testing.B) {
	y := newYard(b, 100)
	limits := func(n int) (list []budget.Limit) {
		for team := range 20 {
			list = append(list, budget.Limit{Scope: budget.Scope(fmt.Sprintf("team:t%02d", team)), Running: ptr(n)})
		}
		return list
	}
	y.rules(limits(2)...)
	for n := range *waiting {
		team := fmt.Sprintf("t%02d", n%20)
		y.submit(fmt.Sprint(team, "-", n), team, "ann", nil)
		y.log = nil
	}
	begun := time.Now()
	y.rules(limits(3)...)
	rules := time.Since(begun)
	running := []string{}
	for j := range y.m.Jobs() {
		if j.State() == core.Running {
			running = append(running, j.ID())
		}
		if len(running) == 60 {
			break
		}
	}
	if len(running) != 60 {
		b.Fatalf("%d jobs run, want 3 of each team", len(running))
	}
	b.ResetTimer()
	for n := range b.N {
		if n < len(running) {
			y.end(running[n]) // the next job of its team is launched and started
		} else {
			y.tick(time.Millisecond)
		}
	}
	b.StopTimer()
	b.ReportMetric(rules.Seconds(), "s/rules")
	if got := y.m.Waiting()["team:t00/day"]; got < *waiting/20-100 {
		b.Fatalf("%d jobs of the team wait", got)
	}
}
