package plan

import (
	"iter"
	"slices"
	"time"

	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// Work is what was done, or is to be done, as it is priced on machines that are not interrupted.
type Work struct {
	Span     time.Duration  // useful work, on a machine of speed 1 that does it the job's own way
	StartUp  time.Duration  // from the machine's first billed second to the program's first
	Ways     []string       // the variants by which it was done; "" is the job's own way; none: any
	Nodes    int            // machines at once
	Currency money.Currency // of the job
	Unsaving bool           // nothing of it is saved: it is done on one machine, or not at all
}

// OnDemand is the cheapest of them, and what the work costs there.
type OnDemand struct {
	Offer market.OfferID
	Cost  money.Amount
}

// OnDemand prices work on the cheapest on-demand machine that could do it: one that has what
// the work needs, where the job may run, at its speed for one of the ways in which the work was
// done, at its price of now, with one start-up, or one for each machine of a longest lifetime. The
// price that the job would have paid at most does not count. false: there is none.
func (n *Need) OnDemand(w Work, sale iter.Seq[*Listing]) (best OnDemand, ok bool) {
	for l := range sale {
		o := &l.Offer
		if o.Capacity != market.OnDemand || !l.Quote.Priced || o.Currency != w.Currency {
			continue
		}
		speed := n.fastest(&w, l)
		if speed == 0 {
			continue
		}
		span, done := w.on(o, speed)
		if !done {
			continue
		}
		cost := l.Quote.Rate.Until(span)
		for range w.Nodes - 1 {
			cost = cost.Add(l.Quote.Rate.Until(span))
		}
		if !ok || cost.Cmp(best.Cost) < 0 || cost.Cmp(best.Cost) == 0 && o.ID < best.Offer {
			best, ok = OnDemand{o.ID, cost}, true
		}
	}
	return best, ok
}

// fastest is the highest speed at which the offer does the work in one of the ways in which it was done; 0: it does it
// in none.
func (n *Need) fastest(w *Work, l *Listing) (speed float64) {
	for i := range len(n.Variants) + 1 {
		if n.does(i, l) && (len(w.Ways) == 0 || slices.Contains(w.Ways, n.name(i))) {
			speed = max(speed, n.speed(i, l))
		}
	}
	return speed
}

// on is how long machines of o are billed for the work, one after the other where they live for less time than it
// takes, each with its start-up. false: it is never done there.
func (w *Work) on(o *market.Offer, speed float64) (span time.Duration, done bool) {
	work := onSpeed(w.Span, speed)
	starts := time.Duration(1)
	if life := o.MaxLifetime - w.StartUp; o.MaxLifetime > 0 && work > life {
		if w.Unsaving || life <= 0 {
			return 0, false
		}
		starts = (work + life - 1) / life
	}
	return max(starts*w.StartUp+work, o.Billing.Minimum), true
}

// does reports whether a machine of l has what the way asks for and stands where the job may run.
func (n *Need) does(way int, l *Listing) bool {
	asks, _ := n.way(way)
	most := l.Offer.AtOnce()
	return asks.equip(l) == "" && asks.there(&l.Offer) && (most == 0 || n.Machines <= most)
}

// name is that of a way: the variant's, or "" of the job's own.
func (n *Need) name(way int) string {
	if way == 0 {
		return ""
	}
	return n.Variants[way-1].Name
}
