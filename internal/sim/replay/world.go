// Package replay plays recorded spot markets through the production core, by the rules of the public benchmarks. The
// core decides and accounts; this package is the world around it. Package tick plays the same runs without the core,
// and tests compare the two, run by run.
package replay

import (
	"cmp"
	"fmt"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/policy"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// Outcome is the result of a run.
type Outcome struct {
	Cost          money.Amount // from the core's books
	Finish        time.Duration
	Missed        bool
	Interruptions int
	Launches      int
	Carries       int // launches in another region than the previous one
	Decisions     int
	// Work is the useful work done by the start of each tick, and Held the choice held in it. Both are set only with
	// trace.
	Held []policy.Choice
	Work []time.Duration
}

// start is the market time at which every run begins.
var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

const jobID = "job"

// world is one run: a job, the market, and the machines that the core holds.
type world struct {
	m     *core.Machine
	sale  sale
	work  time.Duration
	nodes int // machines of the job
	now   time.Time
	out   Outcome
	trace bool

	attempt string // the attempt that holds machines; empty for none
	offer   market.Offer
	home    string                  // region of the checkpoint
	carried map[string]money.Amount // what each machine paid to fetch the checkpoint from another region, by instance
	owed    time.Duration           // remaining restart overhead
	started bool                    // the core knows that the program runs
	done    time.Duration
	message int64
	queue   []core.Action
	looked  time.Time // the last probe: the rules allow one a tick
}

// sale is the market of a run.
type sale interface {
	// offer describes a rented offer.
	offer(id market.OfferID) market.Offer
	rate(id market.OfferID) money.Rate
	// overhead returns the time from renting a machine in a region to useful work, and the cost of fetching the
	// checkpoint from another region.
	overhead(from, to string) (d time.Duration, carry money.Amount)
	// look answers a probe of an offer.
	look(id market.OfferID) market.Quote
}

// newWorld returns a run of a job on the given number of machines, before its first event.
func newWorld(mind *plan.Planner, s sale, work time.Duration, nodes int, trace bool) *world {
	return &world{m: core.NewWith(mind), sale: s, work: work, nodes: max(1, nodes), now: start, trace: trace,
		carried: map[string]money.Amount{}}
}

// terms returns the terms of the job in every run.
func (w *world) terms(restart time.Duration, deadline time.Time) core.Terms {
	return core.Terms{
		Name: jobID, Currency: money.USD, Deadline: deadline, Priority: 1, Nodes: w.nodes,
		Work: w.work, Steps: int64(w.work), Restart: restart, Saves: true,
	}
}

// config leaves the core nothing to wait for but the next look at the market.
func config(rule policy.Rule, restart, look, spare time.Duration) core.Configured {
	return core.Configured{Config: core.Config{
		MaxRunning: 1, BootLimit: 10*restart + time.Hour, Patience: time.Hour, Currency: money.USD, Policy: rule, Poll: look,
		Spare: spare,
	}}
}

// step passes an event to the core and queues its actions.
func (w *world) step(b core.Body) {
	out := w.m.Step(core.Event{At: w.now, Schema: core.Schema, Tenant: ledger.DefaultTenant, Body: b})
	w.out.Decisions += out.Decided
	w.queue = append(w.queue, out.Actions...)
}

// advance plays one tick with the held machines.
func (w *world) advance(gap time.Duration) {
	end := w.now.Add(gap)
	if w.attempt != "" {
		served := min(w.owed, gap)
		w.owed -= served
		if w.owed == 0 && !w.started {
			w.now = w.now.Add(served)
			w.begin(0, 1)
		}
		w.done += gap - served
	}
	w.now = end
	if w.attempt != "" && w.started {
		w.message++
		w.step(core.CheckpointSaved{Attempt: w.attempt, Message: w.message, Manifest: "m", Step: int64(min(w.done, w.work)),
			Captured: w.now})
	}
}

// begin reports that the programs of the ranks from..to-1 run.
func (w *world) begin(from, to int) {
	w.started = true
	restored := ""
	if w.done > 0 {
		restored = "m"
	}
	for n := from; n < to; n++ {
		w.message++
		w.step(core.AttemptStarted{Attempt: w.attempt, Message: w.message, Node: n, Restored: restored, Step: int64(w.done)})
	}
}

// act carries out the core's actions until none is left.
func (w *world) act() {
	for len(w.queue) > 0 {
		a := w.queue[0]
		w.queue = w.queue[1:]
		switch a := a.(type) {
		case core.Launch:
			w.launch(a)
		case core.Drain:
			w.ends(a.Attempt, "drained", w.done)
		case core.Terminate:
			w.end(a.Instance, "terminated")
		case core.Probe:
			if w.now.Equal(w.looked) {
				panic(fmt.Sprintf("a second look at %v", w.now.Sub(start)))
			}
			w.looked = w.now
			w.step(core.MarketSeen{Quotes: []market.Quote{w.sale.look(a.Offer)}})
		}
	}
}

// launch grants all requested machines at once and registers their agents.
func (w *world) launch(a core.Launch) {
	if q := w.sale.look(a.Offer); !q.Available {
		panic(fmt.Sprintf("%s was taken at %v, where it is not to be had", a.Offer, w.now.Sub(start)))
	}
	w.out.Launches++
	w.attempt, w.offer, w.started = a.Allocation, w.sale.offer(a.Offer), false
	away := w.home != "" && w.home != w.offer.Region
	if away {
		w.out.Carries++
	}
	owed, carry := w.sale.overhead(w.home, w.offer.Region)
	w.home, w.owed = w.offer.Region, owed
	for n := range max(1, a.Nodes) {
		id := a.Allocation
		if n > 0 {
			id = fmt.Sprintf("%s/%d", id, n)
		}
		w.carried[id] = carry
		w.step(core.LaunchDone{Launch: a.Allocation, Instance: id, Offer: a.Offer, Rate: w.sale.rate(a.Offer),
			From: w.now})
		if w.nodes > 1 {
			w.step(core.MachineRegistered{Instance: id, Allocation: a.Allocation, Key: "key of " + id})
		}
	}
	w.begin(1, w.nodes) // they wait for rank 0, which restores; nothing is decided between ticks
	if w.started = false; w.owed == 0 {
		w.begin(0, 1)
	}
}

// ends reports the end of all programs of an attempt after the given work.
func (w *world) ends(attempt, reason string, done time.Duration) {
	for n := range w.nodes {
		w.message++
		w.step(core.AttemptEnded{Attempt: attempt, Message: w.message, Node: n, Reason: reason, Step: int64(done),
			Saved: true})
	}
}

// end terminates a machine.
func (w *world) end(instance, cause string) {
	job, _ := w.m.Job(jobID)
	cost, launch := money.Amount{}, ""
	for _, a := range job.Attempts() { // several attempts may have used it in turn
		if k := a.On(instance); k != nil {
			cost = cost.Add(k.Cost(w.now))
			launch = cmp.Or(launch, a.ID())
			if a.ID() == w.attempt {
				w.attempt = ""
			}
		}
	}
	w.step(core.InstanceEnded{Instance: instance, Until: w.now, Cause: cause, Launch: launch})
	if carry := w.carried[instance]; !carry.IsZero() {
		w.step(core.BillReceived{Instance: instance, Launch: launch, Lines: []core.BillLine{
			{Amount: cost, Currency: money.USD}, {Rule: "transfer", Amount: carry, Currency: money.USD}}})
	}
}

// holds returns the instances of the current attempt, by rank.
func (w *world) holds() (list []string) {
	if a, ok := w.m.Attempt(w.attempt); ok {
		for _, k := range a.Tasks() {
			list = append(list, k.Instance())
		}
	}
	return list
}

// takes interrupts the held spot machines: all of them if spot is unavailable, otherwise those of the given ranks.
func (w *world) takes(up bool, ranks uint16) {
	switch {
	case !up:
		w.lost()
	case ranks != 0:
		w.loses(ranks)
	}
}

// lost interrupts all machines.
func (w *world) lost() {
	w.out.Interruptions++
	for _, id := range w.holds() {
		w.end(id, "interrupted")
	}
}

// loses interrupts the machines of some ranks, a bit each. The other programs end at once, and their machines stay for
// the job's next attempt.
func (w *world) loses(ranks uint16) {
	w.out.Interruptions++
	attempt, held := w.attempt, w.holds()
	for n, id := range held {
		if ranks&(1<<n) != 0 {
			w.end(id, "interrupted")
		}
	}
	for n := range held {
		if ranks&(1<<n) == 0 {
			w.step(core.TaskGone{Attempt: attempt, Node: n})
		}
	}
}

// finished ends the run if its work is done, and reports whether it is.
func (w *world) finished(deadline time.Time) bool {
	if w.done < w.work {
		return false
	}
	w.ends(w.attempt, "completed", w.work)
	w.act()
	w.out.Finish = w.now.Sub(start)
	w.out.Missed = w.now.After(deadline)
	return true
}

// close returns the outcome, with the cost from the core's books.
func (w *world) close() Outcome {
	if job, ok := w.m.Job(jobID); ok {
		w.out.Cost = job.Spent(w.now)
	}
	return w.out
}

func (w *world) note() {
	if !w.trace {
		return
	}
	held := policy.Wait
	switch {
	case w.attempt == "":
	case w.offer.Capacity == market.Spot:
		held = policy.Spot
	default:
		held = policy.NonPreemptible
	}
	w.out.Held, w.out.Work = append(w.out.Held, held), append(w.out.Work, w.done)
}
