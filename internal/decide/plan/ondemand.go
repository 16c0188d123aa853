package plan

import (
	"iter"
	"slices"
	"time"

	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// Work is past or future work, to be priced on on-demand machines.
type Work struct {
	Span     time.Duration  // useful work on a machine of speed 1, done the job's own way
	StartUp  time.Duration  // from the machine's first billed second to the program's first
	Ways     []string       // variants that may do it, "" for the job's own way; empty: any
	Nodes    int            // machines at once
	Currency money.Currency // of the job
	Reads    bool           // what reading the inputs costs decides between machines too
	Unsaving bool           // the job saves nothing: one machine does all of it, or none can
}

// OnDemand is the cheapest on-demand offer and the cost of the work there.
type OnDemand struct {
	Offer market.OfferID
	Cost  money.Amount
}

// OnDemand prices work on the cheapest on-demand machine that could do it: a machine that meets the requirements,
// in a place where the job may run, at its current price and at its speed for one of the ways in which the work was
// done. It counts one start-up, or one per machine if machines have a longest lifetime. The job's maximum price
// does not apply. The cost is that of the machines alone. ok is false if there is no such machine.
func (n *Need) OnDemand(w Work, sale iter.Seq[*Listing]) (best OnDemand, ok bool) {
	var least money.Amount
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
		reads, known := n.ReadCosts(o, max(1, w.Nodes))
		switch {
		case !w.Reads:
			reads = money.Amount{}
		case !known:
			continue
		}
		cost := l.Quote.Rate.Until(span)
		for range w.Nodes - 1 {
			cost = cost.Add(l.Quote.Rate.Until(span))
		}
		all := cost.Add(reads)
		if order := all.Cmp(least); !ok || order < 0 || order == 0 && o.ID < best.Offer {
			best, least, ok = OnDemand{o.ID, cost}, all, true
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

// on returns how long machines of o are billed for the work. If their lifetime is shorter than the work, one
// follows another, each with its start-up. done is false if the work could never finish there.
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

// does reports whether a machine of l meets the requirements of the way, in a place where the job may run.
func (n *Need) does(way int, l *Listing) bool {
	asks, _ := n.way(way)
	most := l.Offer.AtOnce()
	return asks.equip(l) == "" && asks.there(&l.Offer) && (most == 0 || n.Machines <= most)
}

// name returns the name of a way: the variant's, or "" for the job's own.
func (n *Need) name(way int) string {
	if way == 0 {
		return ""
	}
	return n.Variants[way-1].Name
}
