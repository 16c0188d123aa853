package sim

import (
	"slices"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// end terminates the machine: its processes end and billing stops.
func (w *World) end(i *instance, cause string) {
	if !i.running() {
		return
	}
	i.until, i.cause = w.now, cause
	i.kills()
	w.bereaved(i)
	rules := i.offer.Billing
	if i.offer.Reserved.Count == 0 && !w.calm { // in tests bills exceed what offers state; a reservation is already paid
		rules.Minimum = max(rules.Minimum, time.Minute)
	}
	segments := i.segments
	if w.fault == FaultDearer {
		segments = append(slices.Clone(segments), market.Segment{From: i.from.Add(time.Hour), Rate: 10 * onDemandRate})
		slices.SortStableFunc(segments, func(a, b market.Segment) int { return a.From.Compare(b.From) })
	}
	for _, l := range market.Bill(rules, segments, i.until, cause == "interrupted") {
		i.bill = append(i.bill, core.BillLine{Rule: l.Rule, Amount: l.Amount, Currency: money.USD})
	}
	w.tell("end %s: %s after %v", i.id, cause, i.until.Sub(i.from))
}

// endTold reports the end of an instance to the core until the event is durable.
func (w *World) endTold(i *instance) {
	if i.running() || !w.answers(&i.offer, func() { w.endTold(i) }) {
		return
	}
	if w.up && w.unknown(i) { // as in the shell, an inventory shows it first
		w.after(30*time.Second, func() { w.endTold(i) })
		return
	}
	if w.up && !w.m.Awaits(i.id) { // it is booked; only its bill may be missing
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

// unknown reports whether the core has not heard of an instance that it requested. Such an instance is neither awaited
// nor booked, so its bill would have no owner.
func (w *World) unknown(i *instance) bool {
	return !i.told && w.m.Unheard(core.Rented{Instance: i.id, Launch: i.key})
}

// bills sends the bill of an ended instance: at once or, with the late-bill fault, up to two days later.
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

// billTold reports the bill to the core until the event is durable.
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
