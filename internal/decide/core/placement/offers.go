package placement

import (
	"time"

	"scrimp/internal/decide/core/step"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/state"
	"scrimp/internal/market"
)

// Need is what some jobs ask for, with the class of offers that do for it.
type Need struct {
	class *plan.Class // nil: not made, or dropped
}

// What is for sale is sorted for each class: mostClasses are kept, and fewer where more
// than classedOffers would be in them.
const (
	mostClasses   = 512
	classedOffers = 8 << 20
)

// needOf is that of j.
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

// Class is what does for j of all that is for sale.
func (mk *Market) Class(j *state.Job) *plan.Class {
	n := mk.needOf(j)
	if n.class == nil {
		if most := max(16, classedOffers/(len(mk.State.Sale())+1)); len(mk.built) >= min(most, mostClasses) {
			drop := mk.seq % len(mk.built) // not the oldest: those may be asked for in turn
			mk.seq++
			mk.built[drop].class, mk.built[drop] = nil, n
		} else {
			mk.built = append(mk.built, n)
		}
		n.class = plan.NewClass(mk.listings, j.Terms().Need)
	}
	return n.class
}

// List lists what is for sale anew, for decisions.
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

// listed reports whether l is among what decisions see.
func (mk *Market) listed(l *state.Listing) bool { return mk.listings.Of(l.Offer().ID) == l.Plan() }

// lookout is what was found out about a job when it was decided last.
type lookout struct {
	Guard time.Time // when the guard will hold; zero: never
	Kin   int64     // near to that of jobs that may share a table
	Due   bool      // it is going to be reviewed
	need  *Need     // nil: not looked up
	Table *Awaited  // that the decision lacked; nil: none
	bid   *bidding  // for what is reserved; nil: none was made
}

// LookoutOf is that of j.
func LookoutOf(j *state.Job) *lookout { return step.Slot[lookout](j, step.OfPlacement) }

// ManyOffers is from how many on all that is for sale is listed anew, and all jobs are
// reviewed, and not each offer and each job by itself.
const ManyOffers = 256

// Relist lists what the event changed, and reports whether that is everything.
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

// ReviewWho has the jobs reviewed that one of those offers concerns: they hold or ask for
// it, or it does for what they ask, or did.
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
