package core

import (
	"encoding/json"
	"iter"
	"slices"
	"time"

	"scrimp/internal/decide/core/placement"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/policy"
	"scrimp/internal/decide/state"
	"scrimp/internal/market"
)

// State is the state that the machine decides about. Read it only between steps.
func (m *Machine) State() *state.State { return m.step.State }

// Now is the time of the last event.
func (m *Machine) Now() time.Time { return m.step.State.Now() }

// Seq is the number of events that the machine has processed.
func (m *Machine) Seq() uint64 { return m.step.State.Seq() }

// Job returns the job with the given ID. Callers may only read it, between steps.
func (m *Machine) Job(id string) (*Job, bool) {
	j := m.step.State.Job(id)
	return j, j != nil
}

// Allocation returns a request for machines that is pending or being cancelled.
func (m *Machine) Allocation(id string) (*Allocation, bool) {
	a := m.step.State.Allocation(id)
	return a, a != nil
}

// Attempt returns the attempt with the given ID while it may still cost something.
func (m *Machine) Attempt(id string) (*Attempt, bool) {
	a := m.step.State.Attempt(id)
	return a, a != nil
}

// Jobs yields all jobs in the order of submission.
func (m *Machine) Jobs() iter.Seq[*Job] { return slices.Values(m.step.State.Jobs()) }

// JobsAfter yields the jobs submitted after the given job, oldest first. An empty id yields all jobs. ok is false
// if the job is unknown.
func (m *Machine) JobsAfter(id string) (jobs iter.Seq[*Job], ok bool) {
	return m.step.State.JobsAfter(id)
}

// JobsBefore yields the jobs submitted before the given job, newest first. An empty id yields all jobs. ok is false
// if the job is unknown.
func (m *Machine) JobsBefore(id string) (jobs iter.Seq[*Job], ok bool) {
	return m.step.State.JobsBefore(id)
}

// Len returns the number of jobs, including ended ones.
func (m *Machine) Len() int { return len(m.step.State.Jobs()) }

// Live returns the attempts that may still cost something, by job ID.
func (m *Machine) Live() []*Attempt {
	var list []*Attempt
	for _, j := range m.step.State.Running() {
		for _, a := range j.Open() {
			if a.Live() {
				list = append(list, a)
			}
		}
	}
	return list
}

// Rents reports whether a machine of the provider may cost something, or is requested.
func (m *Machine) Rents(provider string) bool {
	for _, i := range m.step.State.Instances() {
		if i.Live() && i.Machine().Provider == provider {
			return true
		}
	}
	for a := range m.step.State.Allocations() {
		if a.Machine().Provider == provider {
			return true
		}
	}
	return false
}

// Quiet reports whether no job waits or runs and nothing is rented.
func (m *Machine) Quiet() bool { return m.step.State.Quiet() && m.queue.Queue.Len() == 0 }

// Sale yields the offers for sale with their newest quote and hazard, by ID.
func (m *Machine) Sale() iter.Seq2[market.Offer, Listing] {
	return func(yield func(market.Offer, Listing) bool) {
		for _, l := range m.step.State.Sale() {
			o, q := l.Offer(), l.Quote()
			if o.Reserved.Count > 0 && m.market.Free(o) <= 0 {
				q.Available = false
			}
			v := Listing{Quote: q, Hazard: l.Hazard()}
			if until, cools := m.step.State.Cooling(l); cools {
				v.Cools, v.CoolsFor = until, m.step.State.CoolsFor(l)
			}
			if !yield(*o, v) {
				return
			}
		}
	}
}

// Listing is the present knowledge about an offer.
type Listing struct {
	Quote  market.Quote
	Hazard policy.Hazard
	// Cools is the end of its backoff after a refused launch or a machine that did not come; zero: none. CoolsFor
	// is the reason given; empty: none.
	Cools    time.Time
	CoolsFor string
}

// SpotHeld returns by offer how long running spot machines have run up to t. The hazard of a listing counts only
// ended machines. Without the running ones, an offer whose machines last would look as bad as its first losses.
func (m *Machine) SpotHeld(t time.Time) map[market.OfferID]time.Duration {
	held := map[market.OfferID]time.Duration{}
	for a := range m.step.State.Attempts() {
		for _, k := range a.Tasks() {
			if placement.IsSpot(a) && k.Live() {
				held[a.Offer()] += max(0, t.Sub(k.Rented()))
			}
		}
	}
	for _, i := range m.step.State.Waiting() {
		if i.Machine().Capacity == market.Spot {
			held[i.Machine().Offer] += max(0, t.Sub(i.From()))
		}
	}
	return held
}

// Head returns the hash of the tenant's last posting.
func (m *Machine) Head(tenant string) ledger.Hash { return m.step.State.Head(tenant) }

// ChangedAt returns the sequence number of the last event that may have changed j.
func (m *Machine) ChangedAt(j *Job) uint64 { return j.ChangedAt() }

// Snapshot encodes the whole state. Equal states give equal bytes.
func (m *Machine) Snapshot() (json.RawMessage, error) { return m.step.State.Snapshot() }

// Freeze captures the current state until it is encoded or Freeze is called again.
func (m *Machine) Freeze(since uint64) *state.Snapshot { return m.step.State.Freeze(since) }

// ChangedJobs estimates how many jobs a Freeze since that event would encode.
func (m *Machine) ChangedJobs(since uint64) int { return m.step.State.ChangedJobs(since) }

// Restore returns a machine that continues from the state that Snapshot encoded as b.
func Restore(b json.RawMessage) (*Machine, error) {
	s, err := state.Restore(b)
	if err != nil {
		return nil, err
	}
	return On(s, plan.NewPlanner()), nil
}

// PreemptsNobody is preempt.Preempter.Nobody.
func (m *Machine) PreemptsNobody(j *state.Job, at func(time.Time) string) string {
	return m.preempter.Nobody(j, at)
}

// YieldsTo returns the critical job that a preempted job leaves its seat to; ok is false if it leaves it to none.
func (m *Machine) YieldsTo(j *state.Job) (by *state.Job, ok bool) {
	if !m.decider.Yields(j) {
		return nil, false
	}
	return m.step.State.Job(j.Attempt().Preemption().By), true
}
