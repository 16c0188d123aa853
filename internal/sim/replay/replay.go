// Package replay plays recorded spot markets through the production core, by the
// rules of the public benchmarks: the core decides and accounts, this package is
// the world around it. Package tick plays the same runs without the core, and
// TestTheCoreCostsWhatThePlainLoopCosts holds the two against each other.
package replay

import (
	"time"

	"scrimp/internal/core"
	"scrimp/internal/market"
	"scrimp/internal/money"
	"scrimp/internal/policy"
	"scrimp/internal/sim/tick"
)

// Outcome is what a run came to.
type Outcome struct {
	Cost          money.Amount // by the core's books
	Finish        time.Duration
	Missed        bool
	Interruptions int
	Launches      int
	Decisions     int
	// Work is the useful work done by the start of each tick, and Held what was
	// held in it; only where it was asked for.
	Held []policy.Choice
	Work []time.Duration
}

// start is when every run begins, in market time.
var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

const (
	jobID  = "job"
	spotID = market.OfferID("trace/zone/machine/spot")
	firmID = market.OfferID("trace/zone/machine/on-demand")
)

// world is one run: a job, a zone, and the machine that the core holds.
type world struct {
	m     *core.Machine
	run   tick.Run
	now   time.Time
	out   Outcome
	trace bool

	attempt string // of the machine held; "": none
	offer   market.OfferID
	owed    time.Duration // restart overhead still to be served
	started bool          // the core knows that the program runs
	from    time.Time     // when the held machine was taken
	done    time.Duration
	message int64
	queue   []core.Action
}

// Single plays one run of the one-zone benchmark under the rule. trace asks for
// what was held, tick by tick.
func Single(r tick.Run, rule policy.Rule, trace bool) Outcome {
	j := r.Job
	w := &world{m: core.New(), run: r, now: start, trace: trace}
	ticks := j.Ticks()
	deadline := start.Add(time.Duration(ticks) * j.Gap)
	w.step(core.Configured{Config: core.Config{
		MaxRunning: 1, BootLimit: 10 * j.Overhead, CoolOff: 0, Patience: time.Hour, Currency: money.USD, Policy: rule, Look: j.Gap,
	}})
	w.step(core.MarketSeen{Offers: offers(), Quotes: w.quotes(0, true)})
	w.step(core.JobSubmitted{Job: jobID, Terms: core.Terms{
		Name: jobID, Currency: money.USD, Deadline: deadline, Work: j.Work, Steps: int64(j.Work), Restart: j.Overhead, Priority: 1,
	}})
	w.act()
	w.note()
	for t := 1; ; t++ {
		w.advance(j.Gap)
		if w.done >= j.Work {
			w.finish()
			w.out.Finish = w.now.Sub(start)
			w.out.Missed = w.now.After(deadline)
			break
		}
		w.step(core.MarketSeen{Quotes: w.quotes(t, false)})
		if w.offer == spotID && w.attempt != "" && !r.At(t) {
			w.out.Interruptions++
			w.end("interrupted")
		}
		w.act()
		w.note()
	}
	if job, ok := w.m.Job(jobID); ok {
		w.out.Cost = job.Spent(w.now)
	}
	return w.out
}

func offers() []market.Offer {
	one := market.Offer{ID: spotID, Provider: "trace", Region: "region", Zone: "zone", Machine: "machine", Capacity: market.Spot, CPUs: 1, Speed: 1, Currency: money.USD}
	firm := one
	firm.ID, firm.Capacity = firmID, market.OnDemand
	return []market.Offer{one, firm}
}

// quotes is the market of tick t; what has not changed since the tick before is
// left out unless all is asked for.
func (w *world) quotes(t int, all bool) []market.Quote {
	j := w.run.Job
	var list []market.Quote
	if up := w.run.At(t); all || up != w.run.At(t-1) {
		list = append(list, market.Quote{Offer: spotID, Rate: j.Spot, Priced: true, Available: up, At: w.now, Source: "trace"})
	}
	if all {
		list = append(list, market.Quote{Offer: firmID, Rate: j.OnDemand, Priced: true, Available: true, At: w.now, Source: "trace"})
	}
	return list
}

// step tells the core and keeps what it asks for.
func (w *world) step(b core.Body) {
	out := w.m.Step(core.Event{At: w.now, Schema: core.Schema, Tenant: "default", Body: b})
	w.out.Decisions += len(out.Decisions)
	w.queue = append(w.queue, out.Actions...)
}

// advance serves the tick that begins now with what is held, up to its end.
func (w *world) advance(gap time.Duration) {
	end := w.now.Add(gap)
	if w.attempt != "" {
		served := min(w.owed, gap)
		w.owed -= served
		if w.owed == 0 && !w.started {
			w.now = w.now.Add(served)
			w.begin()
		}
		w.done += gap - served
	}
	w.now = end
	if w.attempt != "" && w.started {
		w.message++
		w.step(core.CheckpointSaved{Attempt: w.attempt, Message: w.message, Manifest: "m", Step: int64(min(w.done, w.run.Job.Work)), Captured: w.now})
	}
}

// begin tells the core that the program runs.
func (w *world) begin() {
	w.started = true
	restored := ""
	if w.done > 0 {
		restored = "m"
	}
	w.message++
	w.step(core.AttemptStarted{Attempt: w.attempt, Message: w.message, Restored: restored, Step: int64(w.done)})
}

// act does what the core asked for until it asks for nothing more.
func (w *world) act() {
	for len(w.queue) > 0 {
		a := w.queue[0]
		w.queue = w.queue[1:]
		switch a := a.(type) {
		case core.Launch:
			w.out.Launches++
			w.attempt, w.offer, w.owed, w.started, w.from = a.Attempt, a.Offer, w.run.Job.Overhead, false, w.now
			rate := w.run.Job.OnDemand
			if a.Offer == spotID {
				rate = w.run.Job.Spot
			}
			w.step(core.LaunchDone{Launch: a.Attempt, Instance: a.Attempt, Offer: a.Offer, Rate: rate, From: w.now})
			if w.owed == 0 {
				w.begin()
			}
		case core.Drain:
			w.message++
			w.step(core.AttemptEnded{Attempt: a.Attempt, Message: w.message, Reason: "drained", Step: int64(w.done), Saved: true})
		case core.Terminate:
			w.end("terminated")
		}
	}
}

// end takes the held machine away.
func (w *world) end(cause string) {
	instance := w.attempt
	w.attempt = ""
	w.step(core.InstanceEnded{Instance: instance, Until: w.now, Cause: cause})
}

// finish ends the program and gives its machine back.
func (w *world) finish() {
	w.message++
	w.step(core.AttemptEnded{Attempt: w.attempt, Message: w.message, Reason: "completed", Step: int64(w.run.Job.Work), Saved: true})
	w.act()
}

func (w *world) note() {
	if !w.trace {
		return
	}
	held := policy.Wait
	switch {
	case w.attempt == "":
	case w.offer == spotID:
		held = policy.Spot
	default:
		held = policy.Firm
	}
	w.out.Held, w.out.Work = append(w.out.Held, held), append(w.out.Work, w.done)
}
