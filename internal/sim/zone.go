package sim

import (
	"fmt"
	"time"

	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// zone is a spot market with its periods of availability, and the on-demand offer beside it.
type zone struct {
	name               string
	spot, firm         market.OfferID // empty if not for sale
	offer, firmOffer   market.Offer
	rate, onDemandRate money.Rate
	open               bool
	unpriced           bool      // the spot price is unknown
	firmUnpriced       bool      // the on-demand price is unknown
	from, until        time.Time // the time of a reservation
	opens              time.Time // when others release a reserved machine; zero if it is free
	notice             time.Duration
	up, down           time.Duration // mean periods of a forecast
}

// zone returns the zone with the given name, and creates it if necessary.
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

// turn opens or closes a zone, and schedules its next turn.
func (w *World) turn(z *zone) {
	if z.open {
		notice := time.Duration(0)
		switch {
		case w.calm:
			notice = z.offer.Notice
		case w.chance(0.6):
			notice = 2 * time.Minute
		}
		w.shut(z, notice, notice, func() { w.after(w.spanOf(z, 40), func() { w.turn(z) }) })
		return
	}
	z.open = true
	rate := z.rate
	switch {
	case w.calm:
	case w.chance(0.5):
		rate = z.rate * 11 / 10
	default:
		rate = z.rate * 10 / 11
	}
	w.reprice(z, rate)
	w.quotes()
	w.after(w.spanOf(z, 90), func() { w.turn(z) })
}

// reprice sets the spot price, also for running machines.
func (w *World) reprice(z *zone, rate money.Rate) {
	z.rate = rate
	for _, i := range w.open {
		if i.running() && i.offer.ID == z.spot {
			i.segments = append(i.segments, market.Segment{From: w.now, Rate: rate})
		}
	}
}

// shut closes the zone to spot and interrupts its machines. The agents get the notice at once; the interruption follows
// after taken.
func (w *World) shut(z *zone, notice, taken time.Duration, then func()) {
	z.notice = min(notice, taken)
	for _, i := range w.open {
		if i.running() && i.offer.ID == z.spot {
			w.noticed(i, notice)
		}
	}
	w.after(taken, func() {
		z.open = false
		for _, i := range w.open {
			if i.running() && i.offer.ID == z.spot {
				i.notice = z.notice
				w.lost(i)
			}
		}
		w.quotes()
		if then != nil {
			then()
		}
	})
}

// orphan creates a machine with our tag that no server requested, as if a server's data folder was lost.
func (w *World) orphan(z *zone) *instance {
	w.saw("orphan")
	w.launchN++
	i := &instance{id: fmt.Sprintf("i-%d", w.launchN), key: "ghost.1", offer: z.firmOffer, from: w.now,
		segments: []market.Segment{{From: w.now, Rate: z.onDemandRate}}}
	w.instances[i.id], w.byKey[i.key] = i, []*instance{i}
	w.order, w.open = append(w.order, i), append(w.open, i)
	return i
}

// lost interrupts a machine and checks the promise about work: with a notice long enough for a save no work is lost,
// otherwise at most one checkpoint interval.
func (w *World) lost(i *instance) {
	w.saw("interruption")
	for _, a := range i.all() {
		w.checkLoss(i, a)
	}
	w.end(i, "interrupted")
	w.after(2*time.Second, func() { w.endTold(i) })
}

// checkLoss compares a task's lost work with the promise.
func (w *World) checkLoss(i *instance, a *agent) {
	switch {
	case a.dead || a.began.IsZero() || a.ended || !a.job.terms.Saves || !a.holds() || a.job.deaf:
	case i.notice >= a.job.save+time.Second && a.noticed:
		if a.saved < a.want {
			w.breaks("work: %s had %v notice and a save takes %v, yet step %d was lost after %d", i.id, i.notice, a.job.save,
				a.want, a.saved)
		}
	case !a.over && a.step() > max(a.saved, a.from):
		if gap := w.now.Sub(a.captured); gap > max(a.before, a.interval)+2*a.job.save+time.Second {
			w.breaks("work: %s lost %v of work, the interval was %v", i.id, gap, a.interval)
		}
	}
}

// spanOf draws how long the zone stays open or closed.
func (w *World) spanOf(z *zone, median float64) time.Duration {
	if w.calm {
		return w.exponential(z.up, z.down, z.open)
	}
	return w.span(median)
}

func (w *World) exponential(up, down time.Duration, open bool) time.Duration {
	mean := down
	if open {
		mean = up
	}
	return time.Duration(w.rng.ExpFloat64()*float64(mean)) + time.Second
}

// span draws a heavy-tailed duration with the given median in minutes.
func (w *World) span(median float64) time.Duration {
	u := max(1e-3, w.rng.Float64())
	m := median * (1/u - 0.6) // Pareto-like
	return time.Duration(min(m, 1440) * float64(time.Minute))
}

// gone reports whether a reservation of the zone is unavailable: over, not started, or used by machines that the server
// rightly wrote off as lost.
func (w *World) gone(z *zone) bool {
	r := z.firmOffer.Reserved
	if r.Count == 0 {
		return false
	}
	for _, i := range w.open {
		if !i.running() || i.offer.ID != z.firm {
			continue
		}
		_, asked := w.m.Allocation(i.key)
		if _, has := w.m.Attempt(i.key); !asked && !has {
			return true
		}
	}
	return w.now.Before(z.from) || !w.now.Before(r.Until)
}

// reserves opens the zone's reservation for its time; then its machines end.
func (w *World) reserves(z *zone) {
	r := z.firmOffer.Reserved
	if r.Count == 0 {
		return
	}
	z.from, z.until = r.From, r.Until
	if z.opens.After(z.from) {
		z.from = z.opens
	}
	if z.from.After(w.now) {
		w.at(z.from, w.quotes)
	}
	if r.Until.After(w.now) {
		w.at(r.Until, func() {
			for _, i := range w.open {
				if i.running() && i.offer.ID == z.firm {
					w.lost(i)
				}
			}
			w.quotes()
		})
	}
}
