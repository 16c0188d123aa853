package placement

import (
	"time"

	"scrimp/internal/decide/core/step"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/state"
	"scrimp/internal/market"
)

// Need is a set of requirements with its class of suitable offers.
type Need struct {
	class *plan.Class // nil: not built, or dropped
}

// Each class sorts the offers for sale. At most mostClasses are kept, or fewer if together they would have more
// than classedOffers offers.
const (
	mostClasses   = 512
	classedOffers = 8 << 20
)

// needOf returns the Need of j.
func (mk *Market) needOf(j *state.Job) *Need {
	p := LookoutOf(j)
	if p.need == nil {
		key := j.Terms().Need.Key()
		if mk.Needs[key] == nil {
			mk.Needs[key] = &Need{}
		}
		p.need = mk.Needs[key]
	}
	return p.need
}

// Class returns the class of offers that suit j.
func (mk *Market) Class(j *state.Job) *plan.Class {
	n := mk.needOf(j)
	if n.class == nil {
		if most := max(16, classedOffers/(len(mk.State.Sale())+1)); len(mk.built) >= min(most, mostClasses) {
			drop := mk.seq % len(mk.built) // not the oldest, because classes may be used in turn
			mk.seq++
			mk.built[drop].class, mk.built[drop] = nil, n
		} else {
			mk.built = append(mk.built, n)
		}
		n.class = plan.NewClass(mk.listings, j.Terms().Need)
	}
	return n.class
}

// List rebuilds the listings that decisions see.
func (mk *Market) List() {
	mk.listings = &plan.Listings{Shared: func(provider string) bool { return shares(mk.Config(), provider) }}
	for _, l := range mk.State.Sale() {
		if l.Offer().Currency == mk.Config().Currency {
			mk.listings.Add(l.Plan())
		}
	}
	for _, n := range mk.built {
		n.class = nil
	}
	mk.built = nil
}

// listed reports whether decisions see l.
func (mk *Market) listed(l *state.Listing) bool { return mk.listings.Of(l.Offer().ID) == l.Plan() }

// lookout holds the findings of the last decision about a job.
type lookout struct {
	Guard    time.Time // when the guard will apply; zero: never
	TableKey int64     // close to that of jobs that may share a table
	Due      bool      // a review is scheduled
	need     *Need     // nil: not looked up
	Table    *Awaited  // table that the decision lacked; nil: none
	bid      *bidding  // bid for reserved offers; nil: none
}

// LookoutOf returns the lookout of j.
func LookoutOf(j *state.Job) *lookout { return step.Slot[lookout](j, step.OfPlacement) }

// ManyOffers is the number of changed offers above which everything is listed again and all jobs are reviewed,
// instead of each offer and job separately.
const ManyOffers = 256

// Relist lists the offers that the event changed, and reports whether that is everything.
func (mk *Market) Relist() (all bool) {
	changed := mk.State.Repriced()
	if len(changed) > ManyOffers {
		mk.List()
		return true
	}
	for _, l := range changed {
		switch ours := l.Offer().Currency == mk.Config().Currency; {
		case mk.listed(l) && ours:
			mk.listings.Changed(l.Plan())
		case ours:
			mk.listings.Add(l.Plan())
		case mk.listed(l):
			mk.List()
			return true
		}
	}
	return false
}

// ReviewWho schedules a review of the jobs that one of the offers concerns: they hold or request it, or it suits
// them now or did before.
func (mk *Market) ReviewWho(named map[market.OfferID]*state.Listing) {
	concerned := map[*Need]bool{}
	concerns := func(n *Need) bool {
		if n.class == nil {
			return true
		}
		for _, l := range named {
			if mk.listed(l) && n.class.Concerns(l.Plan()) {
				return true
			}
		}
		return false
	}
	for _, j := range mk.State.Running() {
		n := mk.needOf(j)
		is, known := concerned[n]
		if !known {
			is = concerns(n)
			concerned[n] = is
		}
		if is || mk.holdsOneOf(j, named) {
			mk.Review.Add(j)
		}
	}
}

func (mk *Market) holdsOneOf(j *state.Job, named map[market.OfferID]*state.Listing) bool {
	if a := j.Asked(); a != nil && named[a.Offer()] != nil {
		return true
	}
	a := j.Live()
	return a != nil && named[a.Offer()] != nil || named[j.MigratingTo()] != nil
}
