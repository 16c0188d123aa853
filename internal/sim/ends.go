package sim

import (
	"slices"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// end takes the machine: its processes are gone and it is billed no longer.
func (w *World) end(i *instance, cause string) {
	if !i.running() {
		return
	}
	i.until, i.cause = w.now, cause
	i.kills()
	w.bereaved(i)
	rules := i.offer.Billing
	if i.offer.Reserved.Count == 0 { // that is paid for already
		rules.Minimum = max(rules.Minimum, time.Minute)
	}
	segments := i.segments
	if w.fault == FaultDearer {
		segments = append(slices.Clone(segments), market.Segment{From: i.from.Add(time.Hour), Rate: 10 * firmRate})
		slices.SortStableFunc(segments, func(a, b market.Segment) int { return a.From.Compare(b.From) })
	}
	for _, l := range market.Bill(rules, segments, i.until, cause == "interrupted") {
		i.bill = append(i.bill, core.BillLine{Rule: l.Rule, Amount: l.Amount, Currency: money.USD})
	}
	w.tell("end %s: %s after %v", i.id, cause, i.until.Sub(i.from))
}

// endTold tells the core of an ended instance until it is durable.
func (w *World) endTold(i *instance) {
	if i.running() || !w.answers(&i.offer, func() { w.endTold(i) }) {
		return
	}
	if w.up && w.unknown(i) { // as the shell does: an inventory shows it first
		w.after(30*time.Second, func() { w.endTold(i) })
		return
	}
	if w.up && !w.m.Awaits(i.id) { // it is booked, and its bill may be on its way still
		w.bills(i)
		return
	}
	w.billAgain(i)
	if w.up && !w.m.Knows(i.id) {
		w.saw("given up, then billed")
	}
	ended := core.InstanceEnded{Instance: i.id, Until: i.until, Cause: i.cause, Notice: i.notice, Launch: i.key,
		Announced: i.announced}
	ok := w.step(ended)
	if ok && w.chance(w.faults.Twice) {
		w.saw("fault twice × instance_ended")
		w.step(ended)
	}
	i.told = i.told || ok
	if !ok {
		w.after(30*time.Second, func() { w.endTold(i) })
		return
	}
	w.bills(i)
}

// billAgain ends and bills a machine a second time, under another name, if FaultBilledTwice is injected.
func (w *World) billAgain(i *instance) {
	if again := i.id + "-again"; w.fault == FaultBilledTwice && w.up && w.m.Knows(again) {
		w.step(core.InstanceEnded{Instance: again, Until: i.until, Cause: i.cause})
		w.step(core.BillReceived{Instance: again, Launch: i.key, Lines: slices.Clone(i.bill)})
	}
}

// unknown reports whether nothing was heard of an instance that was asked for: it is
// neither awaited nor booked, and a bill of it would be nobody's.
func (w *World) unknown(i *instance) bool {
	return !i.told && w.m.Unheard(core.Rented{Instance: i.id, Launch: i.key})
}

// bills sends the bill of an ended instance, at once or, with the fault, up to two days later.
func (w *World) bills(i *instance) {
	if i.billed || i.billing {
		return
	}
	i.billing = true
	if w.extra != nil && w.faults.LateBill > 0 && w.extra.Float64() < w.faults.LateBill {
		w.saw("fault late × bill")
		w.after(time.Duration(w.extra.IntN(48*60))*time.Minute, func() { w.billTold(i) })
		return
	}
	w.billTold(i)
}

// billTold tells the core of the bill until it is durable.
func (w *World) billTold(i *instance) {
	b := core.BillReceived{Instance: i.id, Launch: i.key, Lines: slices.Clone(i.bill)}
	if w.fault == FaultNoBill && i.cause == "interrupted" {
		b.Lines = nil
	}
	if !w.step(b) {
		w.after(30*time.Second, func() { w.billTold(i) })
		return
	}
	i.billed, i.billedAt = true, w.now
	if w.chance(w.faults.Twice) {
		w.saw("fault twice × bill")
		w.step(b)
	}
}
