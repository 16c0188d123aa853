package sim

import (
	"fmt"
	"time"

	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// zone is a spot market with its spans of availability, and what is sold beside
// it on-demand.
type zone struct {
	name             string
	spot, firm       market.OfferID // "": not for sale there
	offer, firmOffer market.Offer
	rate, firmRate   money.Rate
	open             bool
	unpriced         bool      // the price of spot is unknown, or
	firmUnpriced     bool      // of what is sold beside it
	from, until      time.Time // of what is reserved
	opens            time.Time // when others leave a machine of it; zero: it is free
	notice           time.Duration
	up, down         time.Duration // mean spans of a forecast
}

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

// turn opens or closes a zone, again and again.
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

// reprice sets the price of spot, also for the machines that run.
func (w *World) reprice(z *zone, rate money.Rate) {
	z.rate = rate
	for _, i := range w.open {
		if i.running() && i.offer.ID == z.spot {
			i.segments = append(i.segments, market.Segment{From: w.now, Rate: rate})
		}
	}
}

// shut lets no more spot be had in the zone and takes its machines: they are told
// that it will be after notice, and it is after taken.
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

// orphan is a machine with our tag that nobody asked for, as of a server whose folder was lost.
func (w *World) orphan(z *zone) *instance {
	w.saw("orphan")
	w.launchN++
	i := &instance{id: fmt.Sprintf("i-%d", w.launchN), key: "ghost.1", offer: z.firmOffer, from: w.now,
		segments: []market.Segment{{From: w.now, Rate: z.firmRate}}}
	w.instances[i.id], w.byKey[i.key] = i, []*instance{i}
	w.order, w.open = append(w.order, i), append(w.open, i)
	return i
}

// lost takes a machine and checks the promise on work: none is lost after a
// notice that is long enough for the save, else at most one checkpoint interval.
func (w *World) lost(i *instance) {
	w.saw("interruption")
	for _, a := range i.all() {
		w.checkLoss(i, a)
	}
	w.end(i, "interrupted")
	w.after(2*time.Second, func() { w.endTold(i) })
}

// checkLoss holds what a task lost with its machine against what was promised.
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

// spanOf draws how long the zone stays as it is.
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

// span draws a heavy-tailed span with that median in minutes.
func (w *World) span(median float64) time.Duration {
	u := max(1e-3, w.rng.Float64())
	m := median * (1/u - 0.6) // Pareto-like
	return time.Duration(min(m, 1440) * float64(time.Minute))
}

// gone reports whether what is reserved in the zone is not to be had any more, or not yet, or is
// in use by machines that the server was right to give up for lost.
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

// reserves opens what is reserved in the zone for its time; then its machines end.
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
