package core

import (
	"cmp"
	"slices"

	"scrimp/internal/market"
	"scrimp/internal/plan"
)

func (m *Machine) seeMarket(out *Outcome, b MarketSeen) {
	for _, o := range b.Offers {
		if known := m.offers[o.ID]; known != nil {
			moved := known.Offer.Currency != o.Currency
			known.Offer = o
			if moved {
				m.list()
			} else if o.Currency == m.cfg.Currency {
				m.listings.Changed(&known.Listing)
			}
			continue
		}
		added := &offer{Listing: plan.Listing{Offer: o, Quote: market.Quote{Offer: o.ID}}}
		m.offers[o.ID] = added
		i, _ := slices.BinarySearchFunc(m.sale, o.ID, func(a *offer, id market.OfferID) int { return cmp.Compare(a.Offer.ID, id) })
		m.sale = slices.Insert(m.sale, i, added)
		if o.Currency == m.cfg.Currency {
			m.listings.Add(&added.Listing)
		}
	}
	if len(b.Offers) > 0 {
		m.findPrepaid()
	}
	for _, q := range b.Quotes {
		o := m.offers[q.Offer]
		if o == nil || q.At.Before(o.Quote.At) || q.Priced && q.Rate < 0 {
			continue
		}
		if !q.Untried {
			m.sees(o, q.At, q.Available)
		}
		if q.Priced && (q.Available || q.Untried) && (!o.Low.Known || q.Rate < o.Low.Rate) {
			o.Low = plan.Low{Rate: q.Rate, Known: true}
		}
		changed := o.Quote.Rate != q.Rate || o.Quote.Priced != q.Priced
		o.Quote = q
		if changed && o.Offer.Currency == m.cfg.Currency {
			m.listings.Changed(&o.Listing)
		}
		if changed && q.Priced && o.Offer.Capacity == market.Spot {
			m.reprice(o.Offer.ID, q)
		}
	}
	m.queue.changed()
	for _, j := range m.turns() {
		m.review(out, j)
	}
}

// many is from how many jobs on they are looked at in the order of their tables.
const many = 64

// turns is the order in which the jobs that hold a machine are looked at: by ID,
// and where there are many, those side by side that share a table. A log is replayed
// in its own order.
func (m *Machine) turns() []*Job {
	m.turn = append(m.turn[:0], m.running...)
	list := m.turn
	switch {
	case len(list) <= many:
	case m.replays:
		at := make(map[string]int, len(m.replay))
		for i, d := range m.replay {
			at[d.Job] = i + 1
		}
		slices.SortStableFunc(list, func(a, b *Job) int { return cmp.Compare(at[a.ID], at[b.ID]) })
	default:
		kin := make(map[*Job][3]int64, len(list))
		for _, j := range list {
			kin[j] = plan.Kin(m.progress(j, 1))
		}
		slices.SortStableFunc(list, func(a, b *Job) int {
			x, y := kin[a], kin[b]
			return slices.Compare(x[:], y[:])
		})
	}
	return list
}
