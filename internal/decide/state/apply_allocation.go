package state

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

func offerID(text string) market.OfferID { return market.OfferID(text) }

func (s *State) stock(id market.OfferID) *Stock {
	st := s.reserves[id]
	if st == nil {
		st = &Stock{}
		s.reserves[id] = st
	}
	return st
}

func (s *State) applyAllocation(e *Event, f Fact) {
	switch f := f.(type) {
	case AllocationRequested:
		s.requested(f)
	case AllocationQueued:
		a := s.pending(f.Allocation)
		if a.r.Queued.IsZero() {
			a.r.Queued = s.now
		}
		a.r.Detail = f.Detail
	case AllocationGranted:
		s.granted(e, f)
	case AttemptBegan:
		s.began(f)
	case AllocationCancelling:
		a := s.pending(f.Allocation)
		move(NextAllocation, "allocation", a.r.ID, &a.r.Phase, Cancelling)
		j := s.jobs[a.r.Job]
		j.runs().Asked = nil
		j.runs().Leaving = append(slices.Clone(j.runs().Leaving), a)
		s.tried(a)
		s.index(j)
	case AllocationReduced:
		a := s.pending(f.Allocation)
		a.r.Machine.Speed = cmp.Or(max(a.r.Machine.Speed, 0), 1) * float64(f.Nodes) / float64(a.r.Nodes)
		a.r.Nodes = f.Nodes
	case AllocationClosed:
		a := s.pending(f.Allocation)
		move(NextAllocation, "allocation", a.r.ID, &a.r.Phase, f.Phase)
		s.dropped(a)
	case BackedOff:
		if f.Until.IsZero() {
			s.setBackoff(f.Scope, Backoff{})
			return
		}
		b := s.backoffs[f.Scope]
		b.Tries, b.Until, b.Detail = f.Tries, f.Until, cmp.Or(f.Detail, b.Detail)
		s.setBackoff(f.Scope, b)
	}
}

// pending returns the allocation with the given ID, and marks its job as about to change.
func (s *State) pending(id string) *Allocation {
	a := s.allocations[id]
	if a == nil {
		panic("state: a fact about unknown allocation " + id)
	}
	s.touched(a.r.Job)
	return a
}

func (s *State) requested(f AllocationRequested) {
	j := s.touched(f.Job)
	r := j.runs()
	r.Epoch++
	a := &Allocation{r: allocationRecord{
		ID: j.r.ID + "." + strconv.Itoa(r.Epoch), Job: j.r.ID, Epoch: r.Epoch, Offers: []market.OfferID{f.Machine.Offer},
		Machine: f.Machine, Nodes: f.Nodes, Rate: f.Rate, Most: f.Most, Variant: f.Variant, Rung: f.Rung,
		Transfer: f.Transfer, Requested: s.now, Portion: f.Portion, Keeps: f.Keeps,
	}}
	move(NextAllocation, "allocation", a.r.ID, &a.r.Phase, Pending)
	r.Asked = a
	r.MigratingTo = ""
	s.allocations[a.r.ID] = a
	if j.r.State == Queued {
		move(NextStatus, "job", j.r.ID, &j.r.State, Running)
	}
	j.r.Why, j.r.Detail = f.Why, ""
	if r.Began.IsZero() {
		r.Began = s.now
	}
	s.index(j)
	s.asksAgain(j.User())
	for _, scope := range scopes {
		if key, b, known := s.backoffOf(scope, &a.r.Machine); known && b.Tries > 0 {
			b.Trial = a.r.ID
			s.setBackoff(key, b)
		}
	}
}

// tried ends the allocation's trial of the scopes in backoff, so that others may try them.
func (s *State) tried(a *Allocation) {
	for _, scope := range scopes {
		if key, b, known := s.backoffOf(scope, &a.r.Machine); known && b.Trial == a.r.ID {
			b.Trial = ""
			s.setBackoff(key, b)
		}
	}
}

// dropped removes a closed allocation from its job.
func (s *State) dropped(a *Allocation) {
	delete(s.allocations, a.r.ID)
	s.tried(a)
	j := s.jobs[a.r.Job]
	r := j.runs()
	if r.Asked == a {
		r.Asked = nil
	}
	r.Leaving = slices.DeleteFunc(slices.Clone(r.Leaving), func(x *Allocation) bool { return x == a })
	s.index(j)
}

// rentedIn returns the event's facts about a granted or listed instance.
func rentedIn(e *Event, instance string) Rented {
	switch b := e.Body.(type) {
	case LaunchDone:
		return Rented{Instance: b.Instance, Launch: b.Launch, Offer: b.Offer, Rate: b.Rate, From: b.From}
	case InventorySeen:
		for _, r := range b.Running {
			if r.Instance == instance {
				return r
			}
		}
	}
	panic("state: instance " + instance + " is not in the event")
}

func (s *State) granted(e *Event, f AllocationGranted) {
	a := s.pending(f.Allocation)
	if i := s.instances[f.Instance]; i != nil {
		s.sits(a, i)
		return
	}
	r := rentedIn(e, f.Instance)
	from := r.From
	if from.After(s.now) { // the provider's clock is ahead
		from = s.now
	}
	i := &Instance{r: instanceRecord{
		ID: f.Instance, Allocation: a.r.ID, Job: a.r.Job, Machine: a.r.Machine, Rate: r.Rate, From: from,
		Seats: []Seat{{Attempt: a.r.ID, Portion: a.r.Portion}},
	}}
	move(NextInstance, "instance", i.r.ID, &i.r.Phase, Provisioning)
	s.joins(i)
	s.instances[i.r.ID] = i
	s.lists(i)
	a.gets(i, grant{Instance: i.r.ID, From: from, Rate: r.Rate})
	for _, scope := range scopes {
		if key, b, known := s.backoffOf(scope, &a.r.Machine); known && !b.Until.After(s.now) {
			s.setBackoff(key, Backoff{})
		}
	}
}

// joins links the instance to the price history of its offer, if the price moves.
func (s *State) joins(i *Instance) {
	if l := s.offers[i.r.Machine.Offer]; l != nil && l.r.Offer.Capacity == market.Spot {
		i.series = &l.series
	}
}

// gets gives the allocation a machine.
func (a *Allocation) gets(i *Instance, g grant) {
	a.r.Granted, a.machines = append(slices.Clone(a.r.Granted), g), append(slices.Clone(a.machines), i)
}

// byRank sorts the machines of an allocation by rank: those of the previous attempt keep their order, then come the
// others as they were granted.
func (a *Allocation) byRank() {
	order := make([]int, len(a.r.Granted))
	for n := range order {
		order[n] = n
	}
	slices.SortStableFunc(order, func(x, y int) int {
		p, q := a.r.Granted[x].Rank, a.r.Granted[y].Rank
		if p > 0 && q > 0 {
			return p - q
		}
		return q - p // at least one is new and has rank 0
	})
	granted, machines := make([]grant, len(order)), make([]*Instance, len(order))
	for n, from := range order {
		granted[n], machines[n] = a.r.Granted[from], a.machines[from]
	}
	a.r.Granted, a.machines = granted, machines
}

// task creates the task of a rank of the attempt.
func (a *Allocation) task(t *Attempt, rank int, j *Job) *Task {
	g, i := &a.r.Granted[rank], a.machines[rank]
	for n := range i.r.Seats {
		if i.r.Seats[n].Attempt == a.r.ID && rank > 0 {
			i.r.Seats = slices.Clone(i.r.Seats)
			i.r.Seats[n].Rank = rank
		}
	}
	k := &Task{attempt: t, instance: i, r: taskRecord{
		Rank: rank, Instance: g.Instance, Machine: a.r.Machine, Portion: a.r.Portion, From: g.From, Settled: g.From,
		Rate: g.Rate, Warm: g.Warm, Before: g.Before,
		Learned: learnedTask{First: j.SavedStep(), Step: j.SavedStep(), Kept: g.From},
	}}
	if a.r.Portion != nil {
		k.r.Machine.GPUs = len(a.r.Portion.Devices)
	}
	move(NextTask, "task", k.Name(), &k.r.Phase, Assigned)
	return k
}

// began creates the attempt of an allocation that is complete, or of the machines that it got.
func (s *State) began(f AttemptBegan) {
	a := s.pending(f.Attempt)
	j := s.jobs[a.r.Job]
	t := &Attempt{r: attemptRecord{
		ID: a.r.ID, Job: a.r.Job, Epoch: a.r.Epoch, Variant: a.r.Variant, Rung: a.r.Rung, Transfer: a.r.Transfer,
		Requested: a.r.Requested, Most: a.r.Most,
	}}
	if f.Partial {
		t.r.Wanted = a.r.Nodes
	}
	a.byRank()
	for rank := range a.r.Granted {
		t.tasks = append(t.tasks, a.task(t, rank, j))
	}
	move(NextAllocation, "allocation", a.r.ID, &a.r.Phase, Granted)
	move(NextAttempt, "attempt", t.r.ID, &t.r.Phase, Underway)
	r := j.runs()
	// An allocation that was granted while it was being cancelled may be older than the newest attempt. Attempts
	// are sorted by epoch.
	n, _ := slices.BinarySearchFunc(r.Attempts, t.r.Epoch, func(x *Attempt, epoch int) int { return x.r.Epoch - epoch })
	r.Attempts = slices.Insert(slices.Clone(r.Attempts), n, t)
	if n < r.Closed { // the attempts before it are closed, so sum them again
		r.Closed = n
		r.Settled = money.Amount{}
		for _, x := range r.Attempts[:n] {
			r.Settled = r.Settled.Add(x.Posted()).Add(x.Rules())
		}
	}
	s.attempts[t.r.ID] = t
	s.dropped(a)
	if n == len(r.Attempts)-1 && !j.r.State.Over() && !f.Partial {
		j.r.UnplacedSince = time.Time{}
		r.CheckpointRegion = a.r.Machine.Region
	}
	if f.Adopted {
		move(NextStatus, "job", j.r.ID, &j.r.State, Running)
	}
	s.index(j)
}
