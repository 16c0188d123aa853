package lifecycle

import (
	"scrimp/internal/decide/core/placement"
	"scrimp/internal/decide/state"
	"scrimp/internal/market"
)

// Market takes offers and quotes: what waits may be tried again, and what holds a
// machine is reviewed, where it could have what is named. Where the market is polled at
// set times all are: a policy may count on it.
func (js *Jobs) Market(b state.MarketSeen) {
	if len(b.Offers) > 0 {
		js.market.FindPrepaid()
	}
	js.queue.Queue.Changed()
	n := len(b.Offers) + len(b.Quotes)
	if js.market.Relist() || n == 0 || n > placement.ManyOffers || js.Config().Poll > 0 {
		for _, j := range js.State.Running() {
			js.market.Review.Add(j)
		}
		return
	}
	named := make(map[market.OfferID]*state.Listing, len(b.Quotes)+len(b.Offers))
	for _, o := range b.Offers {
		named[o.ID] = js.State.Listing(o.ID)
	}
	for _, q := range b.Quotes {
		if l := js.State.Listing(q.Offer); l != nil {
			named[q.Offer] = l
		}
	}
	js.market.ReviewWho(named)
}

// TableReady has the jobs decided again that were without it.
func (ts *Attempts) TableReady(key string) {
	t := ts.market.Tables[key]
	if t == nil {
		return
	}
	delete(ts.market.Tables, key)
	waits := false
	for _, j := range t.Jobs {
		if placement.LookoutOf(j).Table != t {
			continue
		}
		placement.LookoutOf(j).Table = nil
		if j.Holds() {
			ts.market.Review.Add(j)
		} else {
			waits = true
		}
	}
	if waits {
		ts.queue.Queue.Changed()
	}
}
