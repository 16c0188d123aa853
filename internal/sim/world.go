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
	"slices"
	"time"

	"scrimp/internal/core"
	"scrimp/internal/ledger"
	"scrimp/internal/market"
	"scrimp/internal/money"
	"scrimp/internal/plan"
)

// Plant breaks one thing on purpose, to prove which property notices.
type Plant string

// The faults that can be planted in the world around the core.
const (
	PlantNone       Plant = ""
	PlantNoKey      Plant = "no-idempotency-key" // the provider rents anew for a key it has seen
	PlantNoSweep    Plant = "no-sweep"           // the inventory is never compared
	PlantNoRedo     Plant = "no-redo"            // after a restart nothing that was asked for is asked again
	PlantDecideNew  Plant = "decide-anew"        // a restart takes recorded decisions again
	PlantDropBill   Plant = "drop-posting"       // one posting is lost
	PlantDeaf       Plant = "deaf-agent"         // agents do not save when the machine is about to go
	PlantTwiceHeard Plant = "heard-twice"        // a repeated message counts again
)

// Log is the durable part of the world: what a restart reads.
type logged struct {
	event     json.RawMessage
	decisions json.RawMessage
}

// World is one simulated life of a job or a few.
type World struct {
	seed  uint64
	rng   *rand.Rand
	plant Plant
	now   time.Time
	heap  agenda
	count uint64

	m        *core.Machine
	log      []logged
	snap     json.RawMessage // newest snapshot
	snapAt   int             // how much of the log it holds
	postings []ledger.Posting
	up       bool
	tick     time.Time // when the next tick is scheduled

	zones     []*zone
	instances map[string]*instance
	byKey     map[string]*instance
	order     []*instance
	blobs     map[string]int64 // newest published step by job
	faults    faults
	launchN   int

	// Seen counts what occurred: kinds of events and actions, and actions × faults.
	Seen map[string]int
	// Story is what happened, a line each: two runs of one seed tell the same.
	Story bytes.Buffer
	// Broken lists the properties that did not hold.
	Broken []string
	jobs   []simJob

	calm  bool // no faults, exponential spans: a forecast
	start time.Time
	first plan.Decision
}

// faults are the odds of each fault, drawn by the seed.
type faults struct {
	Refuse, LoseAnswer, Late, Twice, Crash, Silent, TermFail float64
	onDemandFails                                            bool
}

// zone is a spot market with its spans of availability.
type zone struct {
	name             string
	spot, firm       market.OfferID // "": not for sale there
	offer, firmOffer market.Offer
	rate, firmRate   money.Rate
	open             bool
	notice           time.Duration
	up, down         time.Duration // mean spans of a forecast
}

type instance struct {
	id, key  string
	offer    market.Offer
	from     time.Time
	until    time.Time
	cause    string
	notice   time.Duration
	segments []market.Segment
	agent    *agent
	bill     []core.BillLine
}

func (i *instance) running() bool { return i.until.IsZero() }

type simJob struct {
	id    string
	terms core.Terms
	steps int64
	pace  float64 // steps an hour
	boot  time.Duration
	save  time.Duration
}

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

func (w *World) tell(format string, args ...any) {
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
	if w.chance(w.faults.Crash) && w.chance(0.5) {
		w.saw("fault crash before write × " + b.Kind())
		w.crash()
		return false
	}
	e := core.Event{At: w.now, Schema: core.Schema, Tenant: "default", Body: b}
	out := w.m.Step(e)
	ej, err := json.Marshal(e)
	if err != nil {
		panic(err)
	}
	dj, err := json.Marshal(out.Decisions)
	if err != nil {
		panic(err)
	}
	w.log = append(w.log, logged{ej, dj})
	for i, p := range out.Postings {
		if w.plant == PlantDropBill && i == 1 {
			continue
		}
		w.postings = append(w.postings, p)
	}
	w.saw("event " + b.Kind())
	w.schedule(out.Wake)
	crash := w.chance(w.faults.Crash)
	for _, a := range out.Actions {
		w.saw("action " + a.Kind())
		if crash {
			w.saw("fault crash before act × " + a.Kind())
			continue
		}
		w.act(a)
	}
	if crash {
		w.crash()
	} else if len(w.log)%37 == 0 {
		w.snap, _ = w.m.Snapshot()
		w.snapAt = len(w.log)
	}
	return true
}

func (w *World) schedule(wake time.Time) {
	if wake.IsZero() || !w.tick.IsZero() && !wake.Before(w.tick) && w.tick.After(w.now) {
		return
	}
	w.tick = wake
	at := wake
	if at.Before(w.now) {
		at = w.now
	}
	w.at(at, func() {
		if w.tick.Equal(wake) {
			w.tick = time.Time{}
			w.step(core.Tick{})
		}
	})
}

// crash kills the server; it comes back a while later from what is durable.
func (w *World) crash() {
	before, err := w.m.Snapshot()
	if err != nil {
		panic(err)
	}
	durable := uint64(len(w.log)) == w.m.Seq()
	w.up = false
	w.tell("server dies")
	w.after(time.Duration(5+w.rng.IntN(200))*time.Second, func() { w.restart(before, durable) })
}

// restart builds the machine again from the snapshot and the log after it, and
// does again what was asked for and is not answered.
func (w *World) restart(before json.RawMessage, durable bool) {
	m, from := core.New(), 0
	if w.snap != nil && w.chance(0.5) {
		var err error
		if m, err = core.Restore(w.snap); err != nil {
			w.breaks("restart: %v", err)
			return
		}
		from = w.snapAt
	}
	var wake time.Time
	for _, l := range w.log[from:] {
		var e core.Event
		var d []core.Decision
		if err := json.Unmarshal(l.event, &e); err != nil {
			w.breaks("restart reads event: %v", err)
			return
		}
		if err := json.Unmarshal(l.decisions, &d); err != nil {
			w.breaks("restart reads decisions: %v", err)
			return
		}
		if w.plant == PlantDecideNew {
			d = nil
		}
		wake = m.Replay(e, d).Wake
	}
	again, err := m.Snapshot()
	if err != nil {
		panic(err)
	}
	if durable && !bytes.Equal(before, again) {
		w.breaks("replay: a restart gives another state than the one that was lost")
	}
	w.m, w.up, w.tick = m, true, time.Time{}
	w.tell("server is back after %d events", len(w.log))
	if wake.IsZero() || wake.Before(w.now) {
		wake = w.now
	}
	w.schedule(wake)
	if w.plant != PlantNoRedo {
		for _, a := range m.Pending() {
			w.act(a)
		}
	}
	w.sweep()
	w.quotes()
}

// sweep shows the core all that runs.
func (w *World) sweep() {
	if w.plant == PlantNoSweep {
		return
	}
	b := core.InventorySeen{Provider: w.provider(), AsOf: w.now}
	for _, i := range w.order {
		if i.running() {
			b.Running = append(b.Running, core.Rented{Instance: i.id, Launch: i.key, Offer: i.offer.ID, Rate: i.segments[0].Rate, From: i.from})
		}
	}
	for _, i := range w.order {
		if !i.running() && w.up && w.m.Knows(i.id) {
			w.endTold(i)
		}
	}
	w.step(b)
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
			b.Quotes = append(b.Quotes, market.Quote{Offer: z.spot, Rate: z.rate, Priced: true, Available: z.open, At: w.now, Source: "sim"})
		}
		if z.firm != "" {
			b.Offers = append(b.Offers, z.firmOffer)
			b.Quotes = append(b.Quotes, market.Quote{Offer: z.firm, Rate: z.firmRate, Priced: true, Available: true, At: w.now, Source: "sim"})
		}
	}
	w.step(b)
}

// firmRate is what an hour on-demand costs in a drawn market.
const firmRate = money.Rate(3_060_000_000_000)

// zone returns the zone of that name, new where there is none.
func (w *World) zone(name string) *zone {
	for _, z := range w.zones {
		if z.name == name {
			return z
		}
	}
	z := &zone{name: name}
	w.zones = append(w.zones, z)
	return z
}

// act does an action in the simulated world, with its faults.
func (w *World) act(a core.Action) {
	switch a := a.(type) {
	case core.Launch:
		w.launch(a)
	case core.Terminate:
		d := time.Duration(1+w.rng.IntN(20)) * time.Second
		if w.chance(w.faults.TermFail) {
			w.saw("fault late × terminate")
			d += 3 * time.Minute
		}
		w.after(d, func() {
			if i := w.instances[a.Instance]; i != nil {
				w.end(i, "terminated")
				w.endTold(i)
			}
		})
	case core.Drain:
		d := time.Duration(1+w.rng.IntN(3)) * time.Second
		if w.chance(w.faults.Late) {
			w.saw("fault late × drain")
			d += 30 * time.Second
		}
		w.after(d, func() {
			for _, i := range w.order {
				if i.key == a.Attempt && i.running() && i.agent != nil {
					i.agent.drain("drained")
				}
			}
		})
	case core.Notify:
		w.tell("job %s is %s: %s", a.Job, a.State, a.Why)
	}
}

func (w *World) launch(a core.Launch) {
	if i := w.byKey[a.Attempt]; i != nil && w.plant != PlantNoKey {
		w.answer(i) // the key rents once
		return
	}
	var z *zone
	spot := false
	for _, c := range w.zones {
		if c.spot == a.Offer || c.firm == a.Offer {
			z, spot = c, c.spot == a.Offer
		}
	}
	refuse := z == nil || spot && !z.open
	if !refuse && w.chance(w.faults.Refuse) && (spot || w.faults.onDemandFails) {
		w.saw("fault refused × launch")
		refuse = true
	}
	if refuse {
		w.after(time.Second, func() { w.step(core.LaunchRefused{Launch: a.Attempt, Reason: "no_capacity"}) })
		return
	}
	w.launchN++
	i := &instance{id: fmt.Sprintf("i-%d", w.launchN), key: a.Attempt, offer: z.offer, from: w.now}
	rate := z.rate
	if !spot {
		i.offer, rate = z.firmOffer, z.firmRate
	}
	i.segments = []market.Segment{{From: w.now, Rate: rate}}
	for _, other := range w.order {
		if other.key == a.Attempt && w.byKey[a.Attempt] != nil && other.running() {
			w.breaks("rented twice: %s has %s and %s", a.Attempt, other.id, i.id)
		}
	}
	w.instances[i.id], w.byKey[a.Attempt] = i, i
	w.order = append(w.order, i)
	w.tell("rent %s for %s: %s", i.id, a.Attempt, a.Offer)
	w.boot(i)
	w.answer(i)
}

// answer tells the core that the launch was granted, unless the answer is lost.
func (w *World) answer(i *instance) {
	b := core.LaunchDone{Launch: i.key, Instance: i.id, Offer: i.offer.ID, Rate: i.segments[0].Rate, From: i.from}
	d := time.Second
	switch {
	case w.chance(w.faults.LoseAnswer):
		w.saw("fault answer lost × launch")
		w.after(2*time.Minute, w.sweep)
		return
	case w.chance(w.faults.Late):
		w.saw("fault late × launch")
		d = 40 * time.Second
	}
	w.after(d, func() {
		w.step(b)
		if w.chance(w.faults.Twice) {
			w.saw("fault twice × launch")
			w.step(b)
		}
		if !i.running() {
			w.endTold(i)
		}
	})
}

// end takes the machine: its processes are gone and it is billed no longer.
func (w *World) end(i *instance, cause string) {
	if !i.running() {
		return
	}
	i.until, i.cause = w.now, cause
	if i.agent != nil {
		i.agent.dead = true
	}
	a := core.Attempt{From: i.from, Rates: i.segments}
	i.bill = []core.BillLine{{Amount: a.Cost(i.until), Currency: money.USD}}
	if low := i.from.Add(time.Minute); i.until.Before(low) {
		i.bill = append(i.bill, core.BillLine{Rule: "minimum", Amount: a.Cost(low).Sub(a.Cost(i.until)), Currency: money.USD})
	}
	if cause == "interrupted" && i.until.Sub(i.from) < i.offer.Billing.FreeIfInterruptedWithin {
		total := money.Amount{}
		for _, l := range i.bill {
			total = total.Add(l.Amount)
		}
		i.bill = append(i.bill, core.BillLine{Rule: "interrupted-early", Amount: total.Neg(), Currency: money.USD})
	}
	w.tell("end %s: %s after %v", i.id, cause, i.until.Sub(i.from))
}

// endTold tells the core of an ended instance until it is durable.
func (w *World) endTold(i *instance) {
	if i.running() || w.up && !w.m.Knows(i.id) {
		return
	}
	ok := w.step(core.InstanceEnded{Instance: i.id, Until: i.until, Cause: i.cause, Notice: i.notice, Bill: slices.Clone(i.bill)})
	if ok && w.chance(w.faults.Twice) {
		w.saw("fault twice × instance_ended")
		w.step(core.InstanceEnded{Instance: i.id, Until: i.until, Cause: i.cause, Notice: i.notice, Bill: slices.Clone(i.bill)})
	}
	if !ok {
		w.after(30*time.Second, func() { w.endTold(i) })
	}
}
