package state

import (
	"cmp"
	"math/big"
	"slices"
	"time"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/money"
)

// Seat is a task's place on an instance.
type Seat struct {
	Attempt string   `json:"attempt"`
	Rank    int      `json:"rank,omitempty"`
	Portion *Portion `json:"portion,omitempty"` // nil: the whole machine
}

// Portion is the share of a task in a machine that may serve several at once.
type Portion struct {
	CPUs    int   `json:"cpus,omitempty"`
	Memory  int64 `json:"memory_bytes,omitempty"`
	Devices []int `json:"devices,omitempty"` // accelerators, by index from 0
	// Share is the largest of its shares of the three, in millionths. The machine's cost is split by Share among
	// the tasks that have a portion at the same time.
	Share int64 `json:"share"`
}

// wholeShare is the share of a task that has the machine to itself.
const wholeShare = 1_000_000

func (s *Seat) share() int64 {
	if s.Portion == nil {
		return wholeShare
	}
	return s.Portion.Share
}

// span is a time during which the same tasks had an instance.
type span struct {
	From  time.Time    `json:"from"`
	Cost  money.Amount `json:"cost"` // cost of the machine when the span began
	Seats []Seat       `json:"seats"`
}

// Partly returns the machines that may have room for another portion, sorted by ID: every task on them has only a
// portion.
func (s *State) Partly() []*Instance { return s.partly }

// lists updates whether the lists of idle machines and of machines with room have the instance.
func (s *State) lists(i *Instance) {
	s.waiting = among(s.waiting, i, i.Live() && i.idle() != nil)
	whole := func(x Seat) bool { return x.Portion == nil }
	partly := i.Live() && len(i.r.Seats) > 0 && !slices.ContainsFunc(i.r.Seats, whole)
	s.partly = among(s.partly, i, partly)
	user, team := Sharer{}, Sharer{}
	if partly {
		if j := s.JobOf(i.r.Seats[0].Attempt); j != nil { // a snapshot restores instances before jobs
			user = Sharer{Tenant: j.Tenant(), User: j.User()}
			team = Sharer{Tenant: j.Tenant(), Team: j.r.Terms.Owner.Team}
		}
	}
	i.user, i.team = s.relist(i, i.user, user), s.relist(i, i.team, team)
}

// Sharer is a user, or a team, whose first task has a portion of a machine.
type Sharer struct{ Tenant, User, Team string }

// PartlyOf returns the machines of Partly whose first task is of the user or of the team, sorted by ID.
func (s *State) PartlyOf(by Sharer) []*Instance { return s.partlyOf[by] }

// relist moves an instance from one list of PartlyOf to another, and returns the latter's key.
func (s *State) relist(i *Instance, from, to Sharer) Sharer {
	if from == to {
		return to
	}
	if from != (Sharer{}) {
		if s.partlyOf[from] = among(s.partlyOf[from], i, false); len(s.partlyOf[from]) == 0 {
			delete(s.partlyOf, from)
		}
	}
	if to != (Sharer{}) {
		s.partlyOf[to] = among(s.partlyOf[to], i, true)
	}
	return to
}

// among returns a list, sorted by ID, with or without the instance.
func among(list []*Instance, i *Instance, is bool) []*Instance {
	n, found := slices.BinarySearchFunc(list, i.r.ID, func(x *Instance, id string) int { return cmp.Compare(x.r.ID, id) })
	switch {
	case is && !found:
		return slices.Insert(slices.Clone(list), n, i)
	case !is && found:
		return slices.Delete(slices.Clone(list), n, n+1)
	}
	return list
}

// sits gives the task of an allocation a seat on an existing instance.
func (s *State) sits(a *Allocation, i *Instance) {
	if idle := i.idle(); idle != nil {
		idle.Until, idle.Taken = s.now, a.r.ID
	}
	before := i.r.Seats
	a.gets(i, grant{Instance: i.r.ID, From: s.now, Rate: i.PresentRate(), Before: i.Cost(s.now), Warm: true})
	i.r.Seats = append(slices.Clone(before), Seat{Attempt: a.r.ID, Portion: a.r.Portion})
	if i.r.Job == "" {
		i.r.Job = a.r.Job
	}
	if len(before) > 0 && len(i.r.Spans) == 0 {
		first := &s.AttemptOf(before[0].Attempt).On(i.r.ID).r
		i.r.Spans = []span{{From: first.From, Cost: first.Before, Seats: before}}
	}
	if len(before) > 0 {
		i.r.Several = true
		s.spans(i)
	}
	s.lists(i)
}

// spans starts another span of an instance, and drops leading spans whose tasks have all left.
func (s *State) spans(i *Instance) {
	list := append(slices.Clone(i.r.Spans), span{From: s.now, Cost: i.Cost(s.now), Seats: slices.Clone(i.r.Seats)})
	gone := func(x Seat) bool { return !i.seats(x.Attempt) }
	for len(list) > 1 && !slices.ContainsFunc(list[0].Seats, func(x Seat) bool { return !gone(x) }) {
		list = list[1:]
	}
	i.r.Spans = list
}

// Divided reports whether tasks shared the machine, so that each paid for its part.
func (i *Instance) Divided() bool { return len(i.r.Spans) > 0 }

// rises removes a task from its seat.
func (s *State) rises(i *Instance, t *Task) {
	attempt := t.attempt.r.ID
	i.r.Seats = slices.DeleteFunc(slices.Clone(i.r.Seats), func(x Seat) bool { return x.Attempt == attempt })
	i.r.Served = append(slices.Clone(i.r.Served), attempt)
	t.instance = nil
	switch {
	case len(i.r.Seats) == 0:
		i.r.Job, i.r.Spans = "", nil
	case len(i.r.Spans) > 0:
		i.r.Job = s.JobOf(i.r.Seats[0].Attempt).r.ID
		s.spans(i)
	}
	s.lists(i)
}

// partOf returns an attempt's part of the cost of the instance up to t. Each span is split by share, so the parts
// always add up to the whole.
func (i *Instance) partOf(attempt string, t time.Time) (sum money.Amount) {
	if end := i.r.Until; !end.IsZero() && t.After(end) {
		t = end
	}
	for n := range i.r.Spans {
		p := &i.r.Spans[n]
		if p.From.After(t) {
			break
		}
		end := n+1 == len(i.r.Spans) || i.r.Spans[n+1].From.After(t)
		to := i.Cost(t)
		if !end {
			to = i.r.Spans[n+1].Cost
		}
		sum = sum.Add(p.part(attempt, to.Sub(p.Cost)))
		if end {
			break
		}
	}
	return sum
}

// part returns an attempt's part of a cost within the span.
func (p *span) part(attempt string, cost money.Amount) money.Amount {
	at := slices.IndexFunc(p.Seats, func(x Seat) bool { return x.Attempt == attempt })
	switch {
	case at < 0:
		return money.Amount{}
	case len(p.Seats) == 1:
		return cost
	}
	weights := make([]*big.Int, len(p.Seats))
	for n := range p.Seats {
		weights[n] = big.NewInt(p.Seats[n].share())
	}
	parts, _ := ledger.Allocate(cost, weights) // Allocate cannot fail: no share is 0
	return parts[at]
}

// rateOf returns an attempt's part of the hourly price.
func (i *Instance) rateOf(attempt string) money.Rate {
	rate := i.PresentRate()
	if len(i.r.Seats) < 2 {
		return rate
	}
	var mine, all int64
	for n := range i.r.Seats {
		share := i.r.Seats[n].share()
		if all += share; i.r.Seats[n].Attempt == attempt {
			mine = share
		}
	}
	return money.Rate(Share(time.Duration(rate), mine, all))
}

// SeatedAll returns the attempts on the instance, in the order of their seats.
func (s *State) SeatedAll(i *Instance) (list []*Attempt) {
	for _, seat := range i.r.Seats {
		if a := s.AttemptOf(seat.Attempt); a != nil {
			list = append(list, a)
		}
	}
	return list
}

// TasksOn returns the tasks on the instance, in the order of their seats.
func (s *State) TasksOn(i *Instance) (list []*Task) {
	for _, a := range s.SeatedAll(i) {
		if t := a.On(i.r.ID); t != nil {
			list = append(list, t)
		}
	}
	return list
}

// Leaving returns the tasks that must leave their seats while others keep theirs, by attempt and rank.
func (s *State) Leaving() []*Task { return s.leaving }

// isLeaving adds a task to those.
func (s *State) isLeaving(t *Task) {
	before := func(x, y *Task) int {
		return cmp.Or(cmp.Compare(x.attempt.r.ID, y.attempt.r.ID), cmp.Compare(x.r.Rank, y.r.Rank))
	}
	if n, found := slices.BinarySearchFunc(s.leaving, t, before); !found {
		s.leaving = slices.Insert(slices.Clone(s.leaving), n, t)
	}
}
