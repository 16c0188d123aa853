package state

import (
	"cmp"
	"slices"
	"time"

	"scrimp/internal/lib/money"
	"scrimp/internal/lib/quantity"
	"scrimp/internal/market"
)

// applyInstance records a fact about a machine.
func (s *State) applyInstance(e *Event, f Fact) {
	switch f := f.(type) {
	case StrayFound:
		s.strayFound(e, f)
	case InstanceRegistered:
		s.registered(e, f)
	case InstanceReleased:
		s.released(f)
	case SeatReleased:
		t := s.task(f.Attempt, f.Node)
		t.r.Leaving, t.r.LeaveBy, t.r.End = f.Why, f.By, cmp.Or(t.r.End, f.End)
		s.isLeaving(t)
	case SeatLeft:
		s.left(f)
	case InstanceCleaned:
		s.instance(f.Instance).idle().Clean = s.now
	case BillSplit:
		s.split(f)
	case InterruptionTaken:
		s.instance(f.Instance).r.Announced = e.Body.(InterruptionAnnounced).At
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
		s.owned(f)
	case InstanceLeft:
		s.instanceLeft(f)
	}
}

// strayFound records a machine that runs without an attempt that requested it.
func (s *State) strayFound(e *Event, f StrayFound) {
	r := rentedIn(e, f.Instance)
	i := &Instance{r: instanceRecord{ID: r.Instance, Machine: Machine{Offer: r.Offer}, Rate: r.Rate, From: r.From}}
	if l := s.offers[r.Offer]; l != nil {
		i.r.Machine = MachineOf(&l.r.Offer)
	} else if b, listed := e.Body.(InventorySeen); listed {
		i.r.Machine.Provider = b.Provider // who must terminate it
	}
	if old := s.instances[r.Instance]; old != nil {
		i.r.Posted, i.r.Bill = old.r.Posted, old.r.Bill
		i.r.Served, i.r.Idles, i.r.Billed = old.r.Served, old.r.Idles, old.r.Billed
	}
	i.r.Paid = f.Paid
	move(NextInstance, "instance", i.r.ID, &i.r.Phase, Provisioning)
	s.instances[i.r.ID] = i
}

// registered records the agent of a machine, which is ready with it.
func (s *State) registered(e *Event, f InstanceRegistered) {
	i, b := s.instance(f.Instance), e.Body.(MachineRegistered)
	i.r.Agent = &Agent{Key: b.Key, At: s.now, Version: b.Version, Isolated: b.Isolated, Address: b.Address}
	if i.r.Phase == Provisioning {
		move(NextInstance, "instance", i.r.ID, &i.r.Phase, Ready)
	}
}

// released records that a machine is being terminated, and why its tasks end.
func (s *State) released(f InstanceReleased) {
	i := s.instance(f.Instance)
	move(NextInstance, "instance", i.r.ID, &i.r.Phase, Terminating)
	i.r.Release = f.Why
	for _, t := range s.TasksOn(i) {
		t.r.End = cmp.Or(t.r.End, f.End)
	}
}

// owned records that somebody has decided about a machine of an earlier incarnation, unless it has ended meanwhile.
func (s *State) owned(f InstanceOwned) {
	delete(s.undecided, f.Instance)
	if s.instances[f.Instance] != nil {
		s.instance(f.Instance).r.Disowned = false
	}
}

// instanceLeft records the true end of a machine that was given up, and of the tasks on it.
func (s *State) instanceLeft(f InstanceLeft) {
	i := s.instance(f.Instance)
	move(NextInstance, "instance", i.r.ID, &i.r.Phase, Gone)
	i.r.Lost = false
	for _, t := range s.TasksOn(i) {
		s.leaves(i, t)
	}
}

// instance returns the instance with the given ID, and marks the jobs on it as about to change.
func (s *State) instance(id string) *Instance {
	i := s.instances[id]
	if i == nil {
		panic("state: a fact about unknown instance " + id)
	}
	if i.r.Job != "" {
		s.touched(i.r.Job)
	}
	for n := 1; n < len(i.r.Seats); n++ {
		s.touched(s.JobOf(i.r.Seats[n].Attempt).r.ID)
	}
	return i
}

// seated returns the attempt in the instance's first seat, or nil.
func (s *State) seated(i *Instance) *Attempt {
	if len(i.r.Seats) == 0 {
		return nil
	}
	return s.AttemptOf(i.r.Seats[0].Attempt)
}

// Seated returns the attempt in the instance's first seat, or nil.
func (s *State) Seated(i *Instance) *Attempt { return s.seated(i) }

func (s *State) closed(e *Event, f InstanceClosed) {
	i := s.instance(f.Instance)
	to := Gone
	if f.GivenUp {
		to = Missing
	}
	move(NextInstance, "instance", i.r.ID, &i.r.Phase, to)
	i.r.Until, i.r.Cause, i.r.Lost, i.r.Disowned, i.r.Release = f.Until, f.Cause, f.GivenUp, false, ""
	if b, ok := e.Body.(InstanceEnded); ok && b.Announced && i.r.Announced.IsZero() {
		i.r.Announced = f.Until
	}
	if !i.Stray() {
		s.lasted(i)
	}
	if idle := i.idle(); idle != nil {
		idle.Until = later(f.Until, idle.From)
	}
	s.lists(i)
	first := SeatEnd{Lost: f.Lost, Unsaved: f.Unsaved}
	for n, t := range s.TasksOn(i) {
		if n == 0 {
			s.cutOff(e, t, first, f.GivenUp)
			continue
		}
		at := slices.IndexFunc(f.Others, func(x SeatEnd) bool { return x.Attempt == t.attempt.r.ID })
		s.cutOff(e, t, f.Others[at], f.GivenUp)
	}
}

// cutOff ends a task together with its instance.
func (s *State) cutOff(e *Event, k *Task, end SeatEnd, givenUp bool) {
	i := k.instance
	j := s.touched(k.attempt.r.Job)
	t := &k.r
	t.Until, t.Cause, t.LastRate = later(i.r.Until, t.From), i.r.Cause, k.Rate()
	if b, ok := e.Body.(InstanceEnded); ok {
		t.Notice = b.Notice
	}
	if i.r.Cause == "interrupted" && t.End == "" {
		t.End = "interrupted"
	}
	if t.End == "" {
		t.End = i.r.Cause
	}
	t.LostTime += end.Lost
	if end.Unsaved {
		j.runs().UnsavedLosses++
	}
	s.taskOver(j, k)
	if !givenUp {
		s.leaves(i, k)
	}
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// taskOver closes a task whose end, cause and cost are known, and its attempt with the last task.
func (s *State) taskOver(j *Job, k *Task) {
	a, r, t := k.attempt, j.runs(), &k.r
	if t.Phase != Ended {
		move(NextTask, "task", k.Name(), &t.Phase, Ended)
	}
	r.GPUServed = quantity.Add(r.GPUServed, quantity.Times(t.Until.Sub(t.From), t.Machine.GPUs))
	if t.Leaving != "" {
		s.leaving = slices.DeleteFunc(slices.Clone(s.leaving), func(x *Task) bool { return x == k })
	}
	s.index(j)
	if a.Until().IsZero() {
		return
	}
	move(NextAttempt, "attempt", a.r.ID, &a.r.Phase, Over)
	s.gangLasted(a)
	delete(s.attempts, a.r.ID)
	for r.Closed < len(r.Attempts) && !r.Attempts[r.Closed].Live() {
		c := r.Attempts[r.Closed]
		r.Settled = r.Settled.Add(c.Posted()).Add(c.Rules())
		r.Closed++
	}
	s.index(j)
}

// lasted learns how long spot machines of an offer last. It relies on the provider only: a false announcement by a
// user's program would change the choices of everybody.
func (s *State) lasted(i *Instance) {
	l := s.offers[i.r.Machine.Offer]
	if l == nil || i.r.Machine.Capacity != market.Spot {
		return
	}
	l.r.Hazard.Served = quantity.Add(l.r.Hazard.Served, i.r.Until.Sub(i.r.From))
	if i.r.Cause == "interrupted" || !i.r.Announced.IsZero() { // terminated early, but interrupted all the same
		l.r.Hazard.Lost++
	}
}

// gangLasted learns how many machines an attempt on several spot machines lost, if any. Like lasted it relies on the
// provider only.
func (s *State) gangLasted(a *Attempt) {
	if a.Nodes() == 1 || a.Capacity() != market.Spot || a.Partial() > 0 {
		return
	}
	lost := 0
	for _, k := range a.tasks {
		if k.r.Cause == "interrupted" {
			lost++
		}
	}
	if lost > 0 {
		s.gangs = s.gangs.See(a.Nodes(), lost)
	}
}

// leaves drops an instance that costs nothing more. A shared one is kept for its bill.
func (s *State) leaves(i *Instance, t *Task) {
	if i.Shared() {
		s.rises(i, t)
		return
	}
	t.instance = nil
	delete(s.instances, i.r.ID)
}

func (s *State) extended(f InstanceExtended) {
	i := s.instance(f.Instance)
	if len(i.r.Seats) > 0 && s.seated(i) == nil { // of an incomplete allocation
		i.r.Until, i.r.Cause = f.Until, f.Cause
		return
	}
	if s.seated(i) == nil {
		if idle := &i.r.Idles[len(i.r.Idles)-1]; f.Until.After(i.r.Until) {
			idle.Until, i.r.Until, i.r.Cause = later(f.Until, idle.From), f.Until, f.Cause
		}
		return
	}
	for _, k := range s.TasksOn(i) {
		t := &k.r
		if !f.Until.After(t.Until) {
			continue
		}
		more := f.Until.Sub(t.Until)
		t.LostTime += more
		r := s.jobs[k.attempt.r.Job].runs()
		r.GPUServed = quantity.Add(r.GPUServed, quantity.Times(more, t.Machine.GPUs))
		t.Until, t.Cause = f.Until, f.Cause
	}
	if f.Until.After(i.r.Until) {
		i.r.Until, i.r.Cause = f.Until, f.Cause
	}
}

func (s *State) billed(e *Event, id string) {
	b := e.Body.(BillReceived)
	bill := map[string]money.Amount{}
	for _, l := range b.Lines {
		bill[l.Rule] = bill[l.Rule].Add(l.Amount)
	}
	if i := s.instances[id]; i != nil && len(i.r.Seats) > 0 && s.seated(i) == nil { // of an incomplete allocation
		i.r.Bill, i.r.BillLines = bill, b.Lines
		return
	}
	if a := s.AttemptOf(b.Launch); a != nil && a.On(id) != nil {
		s.touched(a.r.Job)
		a.On(id).r.Bill = bill
		return
	}
	if i := s.instances[id]; i != nil && i.Stray() {
		i.r.Bill = bill
	}
}
