package lifecycle

import (
	"scrimp/internal/decide/core/placement"
	"scrimp/internal/decide/state"
	"scrimp/internal/market"
)

// Market handles offers and quotes. Waiting jobs may be tried again, and jobs with a machine are reviewed if a
// named offer suits them. If the market is polled at fixed times, all of them are reviewed, because a policy may
// count on it.
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

// TableReady decides again about the jobs that waited for the table.
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
