package sim

import (
	"strings"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// act performs an action in the simulated world, with its faults.
func (w *World) act(a core.Action) {
	if w.script != nil && w.script.still {
		return
	}
	switch a := a.(type) {
	case core.Launch:
		w.launch(a)
	case core.Cancel:
		w.cancelSoon(a)
	case core.Terminate:
		w.terminateSoon(a)
	case core.Drain:
		w.drainSoon(a)
	case core.Probe:
		w.looked(a)
	case core.BuildTable:
		w.after(time.Duration(w.extra.Int64N(int64(5*time.Minute))), func() { w.builds(a) })
	case core.RunRound:
		w.round()
	case core.Propose:
		w.propose(a)
	case core.Notify:
		w.tell("job %s is %s: %s", a.Job, a.State, a.Why)
	}
}

// cancelSoon cancels a launch after a delay. The machine may come in the meantime.
func (w *World) cancelSoon(a core.Cancel) {
	d := time.Second
	if w.chance(w.faults.Late) {
		w.saw("fault late × cancel")
		d = 3 * time.Minute
	}
	if now := w.granting[a.Allocation]; now != nil && w.later(0.3) { // while the cancel is under way
		now()
	}
	w.after(d, func() { w.cancel(a) })
}

// terminateSoon ends a machine after a delay. It checks that the core ends no machine whose owner nobody has named.
func (w *World) terminateSoon(a core.Terminate) {
	if w.undecided[a.Instance] {
		w.breaks("owner: %s is ended, and nobody has said whose it is", a.Instance)
	}
	d := w.delay(1, int(slowestEnd/time.Second)-1)
	if w.script != nil {
		d = max(d, w.script.slow)
	}
	if w.chance(w.faults.TermFail) {
		w.saw("fault late × terminate")
		d += 3 * time.Minute
	}
	w.after(d, func() { w.terminate(a) })
}

// drainSoon drains the ranks of an attempt whose machines still run after a delay.
func (w *World) drainSoon(a core.Drain) {
	d := w.delay(1, 3)
	if w.chance(w.faults.Late) {
		w.saw("fault late × drain")
		d += 30 * time.Second
	}
	w.after(d, func() {
		for _, rank := range w.ranks(a.Attempt) {
			if rank.i.running() {
				rank.drain("drained")
			}
		}
	})
}

// terminate ends a machine as soon as its provider answers.
func (w *World) terminate(a core.Terminate) {
	i := w.instances[strings.TrimSuffix(a.Instance, "-again")]
	if i == nil || !w.answers(&i.offer, func() { w.terminate(a) }) {
		return
	}
	w.end(i, "terminated")
	w.endTold(i)
}

// tells delivers a provider's answer while the requesting server lives, which may be waiting for its store.
func (w *World) tells(life int, b core.Body) {
	if w.step(b) || w.through == nil || life != w.lives {
		return
	}
	w.after(5*time.Second, func() { w.tells(life, b) })
}

// builds builds the requested table and hands it to the core.
func (w *World) builds(a core.BuildTable) {
	if w.up {
		t := plan.Build(a.Request)
		w.m.Adopt(t)
		w.step(core.TableReady{Table: t.Key(), Version: plan.TableVersion, Hash: t.Hash()})
	}
}

// looked reports whether an offer is available now, if its provider can tell.
func (w *World) looked(a core.Probe) {
	if w.unheard {
		return
	}
	if w.chance(w.faults.LoseAnswer) {
		w.saw("fault answer lost × look")
		return
	}
	w.after(w.delay(1, 5), func() {
		for _, z := range w.zones {
			if z.spot == a.Offer {
				w.step(core.MarketSeen{Quotes: []market.Quote{{Offer: z.spot, Rate: z.rate, Priced: true, Available: z.open,
					At: w.now, Source: "look"}}})
			}
		}
	})
}

func (w *World) launch(a core.Launch) {
	nodes := w.asks(a)
	if len(w.byKey[a.Allocation]) > 0 && w.fault != FaultNoKey {
		w.answerAll(a.Allocation) // a key rents once
		return
	}
	if w.queued[a.Allocation] || w.cancelled[a.Allocation] {
		return // it is in the provider's queue already, or was given up
	}
	unheard := w.unheard
	z, spot := w.zoneOf(a.Offer)
	if z != nil && !w.answers(&z.offer, func() { w.launchAgain(a) }) {
		return
	}
	if reason, refused := w.refuses(a, z, spot); refused {
		if life := w.lives; !unheard {
			w.after(time.Second, func() { w.tells(life, core.LaunchRefused{Launch: a.Allocation, Reason: reason}) })
		}
		return
	}
	grant := func() {
		defer func(before bool) { w.unheard = before }(w.unheard)
		w.unheard = unheard
		w.grants(a, z, spot, nodes)
	}
	if w.script != nil && w.script.pending > 0 {
		w.after(w.script.pending, grant)
		return
	}
	if w.later(w.faults.Pending) {
		w.queues(a, z, spot, grant)
		return
	}
	if delay := w.onDemandDelay(z); !spot && delay > 0 {
		w.after(delay, grant)
		return
	}
	grant()
}

// refuses reports whether the provider refuses a launch in z, and why. z is nil if nobody sells the offer.
func (w *World) refuses(a core.Launch, z *zone, spot bool) (reason string, refused bool) {
	reason = "no_capacity"
	refused = z == nil || spot && !z.open || !spot && w.gone(z)
	switch {
	case refused:
	case a.MaxRate > 0 && rateOf(z, spot) > a.MaxRate:
		refused, reason = true, "price"
	case w.script != nil && len(w.script.refuse) > 0:
		refused, reason = true, w.script.refuse[0]
		w.script.refuse = w.script.refuse[1:]
	}
	if !refused && w.chance(w.faults.Refuse) && (spot || w.faults.onDemandFails) {
		w.saw("fault refused × launch")
		refused = true
	}
	return reason, refused
}

// onDemandDelay returns how long the provider takes to grant an on-demand machine in z.
func (w *World) onDemandDelay(z *zone) time.Duration {
	delay := w.firmDelay
	if w.fault == FaultSlowFirm {
		delay += time.Hour
	}
	if s := w.sellerOf(&z.offer); s != nil {
		delay += s.grant
	}
	return delay
}

// zoneOf returns the zone that sells the offer, or nil, and whether the offer is spot.
func (w *World) zoneOf(offer market.OfferID) (z *zone, spot bool) {
	for _, c := range w.zones {
		if c.spot == offer || c.firm == offer {
			z, spot = c, c.spot == offer
		}
	}
	return z, spot
}

// launchAgain repeats a launch with the same key, as the shell does if a provider does not answer.
func (w *World) launchAgain(a core.Launch) {
	if t, ok := w.m.Allocation(a.Allocation); ok && w.up && t.Phase() == state.Pending {
		w.launch(a)
	}
}

func rateOf(z *zone, spot bool) money.Rate {
	if spot {
		return z.rate
	}
	return z.onDemandRate
}

// later draws a fault from its own random source.
func (w *World) later(odds float64) bool { return odds > 0 && w.extra.Float64() < odds }

// queues puts a launch into the provider's queue for minutes or hours. The launch is then granted or has expired.
func (w *World) queues(a core.Launch, z *zone, spot bool, grant func()) {
	w.saw("fault pending × launch")
	w.queued[a.Allocation] = true
	life := w.lives
	w.after(time.Second, func() { w.tells(life, core.LaunchPending{Launch: a.Allocation}) })
	expires := w.later(0.25)
	answer := func() {
		if w.cancelled[a.Allocation] || w.granting[a.Allocation] == nil {
			return
		}
		delete(w.granting, a.Allocation)
		delete(w.queued, a.Allocation)
		if expires || spot && !z.open || !spot && w.gone(z) || a.MaxRate > 0 && rateOf(z, spot) > a.MaxRate {
			w.cancelled[a.Allocation] = true
			w.expired(a.Allocation)
			return
		}
		grant()
	}
	w.granting[a.Allocation] = answer
	w.after(time.Duration(1+w.extra.IntN(240))*time.Minute, answer)
}

// expired reports a launch that the provider gave up until the event is durable.
func (w *World) expired(allocation string) {
	if !w.step(core.LaunchExpired{Launch: allocation}) {
		w.after(30*time.Second, func() { w.expired(allocation) })
	}
}

// cancel gives up a launch unless it was granted meanwhile.
func (w *World) cancel(a core.Cancel) {
	if s := w.sellerOf(&market.Offer{Provider: a.Provider}); s != nil && w.now.Before(s.away) {
		w.at(s.away.Add(time.Second), func() { w.cancel(a) })
		return
	}
	if n := len(w.byKey[a.Allocation]); n > 0 && n >= w.wanted[a.Allocation] {
		w.saw("granted, then cancelled")
		w.answerAll(a.Allocation)
		return
	}
	w.cancelled[a.Allocation] = true
	delete(w.queued, a.Allocation)
	life := w.lives
	if w.step(core.LaunchCancelled{Launch: a.Allocation}) || life != w.lives {
		return
	}
	w.after(5*time.Second, func() { w.cancel(a) })
}

// ages interrupts a machine at the end of its maximum lifetime, after the offer's notice.
func (w *World) ages(i *instance) {
	most, notice := i.offer.MaxLifetime, i.offer.Notice
	if most <= 0 {
		return
	}
	w.after(max(0, most-notice), func() {
		if i.running() && notice > 0 {
			w.noticed(i, notice)
		}
	})
	w.after(most, func() {
		if i.running() {
			i.notice = notice
			w.lost(i)
		}
	})
}

// slowestEnd bounds how long a termination takes without faults.
const slowestEnd = 21 * time.Second

// delay returns a random number of seconds, or the least in a scenario.
func (w *World) delay(least, spread int) time.Duration {
	if w.script != nil {
		return time.Duration(least) * time.Second
	}
	d := time.Duration(least+w.rng.IntN(spread)) * time.Second
	if w.brisk > 0 {
		d = time.Duration(w.brisk * float64(d))
	}
	return d
}

// answer reports a granted launch to the core, unless the answer is lost.
func (w *World) answer(i *instance) {
	if w.unheard {
		return
	}
	b := core.LaunchDone{Launch: i.key, Instance: i.id, Offer: i.offer.ID, Rate: i.segments[0].Rate, From: i.from}
	d := time.Second
	switch {
	case w.script != nil && w.script.unheard > 0:
		w.script.unheard--
		w.askAgain(i)
		return
	case w.chance(w.faults.LoseAnswer):
		w.saw("fault answer lost × launch")
		w.askAgain(i)
		return
	case w.chance(w.faults.Late):
		w.saw("fault late × launch")
		d = 40 * time.Second
	}
	life := w.lives
	w.after(d, func() {
		w.tells(life, b)
		if w.chance(w.faults.Twice) {
			w.saw("fault twice × launch")
			w.step(b)
		}
		if !i.running() {
			w.endTold(i)
		}
	})
}

// askAgain handles an unanswered launch as the shell does: it compares the inventory and, if the machine is not in it,
// repeats the launch with the same key.
func (w *World) askAgain(i *instance) {
	w.after(2*time.Minute, func() {
		w.sweep()
		if a, ok := w.m.Allocation(i.key); ok && w.up {
			w.launch(core.Launch{Job: a.Job(), Allocation: a.ID(), Offer: a.Offer(), Nodes: a.Rents(),
				Image: a.Machine().Image})
		}
	})
}

// allTold reports whether no machine runs and every end is reported.
func (w *World) allTold() bool {
	for _, i := range w.open {
		if i.running() || w.m.Awaits(i.id) || i.billing && !i.billed || w.unknown(i) {
			return false
		}
	}
	for _, j := range w.jobs {
		if known, ok := w.known(j.id); !ok || !known.State().Over() {
			return false
		}
	}
	return true
}
