package sim

import (
	"fmt"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/market"
)

// grants rents so many machines, or with the fault some of them now and others later or never.
func (w *World) grants(a core.Launch, z *zone, spot bool, nodes int) {
	now, rest := w.grantedOf(nodes)
	for range now {
		w.grant(a, z, spot)
	}
	for range nodes - now {
		if rest {
			w.after(time.Duration(1+w.gang.IntN(900))*time.Second, func() {
				if !spot || z.open {
					w.grant(a, z, spot)
				}
			})
		}
	}
}

// answerAll tells of all machines that a key rented.
func (w *World) answerAll(key string) {
	for _, i := range w.byKey[key] {
		w.answer(i)
	}
}

// grant rents a machine.
func (w *World) grant(a core.Launch, z *zone, spot bool) {
	if w.cancelled[a.Allocation] {
		return
	}
	if len(w.byKey[a.Allocation]) >= w.wanted[a.Allocation] && w.fault != FaultNoKey {
		w.answerAll(a.Allocation) // asked twice while it was pending
		return
	}
	if !spot && w.gone(z) {
		life := w.lives
		w.after(time.Second, func() { w.tells(life, core.LaunchRefused{Launch: a.Allocation, Reason: "no_capacity"}) })
		return
	}
	w.launchN++
	i := &instance{id: fmt.Sprintf("i-%d", w.launchN), key: a.Allocation, offer: z.offer, from: w.now}
	if !spot {
		i.offer = z.firmOffer
	}
	w.boots(i, a.Image)
	i.segments = []market.Segment{{From: w.now, Rate: rateOf(z, spot)}}
	w.checkRented(i, z)
	if w.later(w.faults.Lag) {
		most := mostLag
		if s := w.sellerOf(&z.offer); s != nil {
			most = s.lag
		}
		i.lag = time.Duration(w.extra.Int64N(int64(most)))
	}
	w.instances[i.id], w.byKey[a.Allocation] = i, append(w.byKey[a.Allocation], i)
	w.order, w.open = append(w.order, i), append(w.open, i)
	w.tell("rent %s for %s: %s", i.id, a.Allocation, a.Offer)
	w.boot(i)
	w.ages(i)
	w.answer(i)
}

// checkRented checks that a new machine is not one more than its launch wants, nor one more than its reservation has.
func (w *World) checkRented(i *instance, z *zone) {
	beside := 0
	for _, other := range w.open {
		if !other.running() {
			continue
		}
		if other.offer.ID == i.offer.ID {
			beside++
		}
		if other.key == i.key && len(w.byKey[i.key]) >= w.wanted[i.key] {
			w.breaks("rented twice: %s has %s and %s", i.key, other.id, i.id)
		}
	}
	if r := i.offer.Reserved; r.Count > 0 && (beside >= r.Count || w.gone(z)) {
		w.breaks("reserved: %s has %s, and %d of %d machines run there", i.key, i.offer.ID, beside, r.Count)
	}
}

// mostLag is how long a provider's list may lack a machine that runs.
const mostLag = 8 * time.Minute
