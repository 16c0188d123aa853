package core

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"time"

	"scrimp/internal/budget"
	"scrimp/internal/ledger"
	"scrimp/internal/market"
	"scrimp/internal/policy"
)

// Pending returns what was asked for and is not answered yet. After a restart
// the shell does it again: every key makes that harmless.
func (m *Machine) Pending() []Action {
	var list []Action
	costs := map[*Job]bool{}
	for _, a := range m.attempts {
		costs[m.jobs[a.Job]] = true
	}
	for _, j := range slices.SortedFunc(maps.Keys(costs), func(a, b *Job) int { return cmp.Compare(a.place.order, b.place.order) }) {
		for _, a := range j.Attempts[min(j.Closed, len(j.Attempts)):] {
			switch {
			case !a.Live():
			case a.Phase == Asked:
				list = append(list, Launch{Job: j.ID, Attempt: a.ID, Offer: a.Offer, MaxRate: cmp.Or(a.Most, j.Terms.Need.MaxRate)})
			case a.Asking:
				list = append(list, Terminate{Instance: a.Instance, Attempt: a.ID, Why: "asked_before"})
			case a.Draining && a.Phase == Working:
				list = append(list, Drain{Attempt: a.ID, Why: a.DrainWhy, Grace: j.Terms.Grace})
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(m.orphans)) {
		list = append(list, Terminate{Instance: id, Why: "nobody_owns_it"})
	}
	return list
}

// Rules are the limits and required tags in force; ok is false where nobody has
// ever set any. They are the machine's own: change none of them.
func (m *Machine) Rules() (rules budget.Rules, ok bool) {
	if m.rules == nil {
		return budget.Rules{}, false
	}
	return *m.rules, true
}

// Now is the time of the last event.
func (m *Machine) Now() time.Time { return m.now }

// Seq is how many events the machine has taken.
func (m *Machine) Seq() uint64 { return m.seq }

// Job returns the job of that name. It is the machine's own: read it, between steps.
func (m *Machine) Job(id string) (*Job, bool) {
	j, ok := m.jobs[id]
	return j, ok
}

// Attempt returns the attempt of that name while it may still cost something.
func (m *Machine) Attempt(id string) (*Attempt, bool) {
	a, ok := m.attempts[id]
	return a, ok
}

// Jobs returns all jobs in the order of their submission.
func (m *Machine) Jobs() iter.Seq[*Job] { return slices.Values(m.inOrder) }

// JobsAfter returns the jobs that were submitted after the one of that name,
// oldest first; "" is all. ok is false where the job is not known.
func (m *Machine) JobsAfter(id string) (jobs iter.Seq[*Job], ok bool) {
	n, ok := m.position(id, -1)
	if !ok {
		return nil, false
	}
	return slices.Values(m.inOrder[n+1:]), true
}

// JobsBefore returns the jobs that were submitted before the one of that name,
// newest first; "" is all. ok is false where the job is not known.
func (m *Machine) JobsBefore(id string) (jobs iter.Seq[*Job], ok bool) {
	n, ok := m.position(id, len(m.inOrder))
	if !ok {
		return nil, false
	}
	return func(yield func(*Job) bool) {
		for _, j := range slices.Backward(m.inOrder[:n]) {
			if !yield(j) {
				return
			}
		}
	}, true
}

// position is where the job stands in the order of submission; none for "".
func (m *Machine) position(id string, none int) (int, bool) {
	if id == "" {
		return none, true
	}
	j, ok := m.jobs[id]
	if !ok {
		return 0, false
	}
	return slices.BinarySearchFunc(m.inOrder, j.place.order, func(a *Job, order uint64) int { return cmp.Compare(a.place.order, order) })
}

// Len is how many jobs there are, those that are over with them.
func (m *Machine) Len() int { return len(m.inOrder) }

// Live returns the attempts that may still cost something, in the order of their jobs' names.
func (m *Machine) Live() []*Attempt {
	var list []*Attempt
	for _, j := range m.running {
		for _, a := range j.Attempts[min(j.Closed, len(j.Attempts)):] {
			if a.Live() {
				list = append(list, a)
			}
		}
	}
	return list
}

// Quiet reports whether no job waits or runs and nothing is rented.
func (m *Machine) Quiet() bool {
	return len(m.attempts) == 0 && len(m.orphans) == 0 && m.queue.Len() == 0
}

// Sale returns what is for sale with its newest quote and hazard, by name.
func (m *Machine) Sale() iter.Seq2[market.Offer, Listing] {
	return func(yield func(market.Offer, Listing) bool) {
		for _, o := range m.sale {
			q := o.Quote
			if o.Offer.Reserved.Count > 0 && m.free(o) <= 0 {
				q.Available = false
			}
			if !yield(o.Offer, Listing{Quote: q, Hazard: o.Hazard}) {
				return
			}
		}
	}
}

// SpotHeld is how long the spot machines that run have run by t, by offer. The
// hazard of a listing counts those that are gone; without these, an offer whose
// machines last would look as bad as its first losses.
func (m *Machine) SpotHeld(t time.Time) map[market.OfferID]time.Duration {
	held := map[market.OfferID]time.Duration{}
	for _, a := range m.attempts {
		if a.Capacity == market.Spot && !a.From.IsZero() && a.Until.IsZero() {
			held[a.Offer] += max(0, t.Sub(a.From))
		}
	}
	return held
}

// Listing is what is known of an offer now.
type Listing struct {
	Quote  market.Quote
	Hazard policy.Hazard
}

// Head returns the hash of the tenant's last posting.
func (m *Machine) Head(tenant string) ledger.Hash { return m.heads[tenant] }

// Awaits reports whether the end of the instance would still be booked: it is
// counted among those that cost something, or it was given up without a bill.
func (m *Machine) Awaits(instance string) bool {
	return m.Knows(instance) || m.given[instance] != nil
}

// Knows reports whether the instance is counted among those that cost something now.
func (m *Machine) Knows(instance string) bool {
	_, orphan := m.orphans[instance]
	return orphan || m.rented[instance] != nil
}
