// Package sim drives the core virtually: a heap of events, a simulated market,
// provider and agents, and every fault that the live world knows. One seed
// draws the job, the market, the faults and the configuration.
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

// World is one simulated run of a job or a few.
type World struct {
	seed   uint64
	rng    *rand.Rand
	extra  *rand.Rand // of the faults that were thought of later; nil: none of them
	gang   *rand.Rand // of what concerns gangs; nil: there are none
	partly float64    // odds that a launch of several is granted in part
	fault  Fault
	now    time.Time
	heap   agenda
	count  uint64

	m       *core.Machine
	mind    *plan.Planner // kept over a restart, for its tables are dear and change nothing
	log     []logged
	archive map[string]json.RawMessage // records of archived jobs, by name
	// unarchived holds jobs that were read from their records: to read one takes as long as many events.
	unarchived map[string]*core.Job
	snap       json.RawMessage // newest snapshot
	snapAt     int             // how much of the log it holds
	postings   []ledger.Posting
	up         bool
	tick       time.Time // when the next tick is scheduled
	ticks      int       // that were asked for since ticked, which is less than a second ago
	ticked     time.Time

	zones     []*zone
	sellers   []*seller // where there are several providers
	instances map[string]*instance
	byKey     map[string][]*instance
	wanted    map[string]int    // machines that a key asked for at most
	agents    map[string]*agent // by attempt and rank: see rankName
	queued    map[string]bool   // launches in the provider's queue
	granting  map[string]func() // by launch in the queue: what its answer is, now
	cancelled map[string]bool   // launches that it has given up
	cfg       *core.Config      // that the server begins with; nil: it was set once
	undecided map[string]bool   // machines of which nobody has decided whose they are
	order     []*instance       // all that were ever rented
	open      []*instance       // those that run, or whose end is not told yet
	blobs     map[string]int64  // newest published step by job
	saver     map[string]int    // epoch of the attempt that published it
	claims    map[string]int    // epoch of the newest attempt that began
	outputs   map[string]string // where the newest outputs are kept, by job
	failed    map[string]int    // how many of its failures the job's program has come to
	faults    faults
	script    *script // nil: drawn
	launchN   int
	leave     time.Duration // an agent without a server for so long leaves; 0: never
	asleep    time.Time     // until then timers do not fire
	skew      time.Duration // how far the server's clock is ahead
	untried   bool          // nobody knows whether spot can be had before somebody looks
	firmDelay time.Duration // how long a machine on-demand is being granted

	slowRounds int           // how many times as long rounds take; 0: once
	away       time.Duration // how long the server was away, in all

	parts, coming int     // of holds: that were drawn, and that are still to come
	array         *simJob // what the members of the array do; nil: there is none
	// members takes a step in which members of a group may begin, where it is set.
	members func(group string, moves []groups.Move, step func() bool)
	planner propose.Planner
	study   *simJob            // what the trials of the study do; nil: there is none
	stages  map[string]*simJob // what the stages of pipelines do, by the names of their jobs; nil: there are none
	// look answers a planner about the files of a pipeline, where it is set.
	look func(groups.Snapshot, []groups.Move) []groups.Move

	altered map[string]time.Time // by job: when its user last resumed it
	// anew is told of a job that was over and is taken up again, where it is set.
	anew func(job string)

	// before is shown each event before its step, where it is set.
	before func(core.Event)
	// watch is shown each step, where it is set.
	watch func(core.Event, core.Outcome)
	// note is shown what no event tells, where it is set.
	note func(verb, text string)

	// Seen counts what occurred: kinds of events and actions, and actions × faults.
	Seen map[string]int
	// Story is what happened, a line each: two runs of one seed tell the same.
	Story bytes.Buffer
	// Broken lists the properties that did not hold.
	Broken []string
	jobs   []simJob

	// through takes what is to be written where the store can fail; nil: it never does.
	through func(...core.Event) (durable bool)
	lives   int  // servers that have died
	unheard bool // who acts now has been replaced: nobody hears what comes of it

	plain bool    // a year of many jobs: nothing is told, and no agent is silent
	brisk float64 // what a provider takes to answer, over what it usually does; 0: 1
	calm  bool    // no faults, exponential spans: a forecast
	keeps bool    // keeps the log, so that a restart can read it
	start time.Time
	first plan.Decision
}

// faults are the odds of each fault, drawn by the seed.
type faults struct {
	Refuse, LoseAnswer, Late, Twice, Crash, Silent, TermFail, Unlisted float64
	// LateBill: a bill comes up to two days after the end. Pending: a launch waits in the
	// provider's queue, for hours. Lag: a list lacks a new machine for minutes.
	// Copied: a server that comes back is a restored copy of the log.
	LateBill, Pending, Lag, Copied float64
	Register                       float64 // something befalls a registration
	onDemandFails                  bool
}

type instance struct {
	id, key   string
	offer     market.Offer
	image     string // that it runs; "": its provider's own
	from      time.Time
	until     time.Time
	cause     string
	notice    time.Duration
	announced bool // its provider said that it will be interrupted
	segments  []market.Segment
	agent     *agent   // of its task, or of the first of several
	beside    []*agent // of the others
	bill      []core.BillLine
	omitted   map[time.Time]bool // lists of its provider that lack it, by when they were taken
	lag       time.Duration      // after its launch in which the provider's list lacks it
	told      bool               // its end is durable
	billing   bool               // its bill is on its way
	billed    bool               // it is durable
	billedAt  time.Time          // since then
	clean     bool               // nothing of its last task is left
	pulls     bool               // its task is over, and it asks for another
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

// horizon is when a simulated run is cut off, unless its work is longer; every job is over long before.
const horizon = 60 * 24 * time.Hour

// newWorld returns a world before anything has happened in it.
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
	}
}

// next lets the next thing happen; false: nothing will ever happen again.
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

// step hands an event to the core as the shell does: step, write, act. With the
// crash fault the server dies before the write, or after it and before the act.
// It reports whether the event is durable.
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

// event is what happens now, by the server's clock.
func (w *World) event(b core.Body) core.Event {
	e := core.Event{At: w.now.Add(w.skew), Schema: core.Schema, Tenant: ledger.DefaultTenant, Body: b}
	if s, ok := b.(core.JobSubmitted); ok {
		if j := w.jobOf(s.Job + ".1"); j != nil && j.by != "" {
			e.Actor = "user:" + j.by
		}
	}
	if e.At.Before(w.m.Now()) { // as the shell does with a clock that was set back
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

// write appends to the log.
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

// quotes shows the core the market.
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
			b.Quotes = append(b.Quotes, market.Quote{Offer: z.firm, Rate: z.firmRate, Priced: !z.firmUnpriced,
				Available: !w.now.Before(z.from) && (z.until.IsZero() || w.now.Before(z.until)), At: w.now, Source: "sim"})
		}
	}
	w.step(b)
}

// firmRate is what an hour on-demand costs in a drawn market.
const firmRate = money.Rate(3_060_000_000_000)
