package plan

import (
	"cmp"
	"slices"
	"time"

	"scrimp/internal/decide/policy/onezone"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// Listing is an offer with what is known about it now. All jobs share one Listing per offer. The caller owns it,
// changes it in place, and calls Listings.Changed if the offer or its price changed; decisions read the other
// fields directly.
type Listing struct {
	Quote market.Quote `json:"quote"`
	// Backoff is until when scrimp does not request the offer after it refused a launch; zero: it did not.
	Backoff time.Time     `json:"backoff,omitzero"`
	Offer   market.Offer  `json:"offer"`
	Watch   onezone.Watch `json:"watch,omitzero"`  // spot observations
	Record  Record        `json:"record,omitzero"` // the same for jobs that choose between zones
	Low     Low           `json:"low,omitzero"`

	number int  // position in its Listings, from 0
	shared bool // several tasks may share a machine of it
}

// Low is the lowest price at which the offer was available.
type Low struct {
	Rate  money.Rate `json:"rate"`
	Known bool       `json:"known,omitempty"`
}

// cools reports whether the offer is in backoff after a refused launch.
func (l *Listing) cools(now time.Time) bool { return l.Backoff.After(now) }

// cools reports whether the job may not request o: it is in backoff, or the job has a pending request for it.
func (job *Job) cools(o *Option) bool {
	return o.Backoff.After(job.Progress.Now) || job.Pending != "" && o.Offer.ID == job.Pending
}

// prepaid reports whether the offer is paid for whether used or not. Using it costs its marginal rate, or nothing.
func (l *Listing) prepaid() bool { return l.Offer.Reserved.Count > 0 }

func (l *Listing) spot() bool { return l.Offer.Capacity == market.Spot }

// Listings are all offers of a market. Each class made for it follows its changes when it is next used: a market
// whose prices all change at once is sorted once, and one with a few changes is never sorted again.
type Listings struct {
	// Shared reports whether a provider lets several tasks share a machine; nil: none does. If its answers change,
	// the Listings must be built again.
	Shared  func(provider string) bool
	all     []*Listing // by ID
	changes []*Listing // recent changes, oldest first
	version uint64     // total number of changes
}

// keptChanges is how many changes a class may lag behind before it is rebuilt.
const keptChanges = 256

// Add adds a new offer.
func (s *Listings) Add(l *Listing) {
	i, _ := s.find(l.Offer.ID)
	l.number, l.shared = len(s.all), s.Shared != nil && s.Shared(l.Offer.Provider)
	s.all = slices.Insert(s.all, i, l)
	s.Changed(l)
}

// Changed must be called after the price or terms of l changed. Its ID must not change.
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

// LowestRate returns the lowest price an hour of the available offers that meet the requirements; ok is false if
// there is none.
func (s *Listings) LowestRate(n *Need) (rate money.Rate, ok bool) {
	for _, l := range s.all {
		if !l.Quote.Available || ok && l.Quote.Rate >= rate {
			continue
		}
		if _, fits := n.Fits(l); fits {
			rate, ok = l.Quote.Rate, true
		}
	}
	return rate, ok
}

// Cheapest returns the price and speed of the available machine on which the work costs the least, or false if no
// machine does the work. It treats spot as never interrupted.
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
