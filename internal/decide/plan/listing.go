package plan

import (
	"cmp"
	"slices"
	"time"

	"scrimp/internal/decide/policy/horizon"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// Listing is an offer and what is known of it now. There is one of each offer, which all
// jobs share: the caller keeps it, changes it in place, and tells Listings.Changed where
// the offer itself or its price changed. The rest is read at each decision.
type Listing struct {
	Quote market.Quote `json:"quote"`
	// Backoff is until when it is not asked again after it refused a launch; zero: it did not.
	Backoff time.Time     `json:"backoff,omitzero"`
	Offer   market.Offer  `json:"offer"`
	Watch   horizon.Watch `json:"watch,omitzero"`  // what was seen of it, for spot
	Record  Record        `json:"record,omitzero"` // the same for jobs that choose between zones
	Low     Low           `json:"low,omitzero"`

	number int  // of its Listings, from 0
	shared bool // several tasks may have parts of a machine of it
}

// Low is the lowest price at which an offer could be had.
type Low struct {
	Rate  money.Rate `json:"rate"`
	Known bool       `json:"known,omitempty"`
}

// cools reports whether it refused a launch a moment ago.
func (l *Listing) cools(now time.Time) bool { return l.Backoff.After(now) }

// cools reports whether the job may not ask for o: it refused a launch a moment ago, or
// the job did ask, and waits for the answer.
func (job *Job) cools(o *Option) bool {
	return o.Backoff.After(job.Progress.Now) || job.Pending != "" && o.Offer.ID == job.Pending
}

// prepaid reports whether it is paid for, used or not: it costs its marginal rate more, or nothing.
func (l *Listing) prepaid() bool { return l.Offer.Reserved.Count > 0 }

func (l *Listing) spot() bool { return l.Offer.Capacity == market.Spot }

// Listings are all offers of a market. The classes that were made for it follow its
// changes, each when it is used next: a market of which all prices change at once is
// sorted once, and one that changes here and there never.
type Listings struct {
	// Shared says which providers let several tasks have parts of a machine; nil: none does.
	// Where its answers change all is listed anew.
	Shared  func(provider string) bool
	all     []*Listing // by ID
	changes []*Listing // the newest changes, the oldest of them first
	version uint64     // how many changes there were in all
}

// keptChanges is how many changes a class may be behind without being made anew.
const keptChanges = 256

// Add adds an offer that is not there yet.
func (s *Listings) Add(l *Listing) {
	i, _ := s.find(l.Offer.ID)
	l.number, l.shared = len(s.all), s.Shared != nil && s.Shared(l.Offer.Provider)
	s.all = slices.Insert(s.all, i, l)
	s.Changed(l)
}

// Changed is told after the price of l changed, or what it offers; not its ID.
func (s *Listings) Changed(l *Listing) {
	if len(s.changes) >= 2*keptChanges {
		s.changes = append(s.changes[:0], s.changes[keptChanges:]...)
	}
	s.changes = append(s.changes, l)
	s.version++
}

// Of returns the listing of an offer, or nil.
func (s *Listings) Of(id market.OfferID) *Listing {
	if i, ok := s.find(id); ok {
		return s.all[i]
	}
	return nil
}

func (s *Listings) find(id market.OfferID) (int, bool) {
	return slices.BinarySearchFunc(
		s.all,
		id,
		func(l *Listing, id market.OfferID) int { return cmp.Compare(l.Offer.ID, id) },
	)
}

// Cheapest is the price of the machine, of those that are for sale now, on which the work
// costs the least, and how fast the work is done there; false where none does it. Spot
// counts as if it were never interrupted.
func (s *Listings) Cheapest(n *Need) (rate money.Rate, speed float64, ok bool) {
	for _, l := range s.all {
		if !l.Quote.Available {
			continue
		}
		pace, fits := n.Fits(l)
		if fits && (!ok || l.Quote.Rate.Float()*speed < rate.Float()*pace) {
			rate, speed, ok = l.Quote.Rate, pace, true
		}
	}
	return rate, speed, ok
}
