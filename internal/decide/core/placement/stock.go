package placement

import (
	"scrimp/internal/decide/state"
	"scrimp/internal/market"
)

// stock counts the machines of reserved offers that live attempts have, and lists the jobs that hold a machine of each
// offer and those that are about to move. It is not part of the recorded state. A job that changes is counted again at
// the next question or at the end of the step, so that neither a decision nor a booking scans all running jobs.
type stock struct {
	counted bool
	used    map[market.OfferID]int
	sharers map[string]int // live attempts on each machine that one task or several may have
	jobs    map[*state.Job][]seating
	holders map[market.OfferID]map[*state.Job]bool
	moving  map[*state.Job]bool // they have a destination
	changed []*state.Job
}

// seating is one live attempt's use of an offer.
type seating struct {
	offer   market.OfferID
	prepaid bool
	machine string // empty: an attempt on several machines, or on one that is not known
	nodes   int
}

// Touch must be called before a job changes.
func (mk *Market) Touch(j *state.Job) {
	s := &mk.stock
	if n := len(s.changed); s.counted && (n == 0 || s.changed[n-1] != j) {
		s.changed = append(s.changed, j)
	}
}

// Settle must be called at the end of a step: readers, of whom several may ask at the same time, then find the counts
// complete, and a million submissions between two questions leave nothing to do.
func (mk *Market) Settle() {
	if mk.stock.counted || len(mk.Prepaid) > 0 {
		mk.recount()
	}
}

// Settled reports whether the counts are up to date, so that a question about free seats changes nothing.
func (mk *Market) Settled() bool {
	return mk.stock.counted && len(mk.stock.changed) == 0
}

// recount brings the counts up to date.
func (mk *Market) recount() {
	s := &mk.stock
	if mk.Settled() {
		return
	}
	if !s.counted {
		*s = stock{counted: true, used: map[market.OfferID]int{}, sharers: map[string]int{},
			jobs:    map[*state.Job][]seating{},
			holders: map[market.OfferID]map[*state.Job]bool{}, moving: map[*state.Job]bool{}}
		for _, j := range mk.State.Running() {
			mk.count(j)
		}
		return
	}
	for _, j := range s.changed {
		for _, x := range s.jobs[j] {
			s.add(x, -1)
			if delete(s.holders[x.offer], j); len(s.holders[x.offer]) == 0 {
				delete(s.holders, x.offer)
			}
		}
		delete(s.jobs, j)
		delete(s.moving, j)
	}
	for n, j := range s.changed {
		if s.changed[n] = nil; j.Holds() && s.jobs[j] == nil {
			mk.count(j)
		}
	}
	s.changed = s.changed[:0]
}

// count adds what j has.
func (mk *Market) count(j *state.Job) {
	s := &mk.stock
	if j.MigratingTo() != "" {
		s.moving[j] = true
	}
	for _, a := range j.Open() {
		if !a.Live() {
			continue
		}
		x := seating{a.Offer(), a.Machine().Prepaid, "", a.Nodes()}
		if a.Nodes() == 1 {
			x.machine = a.Instance()
		}
		s.jobs[j] = append(s.jobs[j], x)
		s.add(x, 1)
		if s.holders[x.offer] == nil {
			s.holders[x.offer] = map[*state.Job]bool{}
		}
		s.holders[x.offer][j] = true
	}
}

// add counts a seating (by 1) or takes it off again (by -1). Attempts that share a machine count it once.
func (s *stock) add(x seating, by int) {
	if !x.prepaid {
		return
	}
	if x.machine == "" {
		s.used[x.offer] += by * x.nodes
		return
	}
	before := s.sharers[x.machine]
	after := before + by
	if s.sharers[x.machine] = after; after == 0 {
		delete(s.sharers, x.machine)
	}
	if before == 0 || after == 0 {
		s.used[x.offer] += by
	}
}

// Free is the number of machines of a reserved offer that no job has or requests.
func (mk *Market) Free(o *market.Offer) int {
	free, _ := mk.SeatsOf(o, nil)
	return free
}

// SeatsOf returns how many machines of a reserved offer no job has or requests, and how many are kept for jobs
// other than j: a round has placed those jobs there, or they leave their machines for it.
func (mk *Market) SeatsOf(o *market.Offer, j *state.Job) (free, kept int) {
	mk.recount()
	free = o.Reserved.Count - mk.stock.used[o.ID]
	for a := range mk.State.Allocations() {
		if a.Offer() == o.ID {
			free -= a.Nodes()
		}
	}
	for k := range mk.stock.moving {
		if k != j && k.Asked() == nil && k.MigratingTo() == o.ID {
			if offer, _ := k.Kept(mk.Now()); offer != o.ID {
				kept += mk.decider.nodesOf(k)
			}
		}
	}
	for _, k := range mk.bids.Rounds.Kept {
		if offer, nodes := k.Kept(mk.Now()); k != j && offer == o.ID {
			kept += nodes
		}
	}
	return free, kept
}
