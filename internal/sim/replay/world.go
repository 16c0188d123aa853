// Package replay plays recorded spot markets through the production core, by the
// rules of the public benchmarks: the core decides and accounts, this package is
// the world around it. Package tick plays the same runs without the core, and
// tests hold the two against each other, run by run.
package replay

import (
	"fmt"
	"time"

	"scrimp/internal/core"
	"scrimp/internal/ledger"
	"scrimp/internal/market"
	"scrimp/internal/money"
	"scrimp/internal/policy"
)

// Outcome is what a run came to.
type Outcome struct {
	Cost          money.Amount // by the core's books
	Finish        time.Duration
	Missed        bool
	Interruptions int
	Launches      int
	Carries       int // launches in another region than the one before
	Decisions     int
	// Work is the useful work done by the start of each tick, and Held what was
	// held in it; only where it was asked for.
	Held []policy.Choice
	Work []time.Duration
}

// start is when every run begins, in market time.
var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

const jobID = "job"

// world is one run: a job, what is for sale, and the machine that the core holds.
type world struct {
	m     *core.Machine
	sale  sale
	work  time.Duration
	now   time.Time
	out   Outcome
	trace bool

	attempt string // of the machine held; "": none
	offer   market.Offer
	home    string        // region of the checkpoint
	carried bool          // the held machine fetched it from another
	owed    time.Duration // restart overhead still to be served
	started bool          // the core knows that the program runs
	done    time.Duration
	message int64
	queue   []core.Action
	looked  time.Time // the last look: the rules allow one a tick
}

// sale is the market of a run.
type sale interface {
	// offer describes what the core took.
	offer(id market.OfferID) market.Offer
	rate(id market.OfferID) money.Rate
	// overhead is from taking a machine to useful work; away: the checkpoint is
	// in another region, and costs carry.
	overhead(away bool) (d time.Duration, carry money.Amount)
	// look answers a look at an offer.
	look(id market.OfferID) market.Quote
}

// terms are those of the job that every run submits.
func terms(work, restart time.Duration, deadline time.Time) core.Terms {
	return core.Terms{
		Name: jobID, Currency: money.USD, Deadline: deadline, Work: work, Steps: int64(work), Restart: restart, Priority: 1,
		Saves: true,
	}
}

// config leaves the core nothing to wait for but the next look at the market.
func config(rule policy.Rule, restart, look, spare time.Duration) core.Configured {
	return core.Configured{Config: core.Config{
		MaxRunning: 1, BootLimit: 10*restart + time.Hour, Patience: time.Hour, Currency: money.USD, Policy: rule, Poll: look,
		Spare: spare,
	}}
}

// step tells the core and keeps what it asks for.
func (w *world) step(b core.Body) {
	out := w.m.Step(core.Event{At: w.now, Schema: core.Schema, Tenant: ledger.DefaultTenant, Body: b})
	w.out.Decisions += out.Decided
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
		w.step(core.CheckpointSaved{Attempt: w.attempt, Message: w.message, Manifest: "m", Step: int64(min(w.done, w.work)),
			Captured: w.now})
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
			if q := w.sale.look(a.Offer); !q.Available {
				panic(fmt.Sprintf("%s was taken at %v, where it is not to be had", a.Offer, w.now.Sub(start)))
			}
			w.out.Launches++
			w.attempt, w.offer, w.started = a.Allocation, w.sale.offer(a.Offer), false
			w.carried = w.home != "" && w.home != w.offer.Region
			if w.carried {
				w.out.Carries++
			}
			w.home = w.offer.Region
			w.owed, _ = w.sale.overhead(w.carried)
			w.step(core.LaunchDone{Launch: a.Allocation, Instance: a.Allocation, Offer: a.Offer, Rate: w.sale.rate(a.Offer),
				From: w.now})
			if w.owed == 0 {
				w.begin()
			}
		case core.Drain:
			w.message++
			w.step(core.AttemptEnded{Attempt: a.Attempt, Message: w.message, Reason: "drained", Step: int64(w.done),
				Saved: true})
		case core.Terminate:
			w.end("terminated")
		case core.Probe:
			if w.now.Equal(w.looked) {
				panic(fmt.Sprintf("a second look at %v", w.now.Sub(start)))
			}
			w.looked = w.now
			w.step(core.MarketSeen{Quotes: []market.Quote{w.sale.look(a.Offer)}})
		}
	}
}

// end takes the held machine away.
func (w *world) end(cause string) {
	b := core.InstanceEnded{Instance: w.attempt, Until: w.now, Cause: cause, Launch: w.attempt}
	var bill []core.BillLine
	if a, ok := w.m.Attempt(w.attempt); ok && w.carried {
		_, carry := w.sale.overhead(true)
		bill = []core.BillLine{{Amount: a.Cost(w.now), Currency: money.USD},
			{Rule: "transfer", Amount: carry, Currency: money.USD}}
	}
	w.attempt = ""
	w.step(b)
	if bill != nil {
		w.step(core.BillReceived{Instance: b.Instance, Launch: b.Launch, Lines: bill})
	}
}

// lost takes it without being asked.
func (w *world) lost() {
	w.out.Interruptions++
	w.end("interrupted")
}

// finished ends the run where its work is done, and reports whether it is.
func (w *world) finished(deadline time.Time) bool {
	if w.done < w.work {
		return false
	}
	w.message++
	w.step(core.AttemptEnded{Attempt: w.attempt, Message: w.message, Reason: "completed", Step: int64(w.work),
		Saved: true})
	w.act()
	w.out.Finish = w.now.Sub(start)
	w.out.Missed = w.now.After(deadline)
	return true
}

// close returns what came of the run, with the cost as the core's books say.
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
