package state

import (
	"fmt"
	"slices"
	"time"

	"scrimp/internal/market"
	"scrimp/internal/money"
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
		s.pending(f.Allocation).r.Queued = s.now
	case AllocationGranted:
		s.granted(e, f)
	case AttemptBegan:
		s.began(f.Attempt)
	case AllocationCancelling:
		a := s.pending(f.Allocation)
		move(NextAllocation, "allocation", a.r.ID, &a.r.Phase, Cancelling)
		j := s.jobs[a.r.Job]
		j.runs().Asked = nil
		j.runs().Leaving = append(slices.Clone(j.runs().Leaving), a)
		s.tried(a)
		s.index(j)
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
		b.Tries, b.Until = f.Tries, f.Until
		s.setBackoff(f.Scope, b)
	}
}

// pending is the allocation of that name, and its job about to be changed.
func (s *State) pending(id string) *Allocation {
	a := s.allocations[id]
	if a == nil {
		panic("state: a fact about allocation " + id + ", which is not known")
	}
	s.touched(a.r.Job)
	return a
}

func (s *State) requested(f AllocationRequested) {
	j := s.touched(f.Job)
	r := j.runs()
	r.Epoch++
	a := &Allocation{allocationRecord{
		ID: fmt.Sprintf("%s.%d", j.r.ID, r.Epoch), Job: j.r.ID, Epoch: r.Epoch, Offers: []market.OfferID{f.Machine.Offer},
		Machine: f.Machine, Nodes: f.Nodes, Rate: f.Rate, Most: f.Most, Variant: f.Variant, Rung: f.Rung,
		Transfer: f.Transfer, Requested: s.now,
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
	for _, scope := range scopes {
		if key := ScopeKey(scope, &a.r.Machine); len(s.backoffs) > 0 {
			if b, known := s.backoffs[key]; known && b.Tries > 0 {
				b.Trial = a.r.ID
				s.setBackoff(key, b)
			}
		}
	}
}

// tried lets others try the scopes that the allocation tried.
func (s *State) tried(a *Allocation) {
	for _, scope := range scopes {
		key := ScopeKey(scope, &a.r.Machine)
		if b, known := s.backoffs[key]; known && b.Trial == a.r.ID {
			b.Trial = ""
			s.setBackoff(key, b)
		}
	}
}

// dropped takes an allocation that has ended from its job.
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

// rentedIn is what the event says of an instance that was granted or shown.
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
	panic("state: instance " + instance + " is in no event")
}

func (s *State) granted(e *Event, f AllocationGranted) {
	a := s.pending(f.Allocation)
	r := rentedIn(e, f.Instance)
	from := r.From
	if from.After(s.now) { // a provider's clock that is ahead
		from = s.now
	}
	i := &Instance{r: instanceRecord{
		ID: f.Instance, Allocation: a.r.ID, Job: a.r.Job, Machine: a.r.Machine, Rate: r.Rate, From: from,
		Seats: []Seat{{Attempt: a.r.ID, Rank: len(a.r.Instances)}},
	}}
	move(NextInstance, "instance", i.r.ID, &i.r.Phase, Provisioning)
	s.joins(i)
	s.instances[i.r.ID] = i
	a.r.Instances = append(slices.Clone(a.r.Instances), i.r.ID)
	for _, scope := range scopes {
		key := ScopeKey(scope, &a.r.Machine)
		if b, known := s.backoffs[key]; known && !b.Until.After(s.now) {
			s.setBackoff(key, Backoff{})
		}
	}
}

// joins lets the instance refer to its offer's prices, where they move.
func (s *State) joins(i *Instance) {
	if l := s.offers[i.r.Machine.Offer]; l != nil && l.r.Offer.Capacity == market.Spot {
		i.series = &l.series
	}
}

// began makes the attempt of an allocation that is complete.
func (s *State) began(id string) {
	a := s.pending(id)
	j := s.jobs[a.r.Job]
	i := s.instances[a.r.Instances[0]]
	t := &Attempt{instance: i, r: attemptRecord{
		ID: a.r.ID, Job: a.r.Job, Epoch: a.r.Epoch, Variant: a.r.Variant, Rung: a.r.Rung, Transfer: a.r.Transfer,
		Requested: a.r.Requested, Most: a.r.Most,
		Task: taskRecord{Instance: i.r.ID, Machine: a.r.Machine, From: i.r.From, Settled: i.r.From, Rate: i.r.Rate,
			Learned: learnedTask{
				First: j.SavedStep(), Step: j.SavedStep(), Kept: i.r.From,
			}},
	}}
	move(NextAllocation, "allocation", a.r.ID, &a.r.Phase, Granted)
	move(NextAttempt, "attempt", t.r.ID, &t.r.Phase, Underway)
	move(NextTask, "task", t.r.ID, &t.r.Task.Phase, Assigned)
	r := j.runs()
	// An allocation that was granted although it was being cancelled may be older than
	// the newest: attempts stand in the order of their epochs.
	n, _ := slices.BinarySearchFunc(r.Attempts, t.r.Epoch, func(x *Attempt, epoch int) int { return x.r.Epoch - epoch })
	r.Attempts = slices.Insert(slices.Clone(r.Attempts), n, t)
	if n < r.Closed { // what is before it is closed for the sums, so it counts by itself
		r.Closed = n
		r.Settled = money.Amount{}
		for _, x := range r.Attempts[:n] {
			r.Settled = r.Settled.Add(x.Posted()).Add(x.Rules())
		}
	}
	s.attempts[t.r.ID] = t
	s.dropped(a)
	if n == len(r.Attempts)-1 && !j.r.State.Over() {
		j.r.UnplacedSince = time.Time{}
		r.CheckpointRegion = a.r.Machine.Region
	}
	s.index(j)
}

func (s *State) applyTask(e *Event, f Fact) {
	switch f := f.(type) {
	case TaskClaimed:
		a := s.attempt(f.Attempt)
		b := e.Body.(AgentClaimed)
		move(NextTask, "task", a.r.ID, &a.r.Task.Phase, Starting)
		a.r.Task.Claimed, a.r.Task.By = s.now, b.By
		s.spoke(a)
	case TaskStarted:
		s.started(e, f)
	case NoticeTaken:
		a := s.attempt(f.Attempt)
		a.r.Noticed, a.r.TakenAt = s.now, e.Body.(NoticeGiven).Until
	case DrainRequested:
		a := s.attempt(f.Attempt)
		a.r.Draining, a.r.DrainWhy, a.r.DrainBy = true, f.Why, f.By
		if f.MigratesTo != "" {
			s.jobs[a.r.Job].runs().MigratingTo = f.MigratesTo
		}
		if i := a.instance; i != nil && i.r.Phase == Ready {
			move(NextInstance, "instance", i.r.ID, &i.r.Phase, Draining)
		}
	case TaskEnded:
		s.ended(e, f)
	case TimeSettled:
		a := s.attempt(f.Attempt)
		a.r.Task.Settled = f.Until
		if f.Until.After(a.r.Task.Learned.Kept) {
			a.r.Task.Learned.Kept = f.Until
		}
	}
}

// attempt is the attempt of that name, and its job about to be changed.
func (s *State) attempt(id string) *Attempt {
	a := s.AttemptOf(id)
	if a == nil {
		panic("state: a fact about attempt " + id + ", which is not known")
	}
	s.touched(a.r.Job)
	return a
}

// spoke notes that the agent of an instance has been heard of.
func (s *State) spoke(a *Attempt) {
	if i := a.instance; i != nil && i.r.Phase == Provisioning {
		move(NextInstance, "instance", i.r.ID, &i.r.Phase, Ready)
	}
}

func (s *State) started(e *Event, f TaskStarted) {
	a := s.attempt(f.Attempt)
	j := s.jobs[a.r.Job]
	b := e.Body.(AttemptStarted)
	move(NextTask, "task", a.r.ID, &a.r.Task.Phase, Working)
	a.r.Task.Started, a.r.Task.Restored = s.now, b.Restored
	j.runs().Learned.SavedWork = f.Work
	for _, l := range f.Lost {
		s.attempt(l.Attempt).r.Task.LostTime = l.Lost
	}
	s.spoke(a)
}

func (s *State) ended(e *Event, f TaskEnded) {
	a := s.attempt(f.Attempt)
	b := e.Body.(AttemptEnded)
	t := &a.r.Task
	move(NextTask, "task", a.r.ID, &t.Phase, Ended)
	t.Over, t.End, t.Exit = s.now, b.Reason, b.Exit
	t.LostTime += f.Lost
	a.r.DrainBy = s.now // it is given back at once
	j := s.jobs[a.r.Job]
	r := j.runs()
	if b.Outputs != "" {
		r.Outputs = b.Outputs
	}
	if !j.r.State.Over() {
		r.Exit = b.Exit
		if b.Error != "" || r.Ending == "" {
			j.r.Detail = b.Error
		}
	}
}

func (s *State) applyInstance(e *Event, f Fact) {
	switch f := f.(type) {
	case StrayFound:
		r := rentedIn(e, f.Instance)
		i := &Instance{r: instanceRecord{ID: r.Instance, Machine: Machine{Offer: r.Offer}, Rate: r.Rate, From: r.From}}
		if l := s.offers[r.Offer]; l != nil {
			i.r.Machine = MachineOf(&l.r.Offer)
		}
		if old := s.instances[r.Instance]; old != nil {
			i.r.Posted, i.r.Bill = old.r.Posted, old.r.Bill
		}
		i.r.Paid = f.Paid
		move(NextInstance, "instance", i.r.ID, &i.r.Phase, Provisioning)
		s.instances[i.r.ID] = i
	case InstanceReleased:
		i := s.instance(f.Instance)
		move(NextInstance, "instance", i.r.ID, &i.r.Phase, Terminating)
		i.r.Release = f.Why
		if a := s.seated(i); a != nil && f.End != "" && a.r.Task.End == "" {
			a.r.Task.End = f.End
		}
	case InstanceMissing:
		s.instance(f.Instance).r.Missing = s.now
	case InstanceListed:
		s.instance(f.Instance).r.Missing = time.Time{}
	case InstanceClosed:
		s.closed(e, f)
	case InstanceExtended:
		s.extended(f)
	case BillTaken:
		s.billed(e, f.Instance)
	case InstanceOwned:
		s.instance(f.Instance).r.Disowned = false
	case InstanceLeft:
		i := s.instance(f.Instance)
		move(NextInstance, "instance", i.r.ID, &i.r.Phase, Gone)
		i.r.Lost = false
		if a := s.seated(i); a != nil {
			s.leaves(i, a)
		}
	}
}

// instance is the instance of that name, and the job on it about to be changed.
func (s *State) instance(id string) *Instance {
	i := s.instances[id]
	if i == nil {
		panic("state: a fact about instance " + id + ", which is not known")
	}
	if i.r.Job != "" {
		s.touched(i.r.Job)
	}
	return i
}

// seated is the attempt whose first task has the instance's seat, or nil.
func (s *State) seated(i *Instance) *Attempt {
	if len(i.r.Seats) == 0 {
		return nil
	}
	return s.AttemptOf(i.r.Seats[0].Attempt)
}

// Seated is the attempt that has the instance, or nil.
func (s *State) Seated(i *Instance) *Attempt { return s.seated(i) }

func (s *State) closed(e *Event, f InstanceClosed) {
	i := s.instance(f.Instance)
	to := Gone
	if f.GivenUp {
		to = Missing
	}
	move(NextInstance, "instance", i.r.ID, &i.r.Phase, to)
	i.r.Until, i.r.Cause, i.r.Lost, i.r.Disowned, i.r.Release = f.Until, f.Cause, f.GivenUp, false, ""
	a := s.seated(i)
	if a == nil {
		return
	}
	j := s.jobs[a.r.Job]
	r := j.runs()
	t := &a.r.Task
	t.Until, t.Cause, t.LastRate = f.Until, f.Cause, i.PresentRate()
	if b, ok := e.Body.(InstanceEnded); ok {
		t.Notice = b.Notice
	}
	if f.Cause == "interrupted" && t.End == "" {
		t.End = "interrupted"
	}
	if t.End == "" {
		t.End = f.Cause
	}
	if t.Phase != Ended {
		move(NextTask, "task", a.r.ID, &t.Phase, Ended)
	}
	t.LostTime += f.Lost
	s.lasted(i, a)
	r.GPUServed += time.Duration(t.Machine.GPUs) * t.Until.Sub(t.From)
	if f.Unsaved {
		r.UnsavedLosses++
	}
	move(NextAttempt, "attempt", a.r.ID, &a.r.Phase, Over)
	delete(s.attempts, a.r.ID)
	for r.Closed < len(r.Attempts) && !r.Attempts[r.Closed].Live() {
		c := r.Attempts[r.Closed]
		r.Settled = r.Settled.Add(c.Posted()).Add(c.Rules())
		r.Closed++
	}
	s.index(j)
	if !f.GivenUp {
		s.leaves(i, a)
	}
}

// lasted learns how long machines of an offer of spot last.
func (s *State) lasted(i *Instance, a *Attempt) {
	l := s.offers[i.r.Machine.Offer]
	if l == nil || i.r.Machine.Capacity != market.Spot {
		return
	}
	l.r.Hazard.Served += i.r.Until.Sub(i.r.From)
	if i.r.Cause == "interrupted" || !a.r.Noticed.IsZero() { // given back early, but taken all the same
		l.r.Hazard.Lost++
	}
}

// leaves lets go of an instance that costs nothing more.
func (s *State) leaves(i *Instance, a *Attempt) {
	a.instance = nil
	delete(s.instances, i.r.ID)
}

func (s *State) extended(f InstanceExtended) {
	i := s.instance(f.Instance)
	a := s.seated(i)
	t := &a.r.Task
	if f.Until.After(t.Until) {
		more := f.Until.Sub(t.Until)
		t.LostTime += more
		s.jobs[a.r.Job].runs().GPUServed += time.Duration(t.Machine.GPUs) * more
		t.Until, i.r.Until = f.Until, f.Until
		t.Cause, i.r.Cause = f.Cause, f.Cause
	}
}

func (s *State) billed(e *Event, id string) {
	b := e.Body.(BillReceived)
	bill := map[string]money.Amount{}
	for _, l := range b.Lines {
		bill[l.Rule] = bill[l.Rule].Add(l.Amount)
	}
	if a := s.AttemptOf(b.Launch); a != nil && a.r.Task.Instance == id {
		s.touched(a.r.Job)
		a.r.Task.Bill = bill
		return
	}
	if i := s.instances[id]; i != nil && i.Stray() {
		i.r.Bill = bill
	}
}
