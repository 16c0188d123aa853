// Package sim drives the core in virtual time: a heap of events, a simulated market, provider and agents, and every
// fault of the live world. One seed draws the job, the market, the faults and the configuration.
package sim

import (
	"bytes"
	"container/heap"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/work/groups"
	"scrimp/internal/work/propose"
)

// World is one simulated run of one job or a few.
type World struct {
	seed   uint64
	rng    *rand.Rand
	extra  *rand.Rand // chance of faults that were added later; nil disables them
	gang   *rand.Rand // chance of everything about gangs; nil disables gangs
	partly float64    // odds that a launch of several machines is granted in part
	fault  Fault
	now    time.Time
	heap   agenda
	count  uint64
	events int // of a forecast's run

	m       *core.Machine
	mind    *plan.Planner // survives a restart: its tables are slow to build and affect no result
	log     []logged
	archive map[string]json.RawMessage // records of archived jobs, by ID
	// pastGroups are the records of archived groups by name, and readGroups those that were read.
	pastGroups map[string]json.RawMessage
	readGroups map[string]*state.Group
	// unarchived caches jobs that were read from their records: reading one takes as long as many events.
	unarchived map[string]*core.Job
	snap       json.RawMessage // newest snapshot
	snapAt     int             // number of log entries that snap covers
	postings   []ledger.Posting
	up         bool
	tick       time.Time // when the next tick is scheduled
	ticks      int       // requested since ticked, which is less than a second ago
	ticked     time.Time

	zones     []*zone
	sellers   []*seller // if there are several providers
	instances map[string]*instance
	byKey     map[string][]*instance
	wanted    map[string]int    // largest number of machines requested with a key
	agents    map[string]*agent // by attempt and rank: see rankName
	queued    map[string]bool   // launches in the provider's queue
	granting  map[string]func() // grants the launch, by key in the provider's queue
	cancelled map[string]bool   // launches that the provider has given up
	cfg       *core.Config      // configuration at the server's start; nil if it was set once
	undecided map[string]bool   // machines whose owner nobody has decided yet
	order     []*instance       // all machines that were ever rented
	open      []*instance       // running machines, and those whose end is not reported yet
	blobs     map[string]int64  // newest published step by job
	saver     map[string]int    // epoch of the attempt that published blobs
	claims    map[string]int    // epoch of the newest attempt that started
	outputs   map[string]string // path of the newest stored outputs, by job
	failed    map[string]int    // number of the program's failures so far, by job
	faults    faults
	script    *script // nil in a run drawn from the seed
	launchN   int
	leave     time.Duration // an agent without a server for this long switches off; 0 for never
	asleep    time.Time     // until then no timer fires
	skew      time.Duration // how far the server's clock is ahead
	untried   bool          // nobody knows whether spot is available before a probe
	firmDelay time.Duration // how long an on-demand machine takes to be granted

	slowRounds int           // factor on the duration of rounds; 0 means 1
	away       time.Duration // total time without a server

	parts, coming int     // of holds: drawn, and not yet submitted
	array         *simJob // behaviour of the array's members; nil without an array
	// members, if set, wraps a step in which members of a group may start.
	members func(group string, moves []groups.Move, step func() bool)
	planner propose.Planner
	study   *simJob            // behaviour of the study's trials; nil without a study
	stages  map[string]*simJob // behaviour of pipeline stages, by job name; nil without pipelines
	// look, if set, answers a planner's questions about the files of a pipeline.
	look func(groups.Snapshot, []groups.Move) []groups.Move

	altered map[string]time.Time // when its user last resumed it, by job
	// anew, if set, is called when an ended job resumes.
	anew func(job string)

	// before, if set, sees each event before its step.
	before func(core.Event)
	// watch, if set, sees each step.
	watch func(core.Event, core.Outcome)
	// note, if set, receives what no event reports.
	note func(verb, text string)

	// Seen counts the kinds of events and actions, and each action × fault.
	Seen map[string]int
	// Story has a line per occurrence. Two runs of one seed have the same story.
	Story bytes.Buffer
	// Broken lists the violated properties.
	Broken []string
	jobs   []simJob

	// through, if set, writes events to a store that can fail.
	through func(...core.Event) (durable bool)
	lives   int  // number of servers that have died
	unheard bool // a newer server has replaced the one that acts now, so its results are lost

	plain bool    // a year of many jobs: no story and no silent agents
	brisk float64 // factor on the provider's answer times; 0 means 1
	calm  bool    // a forecast: no faults, exponential periods
	keeps bool    // keeps the log for a restart
	start time.Time
	first plan.Decision
}

// faults holds the odds of each fault, drawn from the seed.
type faults struct {
	Refuse, LoseAnswer, Late, Twice, Crash, Silent, TermFail, Unlisted float64
	// LateBill: a bill arrives up to two days after the end. Pending: a launch waits in the provider's queue for hours.
	// Lag: a list omits a new machine for minutes. Copied: a restarted server runs on a restored copy of the log.
	LateBill, Pending, Lag, Copied float64
	Register                       float64 // a registration suffers a mishap
	onDemandFails                  bool
}

type instance struct {
	id, key   string
	offer     market.Offer
	image     string // image that it runs; empty for the provider's own
	from      time.Time
	until     time.Time
	cause     string
	notice    time.Duration
	announced bool // its provider has announced an interruption
	segments  []market.Segment
	agent     *agent   // agent of its task, or of the first of several tasks
	beside    []*agent // agents of the other tasks
	bill      []core.BillLine
	omitted   map[time.Time]bool // provider lists that omit it, by their times
	lag       time.Duration      // time after its launch during which the provider's list omits it
	told      bool               // its end is durable
	billing   bool               // its bill is on its way
	billed    bool               // its bill is durable
	billedAt  time.Time          // when the bill became durable
	clean     bool               // nothing of its last task is left
	pulls     bool               // its task has ended, and it polls for another
}

func (i *instance) running() bool { return i.until.IsZero() }

type entry struct {
	at time.Time
	n  uint64
	do func()
}

type agenda []entry

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	if !a[i].at.Equal(a[j].at) {
		return a[i].at.Before(a[j].at)
	}
	return a[i].n < a[j].n
}
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)   { *a = append(*a, x.(entry)) }
func (a *agenda) Pop() any {
	last := len(*a) - 1
	x := (*a)[last]
	*a = (*a)[:last]
	return x
}

func (w *World) after(d time.Duration, do func()) { w.at(w.now.Add(d), do) }

func (w *World) at(t time.Time, do func()) {
	w.count++
	heap.Push(&w.heap, entry{at: t, n: w.count, do: do})
}

// horizon bounds a simulated run, unless its work is longer. Every job ends long before it.
const horizon = 60 * 24 * time.Hour

// newWorld returns a world before its first event.
func newWorld(rng *rand.Rand, at time.Time) *World {
	mind := plan.NewPlanner()
	return &World{
		rng: rng, now: at, start: at, mind: mind, m: core.NewWith(mind), up: true, keeps: true, leave: 30 * time.Minute,
		instances: map[string]*instance{}, byKey: map[string][]*instance{},
		wanted: map[string]int{}, agents: map[string]*agent{},
		Seen: map[string]int{}, queued: map[string]bool{},
		granting:  map[string]func(){},
		cancelled: map[string]bool{},
		blobs:     map[string]int64{}, saver: map[string]int{}, claims: map[string]int{}, outputs: map[string]string{},
		failed: map[string]int{}, archive: map[string]json.RawMessage{}, unarchived: map[string]*core.Job{},
		pastGroups: map[string]json.RawMessage{}, readGroups: map[string]*state.Group{},
	}
}

// next runs the next entry of the heap; it returns false if the heap is empty.
func (w *World) next() bool {
	if len(w.heap) == 0 {
		return false
	}
	e := heap.Pop(&w.heap).(entry)
	w.now = e.at
	if w.now.Before(w.asleep) {
		w.now = w.asleep
	}
	e.do()
	return true
}

func (w *World) tell(format string, args ...any) {
	if w.plain {
		return
	}
	fmt.Fprintf(&w.Story, "%9s  %s\n", w.now.Sub(w.start).Round(time.Second), fmt.Sprintf(format, args...))
}

func (w *World) breaks(format string, args ...any) {
	w.Broken = append(w.Broken, fmt.Sprintf(format, args...))
}

func (w *World) chance(p float64) bool { return p > 0 && w.rng.Float64() < p }

func (w *World) saw(what string) { w.Seen[what]++ }

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// step passes an event to the core as the shell does: step, write, act. With the crash fault the server dies before the
// write, or between the write and the actions. step reports whether the event is durable.
func (w *World) step(b core.Body) bool {
	if !w.up {
		return false
	}
	if w.through != nil {
		return w.through(w.event(b))
	}
	if !w.rehydrates(b) {
		return false
	}
	if w.chance(w.faults.Crash) && w.chance(0.5) {
		w.saw("fault crash before write × " + b.Kind())
		w.crash(time.Duration(5+w.rng.IntN(200)) * time.Second)
		return false
	}
	e := w.event(b)
	if w.before != nil {
		w.before(e)
	}
	out := w.m.Step(e)
	w.commit(e, out)
	if w.watch != nil {
		w.watch(e, out)
	}
	if w.calm && w.gang != nil {
		w.wakes(out.Facts)
	}
	if w.acts(out.Actions) {
		w.crash(time.Duration(5+w.rng.IntN(200)) * time.Second)
	} else if w.keeps && w.faults.Crash > 0 && len(w.log)%37 == 0 {
		w.snap, _ = w.m.Snapshot()
		w.snapAt = len(w.log)
	}
	return true
}

// acts does the actions of a step in their order, up to a crash of the server. It reports whether the server crashes.
func (w *World) acts(actions []core.Action) (crash bool) {
	odds := w.faults.Crash
	if len(actions) > 0 {
		odds *= 6 // where a crash can hurt
	}
	crash = w.chance(odds)
	for _, a := range actions {
		w.saw("action " + a.Kind())
		crash = crash || w.script != nil && w.script.dies == a.Kind()
		if crash {
			w.saw("fault crash before act × " + a.Kind())
			continue
		}
		w.act(a)
	}
	return crash
}

// event returns b as an event at the server's current time.
func (w *World) event(b core.Body) core.Event {
	e := core.Event{At: w.now.Add(w.skew), Schema: core.Schema, Tenant: ledger.DefaultTenant, Body: b}
	if s, ok := b.(core.JobSubmitted); ok {
		if j := w.jobOf(s.Job + ".1"); j != nil && j.by != "" {
			e.Actor = "user:" + j.by
		}
	}
	if e.At.Before(w.m.Now()) { // as the shell does after a clock was set back
		e.At = w.m.Now()
	}
	return e
}

// commit makes a step durable.
func (w *World) commit(e core.Event, out core.Outcome) {
	if !out.Nothing {
		w.write(e, out)
	}
	w.archives(out)
	for i, p := range out.Postings {
		if w.fault == FaultDropBill && i == 1 || w.fault == FaultUnpaid && p.Idles() {
			continue
		}
		if w.fault == FaultOwner && p.Line == 2 {
			p.Owner.Team = "another"
		}
		if w.fault == FaultProject && p.Line == 0 && p.Owner.Job != "" {
			p.Owner.Project = "another"
		}
		w.postings = append(w.postings, p)
	}
	w.saw("event " + e.Body.Kind())
	w.schedule(out.Wake)
}

// write appends the step to the log.
func (w *World) write(e core.Event, out core.Outcome) {
	if !w.keeps {
		return
	}
	ej, err := json.Marshal(e)
	if err != nil {
		panic(err)
	}
	facts, err := state.EncodeFacts(out.Facts)
	if err != nil {
		panic(err)
	}
	for _, j := range w.jobs {
		if j.secret != "" && bytes.Contains(ej, []byte(j.secret)) {
			w.breaks("secret: the log has the value of %s's secret, in %s", j.id, e.Body.Kind())
		}
	}
	w.log = append(w.log, logged{event: ej, facts: facts, postings: out.Postings, sample: out.Sample})
}

func (w *World) provider() string {
	if w.calm && len(w.zones) > 0 {
		return w.zones[0].offer.Provider
	}
	return "sim"
}

// quotes sends the core the market.
func (w *World) quotes() {
	var b core.MarketSeen
	for _, z := range w.zones {
		if z.spot != "" {
			b.Offers = append(b.Offers, z.offer)
			b.Quotes = append(b.Quotes, market.Quote{Offer: z.spot, Rate: z.rate, Priced: !z.unpriced,
				Available: z.open && !w.untried, Untried: w.untried, At: w.now, Source: "sim"})
		}
		if z.firm != "" && w.fault != FaultFirmInTime {
			b.Offers = append(b.Offers, z.firmOffer)
			b.Quotes = append(b.Quotes, market.Quote{Offer: z.firm, Rate: z.onDemandRate, Priced: !z.firmUnpriced,
				Available: !w.now.Before(z.from) && (z.until.IsZero() || w.now.Before(z.until)), At: w.now, Source: "sim"})
		}
	}
	w.step(b)
}

// onDemandRate is the hourly on-demand price in a drawn market.
const onDemandRate = money.Rate(3_060_000_000_000)
