package core

import (
	"time"

	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/state"
	"scrimp/internal/market"
)

// need is what some jobs ask for, with the class of offers that do for it.
type need struct {
	class *plan.Class // nil: not made, or dropped
}

// What is for sale is sorted for each class: mostClasses are kept, and fewer where more
// than classedOffers would be in them.
const (
	mostClasses   = 512
	classedOffers = 8 << 20
)

// needOf is that of j.
func (m *Machine) needOf(j *Job) *need {
	p := lookoutOf(j)
	if p.need == nil {
		key := j.Terms().Need.Key()
		if m.needs[key] == nil {
			m.needs[key] = &need{}
		}
		p.need = m.needs[key]
	}
	return p.need
}

// class is what does for j of all that is for sale.
func (m *Machine) class(j *Job) *plan.Class {
	n := m.needOf(j)
	if n.class == nil {
		if most := max(16, classedOffers/(len(m.s.Sale())+1)); len(m.built) >= min(most, mostClasses) {
			drop := m.seq % len(m.built) // not the oldest: those may be asked for in turn
			m.seq++
			m.built[drop].class, m.built[drop] = nil, n
		} else {
			m.built = append(m.built, n)
		}
		n.class = plan.NewClass(m.listings, j.Terms().Need)
	}
	return n.class
}

// list lists what is for sale anew, for decisions.
func (m *Machine) list() {
	m.listings = &plan.Listings{Shared: func(provider string) bool { return shares(m.cfg(), provider) }}
	for _, l := range m.s.Sale() {
		if l.Offer().Currency == m.cfg().Currency {
			m.listings.Add(l.Plan())
		}
	}
	for _, n := range m.built {
		n.class = nil
	}
	m.built = nil
}

// listed reports whether l is among what decisions see.
func (m *Machine) listed(l *state.Listing) bool { return m.listings.Of(l.Offer().ID) == l.Plan() }

// lookout is what was found out about a job when it was decided last.
type lookout struct {
	guard time.Time // when the guard will hold; zero: never
	kin   int64     // near to that of jobs that may share a table
	due   bool      // it is going to be reviewed
	need  *need     // nil: not looked up
	table *awaited  // that the decision lacked; nil: none
	bid   *bidding  // for what is reserved; nil: none was made
}

// lookoutOf is that of j.
func lookoutOf(j *Job) *lookout { return slot[lookout](j, ofPlacement) }

// manyOffers is from how many on all that is for sale is listed anew, and all jobs are
// reviewed, and not each offer and each job by itself.
const manyOffers = 256

// market takes offers and quotes: what waits may be tried again, and what holds a
// machine is reviewed, where it could have what is named. Where the market is polled at
// set times all are: a policy may count on it.
func (m *Machine) market(b MarketSeen) {
	if len(b.Offers) > 0 {
		m.findPrepaid()
	}
	m.queue.changed()
	if n := len(b.Offers) + len(b.Quotes); m.relist() || n == 0 || n > manyOffers || m.cfg().Poll > 0 {
		for _, j := range m.s.Running() {
			m.review.add(j)
		}
		return
	}
	named := make(map[market.OfferID]*state.Listing, len(b.Quotes)+len(b.Offers))
	for _, o := range b.Offers {
		named[o.ID] = m.s.Listing(o.ID)
	}
	for _, q := range b.Quotes {
		if l := m.s.Listing(q.Offer); l != nil {
			named[q.Offer] = l
		}
	}
	m.reviewWho(named)
}

// relist lists what the event changed, and reports whether that is everything.
func (m *Machine) relist() (all bool) {
	changed := m.s.Repriced()
	if len(changed) > manyOffers {
		m.list()
		return true
	}
	for _, l := range changed {
		switch ours := l.Offer().Currency == m.cfg().Currency; {
		case m.listed(l) && ours:
			m.listings.Changed(l.Plan())
		case ours:
			m.listings.Add(l.Plan())
		case m.listed(l):
			m.list()
			return true
		}
	}
	return false
}

// reviewWho has the jobs reviewed that one of those offers concerns: they hold or ask for
// it, or it does for what they ask, or did.
func (m *Machine) reviewWho(named map[market.OfferID]*state.Listing) {
	concerned := map[*need]bool{}
	concerns := func(n *need) bool {
		if n.class == nil {
			return true
		}
		for _, l := range named {
			if m.listed(l) && n.class.Concerns(l.Plan()) {
				return true
			}
		}
		return false
	}
	for _, j := range m.s.Running() {
		n := m.needOf(j)
		is, known := concerned[n]
		if !known {
			is = concerns(n)
			concerned[n] = is
		}
		if is || m.holdsOneOf(j, named) {
			m.review.add(j)
		}
	}
}

func (m *Machine) holdsOneOf(j *Job, named map[market.OfferID]*state.Listing) bool {
	if a := j.Asked(); a != nil && named[a.Offer()] != nil {
		return true
	}
	a := j.Live()
	return a != nil && named[a.Offer()] != nil || named[j.MigratingTo()] != nil
}
